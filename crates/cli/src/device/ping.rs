//! `tenure ping`: whether a device answers, by which way, and how long that takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::{Value, json};
use tenure_rpc::NoResult;
use tenure_wire::Address;
use tenure_wire::control::{Function, Hello};
use tenure_wire::message::encode;
use tenure_wire::printable::{counted, span};

use crate::reach::client::{Client, Route};
use crate::reach::network::split_key;
use crate::reach::whom::Where;
use crate::terminal::clock::parse_span_or_seconds;
use crate::terminal::output::{Output, tell};

/// The shortest time from one call to the next, so that asking costs the device little.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// From how long on an answer counts as slow.
const SLOW: Duration = Duration::from_millis(500);
/// How many round trips the summary is made of at most: the latest.
const TRIPS_MAX: usize = 100_000;

/// Call a device again and again, and show by which way it answers and after how long.
///
/// The call is one that every device answers, whoever asks. Without --count it goes on until Ctrl-C. A datagram that is
/// lost is sent again within a call, so such a call is slow; the first also opens the session. The exit status is 0 if
/// the device answered at all, and 1 if it never did.
///
/// Example: tenure ping attic --hub hub.example.org --count 4
#[derive(clap::Args)]
pub struct Arguments {
    /// The device: a name, HOST:PORT, or HOST:PORT#KEY.
    #[arg(value_name = "DEVICE")]
    device: String,
    /// End after so many calls.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How long after one call the next begins, as in 500ms or 2s; a number alone is seconds.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = parse_span_or_seconds)]
    interval: Duration,
    /// How long to wait for each answer.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = parse_span_or_seconds)]
    timeout: Duration,
    /// The hub, which knows where named devices are: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// Reach the device by way of this member of its mesh, one of yours: HOST:PORT, or a name that you met before.
    #[arg(long, value_name = "MEMBER")]
    via: Option<String>,
}

/// Runs `tenure ping`.
///
/// # Errors
/// The device isn't known, can't be reached, or answered no call.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    ensure!(!arguments.timeout.is_zero(), "--timeout 0 leaves no time for an answer");
    let stop = client.stop()?;
    client.end_on(stop.clone());
    let Arguments { device, hub, via, .. } = arguments;
    let place = Where { device: Some(device.clone()), hub: hub.clone(), via: via.clone() };
    let named = split_key(device).map_or(device.as_str(), |(place, _)| place);
    let mut route = place.route(client)?;
    let (mut tally, mut obstacle) = (Tally::default(), None);
    loop {
        let begun = Instant::now();
        let outcome = round_trip(client, &route, arguments.timeout);
        if outcome.is_err() && stop.is_requested() {
            break;
        }
        tally.note(outcome.ok());
        let call = Call { number: tally.sent, device: named, via: via.as_deref() };
        match outcome {
            Ok(trip) => {
                output.line(&call.answered(&route.address, trip), &call.answer(&route, trip));
            }
            Err(reason) => {
                let waited = (reason == NoResult::Deadline).then_some(arguments.timeout);
                obstacle = obstacle_to(client, &place, &mut route, reason);
                if stop.is_requested() {
                    obstacle = None;
                }
                let obstacle = obstacle.as_deref();
                output.line(&call.lost(waited, obstacle), &call.loss(obstacle));
            }
        }
        let left = arguments.interval.max(INTERVAL_MIN).saturating_sub(begun.elapsed());
        if arguments.count.is_some_and(|count| tally.sent >= count) || !stop.rest(left) {
            break;
        }
    }
    output.line(&tally.text(named), &tally.object(named));
    match (tally.sent, tally.answered, obstacle) {
        (0, ..) => bail!("interrupted before there was an answer"),
        (sent, 0, None) => bail!("{named} answered none of {}", counted(sent, "call")),
        (sent, 0, Some(why)) => bail!("{named} answered none of {}: {why}", counted(sent, "call")),
        _ => Ok(()),
    }
}

/// How long one call and its answer take.
fn round_trip(client: &mut Client, route: &Route, timeout: Duration) -> Result<Duration, NoResult> {
    let hello = encode(&Hello::own(env!("CARGO_PKG_VERSION")));
    let begun = Instant::now();
    match client.call(route, Function::hello.name(), Some(hello), timeout) {
        // A hub has no such function, and answers all the same.
        Ok(_) | Err(NoResult::NoSuchFunction) => Ok(begun.elapsed()),
        Err(reason) => Err(reason),
    }
}

/// The obstacle to a call that had no answer, as far as it can be found out. The way to a device that moved is found again.
fn obstacle_to(
    client: &mut Client,
    place: &Where,
    route: &mut Route,
    reason: NoResult,
) -> Option<String> {
    let told = match reason {
        NoResult::Deadline | NoResult::Unreachable => None,
        reason => Some(reason.to_string()),
    };
    if matches!(route.address, Address::Mesh(_)) {
        return told.or_else(|| client.state_of_way(route));
    }
    match place.route(client) {
        Ok(found) => {
            *route = found;
            told
        }
        Err(error) => Some(tell(&error)),
    }
}

/// One call, as its line names it.
#[derive(Clone, Copy)]
struct Call<'a> {
    number: u64,
    device: &'a str,
    via: Option<&'a str>,
}

impl Call<'_> {
    fn answered(&self, address: &Address, trip: Duration) -> String {
        let slow = if trip >= SLOW { ", which is slow" } else { "" };
        let way = match (address, self.via) {
            (Address::Relayed(_), _) => "by its hub's relay".to_owned(),
            (Address::Mesh(_), Some(member)) => format!("by way of {member}"),
            _ => format!("directly at {address}"),
        };
        format!("{}: {} answered after {:.1} ms{slow}, {way}", self.number, self.device, ms(trip))
    }

    fn answer(&self, route: &Route, trip: Duration) -> Value {
        let way = match &route.address {
            Address::Relayed(_) => "hub",
            Address::Mesh(_) => "mesh",
            _ => "direct",
        };
        json!({
            "event": "answer",
            "number": self.number,
            "device": self.device,
            "way": way,
            "address": route.address.to_string(),
            "member": self.via,
            "round_trip_ms": ms(trip),
            "slow": trip >= SLOW,
        })
    }

    /// The line of a call without an answer, after all of the time that it had or by another end.
    fn lost(&self, waited: Option<Duration>, obstacle: Option<&str>) -> String {
        let waited = waited.map_or_else(String::new, |waited| format!(" in {}", span(waited)));
        let obstacle = obstacle.map_or_else(String::new, |obstacle| format!(": {obstacle}"));
        format!("{}: {} gave no answer{waited}{obstacle}", self.number, self.device)
    }

    fn loss(&self, obstacle: Option<&str>) -> Value {
        json!({
            "event": "lost",
            "number": self.number,
            "device": self.device,
            "reason": obstacle,
        })
    }
}

/// The calls so far.
#[derive(Default)]
struct Tally {
    sent: u64,
    answered: u64,
    slow: u64,
    /// The latest round trips.
    trips: VecDeque<Duration>,
}

/// The least, the median and the greatest of some round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    min: Duration,
    median: Duration,
    max: Duration,
}

impl Tally {
    /// Counts a call, with its round trip if it was answered.
    fn note(&mut self, trip: Option<Duration>) {
        self.sent += 1;
        let Some(trip) = trip else { return };
        self.answered += 1;
        self.slow += u64::from(trip >= SLOW);
        if self.trips.len() == TRIPS_MAX {
            self.trips.pop_front();
        }
        self.trips.push_back(trip);
    }

    fn spread(&self) -> Option<Spread> {
        let mut trips: Vec<Duration> = self.trips.iter().copied().collect();
        trips.sort_unstable();
        let (min, max) = (*trips.first()?, *trips.last()?);
        // Of an even number the two in the middle count.
        let [below, above] = [(trips.len() - 1) / 2, trips.len() / 2].map(|place| trips[place]);
        Some(Spread { min, median: (below + above) / 2, max })
    }

    fn lost_percent(&self) -> f64 {
        100.0 * (self.sent - self.answered) as f64 / self.sent.max(1) as f64
    }

    /// The share that is lost as people read it: none and all are told from nearly none and nearly all.
    fn lost_share(&self) -> String {
        match self.lost_percent() {
            some if some > 0.0 && some < 1.0 => "under 1 %".to_owned(),
            most if most > 99.0 && most < 100.0 => "over 99 %".to_owned(),
            share => format!("{share:.0} %"),
        }
    }

    fn text(&self, device: &str) -> String {
        let Self { sent, answered, slow, .. } = self;
        let lost = self.lost_share();
        let mut text =
            format!("{device}: {} sent, {answered} answered, {lost} lost", counted(*sent, "call"));
        if let Some(Spread { min, median, max }) = self.spread() {
            text += &format!(
                "; round trip {:.1} ms at least, {:.1} ms in the median, {:.1} ms at most",
                ms(min),
                ms(median),
                ms(max)
            );
        }
        if *slow > 0 {
            text += &format!(
                "; {} took {} or longer: the device is busy or sleeps, or the way there is long or loses datagrams",
                counted(*slow, "answer"),
                span(SLOW)
            );
        }
        text
    }

    fn object(&self, device: &str) -> Value {
        let spread = self.spread();
        json!({
            "event": "summary",
            "device": device,
            "sent": self.sent,
            "answered": self.answered,
            "slow": self.slow,
            "lost_percent": self.lost_percent(),
            "min_ms": spread.map(|spread| ms(spread.min)),
            "median_ms": spread.map(|spread| ms(spread.median)),
            "max_ms": spread.map(|spread| ms(spread.max)),
        })
    }
}

/// Milliseconds, to the microsecond.
fn ms(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_the_share_that_is_lost_and_the_median_of_what_came() {
        let mut tally = Tally::default();
        assert_eq!(tally.text("attic"), "attic: 0 calls sent, 0 answered, 0 % lost");
        for trip in [Some(4), None, Some(1), Some(600), Some(2)] {
            tally.note(trip.map(Duration::from_millis));
        }
        assert_eq!(
            tally.text("attic"),
            "attic: 5 calls sent, 4 answered, 20 % lost; round trip 1.0 ms at least, 3.0 ms in the median, 600.0 ms at \
             most; 1 answer took 500ms or longer: the device is busy or sleeps, or the way there is long or loses \
             datagrams"
        );
        tally.note(Some(Duration::from_millis(3)));
        assert_eq!(tally.spread().unwrap().median, Duration::from_millis(3), "of an odd number");
    }

    #[test]
    fn share_that_is_lost_is_none_or_all_only_if_it_is_so() {
        for (sent, answered, share) in [
            (0, 0, "0 %"),
            (1_000, 1_000, "0 %"),
            (1_000, 999, "under 1 %"),
            (3, 2, "33 %"),
            (1_000, 1, "over 99 %"),
            (7, 0, "100 %"),
        ] {
            let tally = Tally { sent, answered, ..Tally::default() };
            assert_eq!(tally.lost_share(), share, "{answered} of {sent}");
        }
    }

    #[test]
    fn summary_of_more_calls_than_are_kept_counts_all_and_measures_the_latest() {
        let mut tally = Tally::default();
        tally.note(Some(Duration::from_millis(9)));
        for _ in 0..TRIPS_MAX {
            tally.note(Some(Duration::from_millis(1)));
        }
        assert_eq!(tally.answered, TRIPS_MAX as u64 + 1);
        assert_eq!(tally.spread().unwrap().max, Duration::from_millis(1));
    }

    #[test]
    fn line_of_a_call_names_the_way_and_says_what_is_slow_or_stands_in_the_way() {
        let call = Call { number: 7, device: "attic", via: Some("barn") };
        let answered =
            |address: Address, us: u64| call.answered(&address, Duration::from_micros(us));
        let direct = Address::Udp(([10, 0, 0, 2], 7370).into());
        assert_eq!(
            answered(direct, 840),
            "7: attic answered after 0.8 ms, directly at 10.0.0.2:7370"
        );
        assert_eq!(
            answered(Address::Relayed([1; 8]), 512_000),
            "7: attic answered after 512.0 ms, which is slow, by its hub's relay"
        );
        assert_eq!(
            answered(Address::Mesh([1; 6]), 3_000),
            "7: attic answered after 3.0 ms, by way of barn"
        );
        let second = Some(Duration::from_secs(1));
        assert_eq!(call.lost(second, None), "7: attic gave no answer in 1s");
        assert_eq!(call.lost(second, Some("gone")), "7: attic gave no answer in 1s: gone");
        assert_eq!(call.lost(None, Some("busy")), "7: attic gave no answer: busy");
    }
}
