//! `tenure netcheck`: the way from this computer to the hub, as findings to read aloud.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use tenure_rpc::NoResult;
use tenure_wire::Address;
use tenure_wire::directory::{Seen, function as directory};
use tenure_wire::printable::counted;

use crate::reach::client::{Client, Route};
use crate::reach::network::{HUB_PORT, UNREADABLE, addresses_of, is_name, split_key};
use crate::reach::whom::Where;
use crate::terminal::clock::rough;
use crate::terminal::output::{Output, tell};

/// How long the hub may take to answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);
/// From how long on an answer counts as slow.
const SLOW: Duration = Duration::from_millis(500);
/// How far two clocks may differ that agree: each tells whole seconds.
const CLOCKS_AGREE_S: u64 = 2;
/// How far they may differ before records of devices, which last a minute, are over for one of both.
const CLOCKS_DIFFER_S: u64 = 20;
/// The variables by which programs are told of a proxy; those in small letters count, too.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

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
    report.say(&ipv6(&own.addresses));
    report.say_all(&proxies(|name| std::env::var(name).ok()));
    let place = Where { device: None, hub: arguments.hub.clone(), via: None };
    match place.hub_text(client) {
        Some(text) => to_hub(&mut report, client, (&place, text.as_str()), &own.addresses)?,
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
    (place, text): (&Where, &str),
    own: &[IpAddr],
) -> anyhow::Result<()> {
    let (named, addresses) = names(text);
    report.say_all(&named);
    if addresses.is_empty() {
        return Ok(());
    }
    let trips = probe(client, &addresses)?;
    report.say_all(&udp(&addresses, &trips, own));
    if trips.iter().all(Option::is_none) {
        return Ok(());
    }
    let told = place.hub_route(client).and_then(|route| ask(client, &route));
    match told {
        Ok(Some((seen, unix_s))) => {
            report.say(&seen_from(&seen.from, own));
            report.say(&clock(seen.unix_s, unix_s));
        }
        Ok(None) => report.say(&Finding::new(
            "hub",
            "is of an earlier version, which tells neither its time nor the address that it sees",
        )),
        Err(error) => report.say(&Finding::wrong(
            "hub",
            tell(&error),
            "name the hub that you mean, with its key, as HOST:PORT#KEY",
        )),
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

/// The addresses of this computer.
struct Own {
    findings: Vec<Finding>,
    addresses: Vec<IpAddr>,
}

/// The addresses of each interface.
fn interfaces() -> Own {
    let mut found = match if_addrs::get_if_addrs() {
        Ok(found) => found,
        Err(error) => {
            let said = format!("the system doesn't tell this computer's addresses: {error}");
            let todo = "see what forbids it, as a container's rules may";
            return Own {
                findings: vec![Finding::wrong("interface", said, todo)],
                addresses: vec![],
            };
        }
    };
    found.sort_by(|one, other| (&one.name, one.ip()).cmp(&(&other.name, other.ip())));
    let of_each = found.chunk_by(|one, other| one.name == other.name);
    let findings = of_each.map(|addresses| {
        let ips: Vec<IpAddr> = addresses.iter().map(if_addrs::Interface::ip).collect();
        interface(&addresses[0].name, &ips)
    });
    Own {
        findings: findings.collect(),
        addresses: found.iter().map(if_addrs::Interface::ip).collect(),
    }
}

fn interface(name: &str, addresses: &[IpAddr]) -> Finding {
    let each = |ip: &IpAddr| format!("{ip} ({}, {})", family(ip), kind(ip));
    let texts: Vec<String> = addresses.iter().map(each).collect();
    let objects = addresses
        .iter()
        .map(|ip| json!({ "address": ip.to_string(), "family": family(ip), "kind": kind(ip) }));
    let facts = json!({ "interface": name, "addresses": objects.collect::<Vec<Value>>() });
    Finding::new("interface", format!("{name}: {}", texts.join(", "))).with(facts)
}

fn family(ip: &IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The reach of an address, by the block that it is from (RFC 6890).
fn kind(ip: &IpAddr) -> &'static str {
    match ip {
        ip if ip.is_loopback() => "this computer alone",
        IpAddr::V4(ip) if ip.is_private() => "private",
        IpAddr::V4(ip) if ip.is_link_local() => "this link alone",
        // RFC 6598.
        IpAddr::V4(ip) if ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64 => {
            "shared by a provider's customers"
        }
        IpAddr::V6(ip) if ip.is_unique_local() => "private",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "this link alone",
        _ => "public",
    }
}

/// Whether this computer reaches others by IPv6.
fn ipv6(own: &[IpAddr]) -> Finding {
    let has = own.iter().any(|ip| ip.is_ipv6() && kind(ip) == "public");
    let said = match has {
        true => "this computer has a public address of IPv6",
        false => "this computer has no public address of IPv6; IPv4 does as well",
    };
    Finding::new("ipv6", said).with(json!({ "ipv6": has }))
}

/// The proxies that variables of the environment name.
fn proxies(value: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let names = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
    let named = names.filter_map(|name| {
        let host = host_of_proxy(&value(&name)?)?.to_owned();
        Some((name, host))
    });
    let findings: Vec<Finding> = named
        .map(|(name, host)| {
            let said = format!("{name} names {host}; sessions are UDP, and go by no proxy");
            Finding::new("proxy", said).with(json!({ "variable": name, "proxy": host }))
        })
        .collect();
    match findings.is_empty() {
        true => vec![Finding::new("proxy", "no variable of the environment names one")],
        false => findings,
    }
}

/// The host in the address of a proxy, without a user and a password.
fn host_of_proxy(text: &str) -> Option<&str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    // A password may have any of these letters.
    let host = match rest.rsplit_once('@') {
        Some((_, host)) => host.split(['/', '?', '#']).next()?,
        None => authority,
    };
    (!host.is_empty()).then_some(host)
}

/// The addresses of the hubs in `text`, which has commas between them, and what was found of each name.
fn names(text: &str) -> (Vec<Finding>, Vec<SocketAddr>) {
    let (mut findings, mut all) = (Vec::new(), Vec::new());
    for text in text.split(',').map(str::trim) {
        let found = split_key(text)
            .and_then(|(place, _)| addresses_of(place, HUB_PORT).map(|found| (place, found)));
        let (place, found) = match found {
            Ok(found) => found,
            Err(error) => {
                let todo = "look at its spelling, and whether this computer finds other names";
                let facts = json!({ "hub": text });
                findings.push(Finding::wrong("name", tell(&error), todo).with(facts));
                continue;
            }
        };
        let texts: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        let said = match is_name(place) {
            true => format!("{place} is found at {}", texts.join(", ")),
            false => format!("{place} is an address, and needs no look-up"),
        };
        let facts = json!({ "hub": place, "addresses": texts });
        findings.push(Finding::new("name", said).with(facts));
        all.extend(found);
    }
    (findings, all)
}

/// How long a datagram takes to each address and back; `None` where nothing came back in time.
fn probe(client: &mut Client, addresses: &[SocketAddr]) -> anyhow::Result<Vec<Option<Duration>>> {
    let begun = Instant::now();
    let mut trips = vec![None; addresses.len()];
    client.identify_each(addresses, |place, identity| {
        trips[place] = identity.map(|_| begun.elapsed());
    })?;
    Ok(trips)
}

/// Whether UDP gets to each address of the hub and back. One that is silent is wrong if no other answers.
fn udp(addresses: &[SocketAddr], trips: &[Option<Duration>], own: &[IpAddr]) -> Vec<Finding> {
    let any = trips.iter().any(Option::is_some);
    let of_each = addresses.iter().zip(trips).map(|(address, trip)| {
        let facts = json!({
            "address": address.to_string(),
            "answers": trip.is_some(),
            "round_trip_ms": trip.map(|trip| trip.as_micros() as f64 / 1000.0),
        });
        let finding = match trip {
            Some(trip) => {
                let slow = if *trip >= SLOW { ", which is slow" } else { "" };
                let ms = trip.as_micros() as f64 / 1000.0;
                Finding::new("udp", format!("gets to {address} and back in {ms:.1} ms{slow}"))
            }
            None if any => Finding::new(
                "udp",
                format!("no answer from {address}; the hub is reached at another address"),
            ),
            None => Finding::wrong("udp", format!("no answer from {address}"), lead(address, own)),
        };
        finding.with(facts)
    });
    of_each.collect()
}

/// The ways out where nothing comes back from an address.
fn lead(address: &SocketAddr, own: &[IpAddr]) -> String {
    let is_elsewhere = address.is_ipv6() && !address.ip().is_loopback();
    if is_elsewhere && own.iter().all(|ip| ip.is_ipv4() || ip.is_loopback()) {
        return "this computer has no IPv6: have the hub listen at an address of IPv4 as well"
            .to_owned();
    }
    format!(
        "see whether the hub runs; if it does, a firewall here, there or between keeps out UDP: let it through to port {}",
        address.port()
    )
}

/// The hub's word on this computer, and the time here when it came; `None` from a hub of an earlier version.
fn ask(client: &mut Client, route: &Route) -> anyhow::Result<Option<(Seen, u64)>> {
    let answer = client.call(route, directory::SEEN, None, HUB_TIMEOUT);
    let unix_s = client.unix_s();
    let answer = match answer {
        Err(NoResult::NoSuchFunction) => return Ok(None),
        answer => answer.with_context(|| format!("the hub at {}", route.address))?,
    };
    let seen = postcard::from_bytes(&answer.unwrap_or_default());
    seen.map(|seen| Some((seen, unix_s))).map_err(|_| anyhow!(UNREADABLE))
}

/// The address that the hub sees, against this computer's own.
fn seen_from(from: &Address, own: &[IpAddr]) -> Finding {
    let is_own = match from {
        Address::Udp(address) => own.contains(&address.ip()),
        _ => false,
    };
    let said = match is_own {
        true => {
            format!("the hub sees this computer at {from}, its own address: no router translates")
        }
        false => format!(
            "the hub sees this computer at {from}, which is none of its own: a router on the way translates (NAT), and \
             devices behind it are called by way of the hub"
        ),
    };
    Finding::new("seen", said).with(json!({ "seen_at": from.to_string(), "nat": !is_own }))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn interface_is_told_with_the_family_of_each_address_and_who_reaches_it() {
        let finding = interface("eth0", &ips(&["192.168.1.20", "8.8.8.8", "fe80::1", "fd00::1"]));
        assert_eq!(
            finding.text(),
            "interface  eth0: 192.168.1.20 (IPv4, private), 8.8.8.8 (IPv4, public), fe80::1 (IPv6, this link alone), \
             fd00::1 (IPv6, private)"
        );
        for (address, of) in [
            ("127.0.0.1", "this computer alone"),
            ("::1", "this computer alone"),
            ("169.254.1.1", "this link alone"),
            ("100.64.0.1", "shared by a provider's customers"),
            ("100.128.0.1", "public"),
            ("2001:4860::1", "public"),
        ] {
            assert_eq!(kind(&address.parse().unwrap()), of, "{address}");
        }
        assert!(ipv6(&ips(&["2001:4860::1"])).text().contains("has a public address"));
        assert!(ipv6(&ips(&["10.0.0.1", "fe80::1", "::1"])).text().contains("has no public"));
    }

    #[test]
    fn address_that_the_hub_sees_and_no_interface_has_is_a_routers() {
        let own = ips(&["192.168.1.20", "::1"]);
        let at = |ip: [u8; 4]| Address::Udp((ip, 40_000).into());
        let routed = seen_from(&at([203, 0, 113, 9]), &own);
        assert!(routed.said.contains("203.0.113.9:40000") && routed.said.contains("NAT"));
        assert_eq!(routed.object()["nat"], true);
        assert_eq!(seen_from(&at([192, 168, 1, 20]), &own).object()["nat"], false);
        assert!(routed.todo.is_none(), "it isn't wrong");
    }

    #[test]
    fn silent_address_of_a_hub_is_wrong_only_if_no_other_answers() {
        let addresses: [SocketAddr; 2] =
            ["203.0.113.5:7369".parse().unwrap(), "[2001:4860::1]:7369".parse().unwrap()];
        let own = ips(&["192.168.1.20"]);
        let trip = Some(Duration::from_millis(700));
        let half = udp(&addresses, &[trip, None], &own);
        assert!(half.iter().all(|finding| finding.todo.is_none()), "{half:?}");
        assert_eq!(half[0].said, "gets to 203.0.113.5:7369 and back in 700.0 ms, which is slow");
        let none = udp(&addresses, &[None, None], &own);
        assert!(none[0].todo.as_ref().unwrap().ends_with("UDP: let it through to port 7369"));
        assert!(none[1].todo.as_ref().unwrap().starts_with("this computer has no IPv6"));
    }

    #[test]
    fn clock_that_ends_records_too_early_or_too_late_is_wrong() {
        let now = 1_800_000_000;
        assert!(clock(now, now + 2).said.ends_with("agrees with the hub's"));
        assert!(clock(now, now + 19).todo.is_none());
        let behind = clock(now, now - 300);
        assert_eq!(behind.said, "this computer's clock is 5 min behind the hub's");
        assert!(behind.todo.is_some());
        assert!(clock(now, now + 20).text().contains("20 s ahead of the hub's; set the one"));
    }

    #[test]
    fn proxy_is_told_without_its_password() {
        let told = |wanted: &'static str, value: &'static str| {
            let findings = proxies(|name| (name == wanted).then(|| value.to_owned()));
            findings.iter().map(Finding::text).collect::<Vec<_>>().join("\n")
        };
        for (variable, value) in [
            ("HTTPS_PROXY", "http://user:pass@proxy.example:3128/x"),
            ("https_proxy", "proxy.example:3128"),
            ("ALL_PROXY", "socks5h://user:p@ss/w?#rd@proxy.example:3128"),
        ] {
            let text = told(variable, value);
            assert!(text.contains(&format!("{variable} names proxy.example:3128; ")), "{text}");
            assert!(!text.contains("pass") && !text.contains("ss/w"), "{text}");
        }
        assert!(told("HTTP_PROXY", "").contains("no variable"), "an empty one names none");
    }

    #[test]
    fn finding_for_programs_has_its_facts_beside_the_words() {
        let finding = Finding::wrong("udp", "no answer", "let it through");
        let object = finding.with(json!({ "answers": false })).object();
        assert_eq!(
            object,
            json!({
                "finding": "udp", "ok": false, "said": "no answer", "todo": "let it through", "answers": false
            })
        );
    }
}
