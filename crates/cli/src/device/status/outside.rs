//! The rows of `tenure status` on a device's ways outside.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_wire::NoResult;
use tenure_wire::control::{
    BridgeStatus, CoapStatus, DateStatus, OutsideError, OutsideStatus, ReachStatus,
};
use tenure_wire::printable::{counted, span};

use crate::terminal::clock;

/// The time at which a device told its status.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Its milliseconds since it booted.
    pub(super) uptime_ms: u64,
    /// Its seconds since 1970, if it knows them.
    pub(super) unix_s: Option<u64>,
}

impl Asked {
    /// How long ago the device was up for `at_ms`.
    fn since(self, at_ms: u64) -> Duration {
        Duration::from_millis(self.uptime_ms.saturating_sub(at_ms))
    }

    /// The time of day when the device was up for `at_ms`, if it knows that.
    fn time(self, at_ms: u64) -> Option<String> {
        let now_s = self.unix_s?;
        Some(clock::time(now_s.saturating_sub(self.since(at_ms).as_secs())))
    }

    /// How long ago that was, in words.
    fn span(self, at_ms: u64) -> String {
        span(Duration::from_secs(self.since(at_ms).as_secs()))
    }
}

/// The row on the time that the device knows, and who told it the date by which certificates are judged.
pub(super) fn time_line(unix_s: Option<u64>, date: Option<DateStatus>) -> String {
    let by = date.map_or_else(String::new, |date| format!(", by {}", date.teller));
    format!("time      {}{by}", unix_s.map_or_else(|| "not known".into(), clock::time))
}

/// The rows on each way that the device has.
pub(super) fn lines(outside: &OutsideStatus, asked: Asked) -> Vec<String> {
    let OutsideStatus { bridge, reach, coap, .. } = outside;
    let bridge = bridge.iter().flat_map(|bridge| of_bridge(bridge, asked));
    let reach = reach.iter().flat_map(|reach| of_reach(reach, asked));
    bridge.chain(reach).chain(coap.iter().map(of_coap)).collect()
}

/// The same as an object.
pub(super) fn object(outside: &OutsideStatus, asked: Asked) -> Value {
    let OutsideStatus { bridge, reach, coap, .. } = outside;
    let error = |error: &OutsideError| json!({ "ago_ms": asked.since(error.at_ms).as_millis() as u64, "words": error.words });
    json!({
        "bridge": bridge.as_ref().map(|bridge| json!({
            "broker": bridge.broker,
            "connected_ms": bridge.connected_at_ms.map(|at_ms| asked.since(at_ms).as_millis() as u64),
            "reconnections": bridge.connections.saturating_sub(1),
            "queued_messages": bridge.queued_messages,
            "queued_bytes": bridge.queued_bytes,
            "dropped": bridge.dropped,
            "handshakes_resumed": bridge.resumed,
            "last_error": bridge.last_error.as_ref().map(error),
        })),
        "reach": reach.as_ref().map(|reach| json!({
            "requests": reach.requests,
            "answered": reach.answered,
            "failed": reach.failed.iter().map(|(code, count)| (cause(*code), (*count).into())).collect::<serde_json::Map<_, _>>(),
            "names": reach.names,
            "handshakes": reach.handshakes,
            "handshakes_resumed": reach.resumed,
            "last_error": reach.last_error.as_ref().map(error),
        })),
        "date": outside.date.map(|date| json!({ "unix_s": date.unix_s, "teller": date.teller.to_string() })),
        "coap": coap.as_ref().map(|coap| json!({
            "address": coap.address,
            "requests": coap.requests,
            "refused": coap.refused,
            "observers": coap.observers,
        })),
    })
}

fn of_bridge(bridge: &BridgeStatus, asked: Asked) -> Vec<String> {
    let BridgeStatus { broker, connections, queued_messages, queued_bytes, dropped, .. } = bridge;
    let state = match bridge.connected_at_ms {
        Some(at_ms) => {
            let when = asked.time(at_ms).map(|time| format!("since {time}"));
            let when = when.unwrap_or_else(|| format!("for {}", asked.span(at_ms)));
            format!("connected to {broker} {when}")
        }
        None => format!("not connected to {broker}"),
    };
    let again = counted(connections.saturating_sub(1), "reconnection");
    let wait = counted(*queued_messages, "message");
    let mut lines = vec![format!(
        "bridge    {state}, {again}; {wait} of {queued_bytes} bytes in the queue, {dropped} dropped"
    )];
    lines.extend(bridge.last_error.as_ref().map(|error| of_error(error, asked)));
    lines
}

fn of_reach(reach: &ReachStatus, asked: Asked) -> Vec<String> {
    let ReachStatus { requests, answered, failed, names, resumed, .. } = reach;
    let failed: String =
        failed.iter().map(|(code, count)| format!(", {count} {}", cause(*code))).collect();
    let (requests, names) = (counted(*requests, "request"), counted(u64::from(*names), "name"));
    let handshakes = counted(reach.handshakes, "TLS handshake");
    let mut lines = vec![format!(
        "reach     {requests}: {answered} answered{failed}; {names} cached; {handshakes}, {resumed} resumed"
    )];
    lines.extend(reach.last_error.as_ref().map(|error| of_error(error, asked)));
    lines
}

fn of_coap(coap: &CoapStatus) -> String {
    let CoapStatus { address, requests, refused, observers } = coap;
    let (requests, observers) =
        (counted(*requests, "request"), counted(u64::from(*observers), "observer"));
    format!("coap      {address}, {requests}: {refused} refused; {observers}")
}

fn of_error(error: &OutsideError, asked: Asked) -> String {
    let when = asked.time(error.at_ms).map(|time| format!("at {time}"));
    let when = when.unwrap_or_else(|| format!("{} ago", asked.span(error.at_ms)));
    format!("          last error {when}: {}", error.words)
}

/// The reason with that code, as the machine gets it.
fn cause(code: u8) -> String {
    NoResult::from_code(code, Duration::ZERO).host_error().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Asked = Asked { uptime_ms: 100_000, unix_s: None };

    fn outside() -> OutsideStatus {
        let last_error = Some(OutsideError { at_ms: 40_000, words: "no connection".into() });
        OutsideStatus {
            bridge: Some(BridgeStatus {
                broker: "mqtts://broker.example:8883".into(),
                connected_at_ms: Some(95_000),
                connections: 3,
                queued_messages: 1,
                queued_bytes: 90,
                dropped: 4,
                last_error: last_error.clone(),
                resumed: 2,
            }),
            reach: Some(ReachStatus {
                requests: 5,
                answered: 2,
                failed: vec![(NoResult::Denied.code(), 1), (NoResult::Unreachable.code(), 2)],
                names: 1,
                last_error: None,
                handshakes: 3,
                resumed: 1,
            }),
            coap: Some(CoapStatus {
                address: "127.0.0.1:5683".into(),
                requests: 1,
                refused: 0,
                observers: 2,
            }),
            date: None,
        }
    }

    #[test]
    fn ways_outside_are_told_by_the_span_and_by_the_time_of_day_where_the_device_knows_it() {
        let told = lines(&outside(), UNKNOWN).join("\n");
        let expected = "bridge    connected to mqtts://broker.example:8883 for 5s, 2 reconnections; 1 message of 90 bytes in the queue, 4 dropped\n          \
                        last error 1m ago: no connection\n\
                        reach     5 requests: 2 answered, 1 denied, 2 unreachable; 1 name cached; 3 TLS handshakes, 1 resumed\n\
                        coap      127.0.0.1:5683, 1 request: 0 refused; 2 observers";
        assert_eq!(told, expected);
        let known = Asked { unix_s: Some(1_800_000_000), ..UNKNOWN };
        let told = lines(&outside(), known);
        assert!(told[0].contains(" since 2027-01-15T07:59:55Z, "), "{told:?}");
        assert!(told[1].contains(" at 2027-01-15T07:59:00Z: "), "{told:?}");
        let away = OutsideStatus {
            bridge: outside().bridge.map(|bridge| BridgeStatus { connected_at_ms: None, ..bridge }),
            ..OutsideStatus::default()
        };
        assert!(lines(&away, known)[0].starts_with("bridge    not connected to mqtts://"));
        assert!(lines(&OutsideStatus::default(), known).is_empty());
    }
}
