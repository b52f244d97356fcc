//! The findings about this computer alone: its addresses, and the proxies that its environment names.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::Finding;

/// The variables by which programs are told of a proxy; those in small letters count, too.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// The reach of an address that nobody else has a way to.
const THIS_COMPUTER: &str = "this computer alone";
/// The reach of an address that no router knows a way to.
const THIS_LINK: &str = "this link alone";

/// The addresses of this computer.
pub(super) struct Own {
    pub(super) findings: Vec<Finding>,
    /// All of them but those that hold on a link alone; none if the system doesn't tell them.
    pub(super) addresses: Vec<IpAddr>,
}

/// The addresses of each interface.
pub(super) fn interfaces() -> Own {
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

pub(super) fn interface(name: &str, addresses: &[IpAddr]) -> Finding {
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
pub(super) fn kind(ip: &IpAddr) -> &'static str {
    match ip {
        ip if ip.is_loopback() => THIS_COMPUTER,
        IpAddr::V4(ip) if ip.is_private() => "private",
        IpAddr::V4(ip) if ip.is_link_local() => THIS_LINK,
        // RFC 6598.
        IpAddr::V4(ip) if ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64 => {
            "shared by a provider's customers"
        }
        IpAddr::V6(ip) if ip.is_unique_local() => "private",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => THIS_LINK,
        _ => "public",
    }
}

/// Whether routers may know a way to an address: it holds beyond this computer and its link.
pub(super) fn is_routed(ip: &IpAddr) -> bool {
    !matches!(kind(ip), THIS_COMPUTER | THIS_LINK)
}

/// Whether an address holds on one link alone.
pub(super) fn is_on_link(ip: &IpAddr) -> bool {
    kind(ip) == THIS_LINK
}

/// Whether this computer reaches others by IPv6.
pub(super) fn ipv6(own: &[IpAddr]) -> Finding {
    let has = own.iter().any(|ip| ip.is_ipv6() && kind(ip) == "public");
    let has_ipv4 = own.iter().any(|ip| ip.is_ipv4() && is_routed(ip));
    let said = match (has, has_ipv4) {
        (true, true) => "this computer has a public address of IPv6",
        (true, false) => "this computer has a public address of IPv6, and no IPv4",
        (false, true) => "this computer has no public address of IPv6; IPv4 does as well",
        (false, false) => "this computer has no public address of IPv6, and no IPv4",
    };
    Finding::new("ipv6", said).with(json!({ "ipv6": has }))
}

/// The proxies that variables of the environment name.
pub(super) fn proxies(value: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let names = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
    let named = names.filter_map(|name| {
        let host = host_of_proxy(&value(&name)?)?.to_owned();
        Some((name, host))
    });
    let findings: Vec<Finding> = named
        .map(|(name, host)| {
            let said = format!(
                "{name} names {host}; UDP goes by no proxy, and WebSocket to a hub that is named as wss:// does"
            );
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
