//! `tenure netcheck`: the way from this computer to the hub, as findings to read aloud.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use tenure_rpc::NoResult;
use tenure_wire::Address;
use tenure_wire::carried::{self, Shown};
use tenure_wire::directory::{Seen, function as directory};
use tenure_wire::printable::counted;

use self::here::{interfaces, ipv6, is_on_link, is_routed, proxies};
use self::named::{Named, names, websocket};
use crate::reach::client::{Client, Route, nothing_listens};
use crate::reach::network::UNREADABLE;
use crate::reach::whom::Where;
use crate::terminal::clock::{now_in_milliseconds, rough};
use crate::terminal::output::{Output, tell};

mod here;
mod named;
#[cfg(test)]
mod tests;

/// How long the hub may take to answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);
/// From how long on an answer counts as slow.
const SLOW: Duration = Duration::from_millis(500);
/// How far two clocks may differ that agree: each tells whole seconds.
const CLOCKS_AGREE_S: u64 = 2;
/// How far they may differ before records of devices, which last a minute, are over for one of both.
const CLOCKS_DIFFER_S: u64 = 20;

/// Check the way from this computer to the hub: addresses, names, UDP, routers, clocks.
///
/// Each line is a finding, and says what to do where something is wrong; the exit status is 1 then. Nobody is asked but the
/// hub, and whoever tells this computer the addresses of names.
///
/// Example: tenure netcheck --hub hub.example.org
#[derive(clap::Args)]
pub struct Arguments {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

/// Runs `tenure netcheck`.
///
/// # Errors
/// Something is wrong, as a finding says.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let mut report = Report { output, wrong: 0 };
    let own = interfaces();
    report.say_all(&own.findings);
    if !own.addresses.is_empty() {
        report.say(&ipv6(&own.addresses));
    }
    report.say_all(&proxies(|name| std::env::var(name).ok()));
    let place = Where { device: None, hub: arguments.hub.clone(), via: None };
    match place.hub_text(client) {
        Some(text) => to_hub(&mut report, client, &place, &text, &own.addresses)?,
        None => report.say(&Finding::wrong(
            "hub",
            "none is named",
            "say where it is with --hub or TENURE_HUB",
        )),
    }
    match report.wrong {
        0 => Ok(()),
        wrong => bail!("{} to be put right", counted(wrong, "finding")),
    }
}

/// Follows the way to the hub that `text` names, as far as it goes.
fn to_hub(
    report: &mut Report<'_>,
    client: &mut Client,
    place: &Where,
    text: &str,
    own: &[IpAddr],
) -> anyhow::Result<()> {
    let Named { findings, addresses, url } = names(text);
    report.say_all(&findings);
    if addresses.is_empty() && url.is_none() {
        return Ok(());
    }
    let echoes = probe(client, &addresses)?;
    let has_udp = echoes.iter().any(|echo| echo.trip().is_some());
    // Where UDP is blocked that leads by WebSocket.
    let told = (has_udp || url.is_some())
        .then(|| place.hub_route(client).and_then(|route| ask(client, &route)));
    let is_by_websocket = client.link.is_by_websocket();
    report.say_all(&udp(&addresses, &echoes, own, is_by_websocket));
    if let Some(url) = &url {
        report.say(&websocket(url, (has_udp, is_by_websocket), client.link.failure()));
    }
    if let Some(told) = told.filter(|_| has_udp || is_by_websocket) {
        report.say_all(&heard(told, own));
    }
    Ok(())
}

/// One thing that was found out.
#[derive(Debug)]
struct Finding {
    about: &'static str,
    said: String,
    /// The way out, if something is wrong.
    todo: Option<String>,
    /// The same for programs: the members of an object.
    facts: Value,
}

impl Finding {
    fn new(about: &'static str, said: impl Into<String>) -> Self {
        Self { about, said: said.into(), todo: None, facts: json!({}) }
    }

    fn wrong(about: &'static str, said: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { todo: Some(todo.into()), ..Self::new(about, said) }
    }

    fn with(self, facts: Value) -> Self {
        Self { facts, ..self }
    }

    fn text(&self) -> String {
        let todo = self.todo.as_ref().map_or_else(String::new, |todo| format!("; {todo}"));
        format!("{:<10} {}{todo}", self.about, self.said)
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "finding": self.about,
            "ok": self.todo.is_none(),
            "said": self.said,
            "todo": self.todo,
        });
        for (name, fact) in self.facts.as_object().into_iter().flatten() {
            object[name] = fact.clone();
        }
        object
    }
}

/// The findings that were printed.
struct Report<'a> {
    output: &'a Output,
    wrong: usize,
}

impl Report<'_> {
    fn say(&mut self, finding: &Finding) {
        self.wrong += usize::from(finding.todo.is_some());
        self.output.line(&finding.text(), &finding.object());
    }

    fn say_all(&mut self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.say(finding));
    }
}

/// The answer to a datagram to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    /// It came after so long.
    After(Duration),
    /// Somebody on the way says that nobody listens there.
    Refused,
    /// None came in time.
    Silent,
}

impl Echo {
    fn trip(self) -> Option<Duration> {
        match self {
            Self::After(trip) => Some(trip),
            Self::Refused | Self::Silent => None,
        }
    }
}

/// Sends a datagram to each address. Where none is answered, it is found out which are refused.
fn probe(client: &mut Client, addresses: &[SocketAddr]) -> anyhow::Result<Vec<Echo>> {
    let begun = Instant::now();
    let mut echoes = vec![Echo::Silent; addresses.len()];
    client.identify_each(addresses, |place, identity| {
        if identity.is_some() {
            echoes[place] = Echo::After(begun.elapsed());
        }
    })?;
    if echoes.iter().all(|echo| *echo == Echo::Silent) {
        for (echo, address) in echoes.iter_mut().zip(addresses) {
            if nothing_listens(*address) {
                *echo = Echo::Refused;
            }
        }
    }
    Ok(echoes)
}

/// Whether UDP gets to each address of the hub and back. One that is silent is wrong if no other answers.
fn udp(
    addresses: &[SocketAddr],
    echoes: &[Echo],
    own: &[IpAddr],
    is_by_websocket: bool,
) -> Vec<Finding> {
    let any = echoes.iter().any(|echo| echo.trip().is_some());
    let of_each = addresses.iter().zip(echoes).map(|(address, echo)| {
        let trip = echo.trip();
        let trip_ms = trip.map(|trip| trip.as_micros() as f64 / 1000.0);
        let slow = if trip >= Some(SLOW) { ", which is slow" } else { "" };
        let silent = format!("no answer from {address}");
        let finding = match trip_ms {
            Some(ms) => {
                Finding::new("udp", format!("gets to {address} and back in {ms:.1} ms{slow}"))
            }
            None if any => {
                Finding::new("udp", format!("{silent}; the hub is reached at another address"))
            }
            None if is_by_websocket => {
                Finding::new("udp", format!("{silent}; the hub is reached by WebSocket"))
            }
            None => Finding::wrong("udp", silent, lead(address, *echo, own)),
        };
        finding.with(json!({
            "address": address.to_string(),
            "answers": trip_ms.is_some(),
            "round_trip_ms": trip_ms,
        }))
    });
    of_each.collect()
}

/// The ways out where nothing comes back from an address.
fn lead(address: &SocketAddr, echo: Echo, own: &[IpAddr]) -> String {
    let (ip, port) = (address.ip(), address.port());
    let has = |is_ipv4: bool| own.iter().any(|ip| ip.is_ipv4() == is_ipv4 && is_routed(ip));
    if echo == Echo::Refused {
        return format!(
            "see whether the hub runs, and listens at port {port}: somebody there says that nobody does, or a firewall \
             refuses UDP in these words"
        );
    }
    // Addresses of the link alone aren't among this computer's own.
    if !own.is_empty() && is_routed(&ip) && !has(ip.is_ipv4()) {
        let (missing, other) = if ip.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        return match has(ip.is_ipv6()) {
            true => format!(
                "this computer has no {missing}: have the hub listen at an address of {other} as well"
            ),
            false => "this computer is in no network: connect it".to_owned(),
        };
    }
    format!(
        "see whether the hub runs, and is at this address; if so, a firewall here, there or between keeps out UDP: let \
         it through to port {port}"
    )
}

/// The hub's word on this computer, and the time here when it came; `None` from a hub of an earlier version.
fn ask(client: &mut Client, route: &Route) -> anyhow::Result<Option<(Seen, u64)>> {
    let answer = client.call(route, directory::SEEN, None, HUB_TIMEOUT);
    // As it is shown, also where it can't be right.
    let unix_s = now_in_milliseconds() / 1000;
    let answer = match answer {
        Err(NoResult::NoSuchFunction) => return Ok(None),
        answer => answer.with_context(|| format!("the hub at {}", route.address))?,
    };
    let seen = postcard::from_bytes(&answer.unwrap_or_default());
    seen.map(|seen| Some((seen, unix_s))).map_err(|_| anyhow!(UNREADABLE))
}

/// The findings by the hub's word, or by what came instead.
fn heard(told: anyhow::Result<Option<(Seen, u64)>>, own: &[IpAddr]) -> Vec<Finding> {
    match told {
        Ok(Some((seen, own_unix_s))) => {
            vec![seen_from(&seen.from, own), clock(seen.unix_s, own_unix_s)]
        }
        Ok(None) => vec![Finding::new(
            "hub",
            "answers, but tells neither its time nor the address that it sees: it is of an earlier version, or no hub",
        )],
        Err(error) => {
            let todo = match error.downcast_ref::<NoResult>() {
                Some(_) => "try again; if that doesn't help, look at the hub's log",
                None => "name the hub that you mean, with its key, as HOST:PORT#KEY",
            };
            vec![Finding::wrong("hub", tell(&error), todo)]
        }
    }
}

/// The address that the hub sees, against this computer's own.
fn seen_from(from: &Address, own: &[IpAddr]) -> Finding {
    let nat = is_translated(from, own);
    let so = match nat {
        Some(true) if carried::is_carried(from) => {
            ", which is none of its own: a proxy is on the way, or a router that translates (NAT)"
        }
        Some(true) => {
            ", which is none of its own: a router on the way translates (NAT), and devices behind it may need the \
             hub's relay"
        }
        Some(false) => ", its own address: no router on the way translates",
        None => "",
    };
    let said = format!("the hub sees this computer at {}{so}", Shown(from));
    Finding::new("seen", said).with(json!({ "seen_at": from.to_string(), "nat": nat }))
}

/// Whether the address that the hub sees is another one than this computer's; `None` if these aren't known.
fn is_translated(from: &Address, own: &[IpAddr]) -> Option<bool> {
    let Address::Udp(from) = from else { return None };
    let is_own = match carried::host_of(from) {
        // Of a connection by IPv6 the network alone is told.
        Some(_) => own.iter().any(|ip| carried::address_of(*ip, from.port()) == *from),
        // No router carries an address of a link.
        None => own.contains(&from.ip()) || is_on_link(&from.ip()),
    };
    (is_own || !own.is_empty()).then_some(!is_own)
}

/// This computer's clock against the hub's.
fn clock(hub_unix_s: u64, own_unix_s: u64) -> Finding {
    let differ_s = hub_unix_s.abs_diff(own_unix_s);
    let side = if own_unix_s < hub_unix_s { "behind" } else { "ahead of" };
    let said = format!("this computer's clock is {} {side} the hub's", rough(differ_s));
    let finding = if differ_s <= CLOCKS_AGREE_S {
        Finding::new("clock", "this computer's clock agrees with the hub's")
    } else if differ_s < CLOCKS_DIFFER_S {
        Finding::new("clock", said)
    } else {
        let todo = "set the one that is wrong, as by NTP: records of devices last a minute";
        Finding::wrong("clock", said, todo)
    };
    finding.with(json!({ "hub_unix_s": hub_unix_s, "own_unix_s": own_unix_s }))
}
