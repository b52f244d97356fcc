//! Where a browser is that signs in, so that its person finds it in the list: its kind, and the prefix of its network.
//!
//! Invariant: of what a client says of itself only whether known words are in it is kept.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::extract::FromRequestParts;
use http::header;
use http::request::Parts;
use tenure_http_listener::Host;

use crate::api::sign_in::Whence;
use crate::web::state::HubState;

/// The words for browsers in `User-Agent`, each before those that its kind says, too.
const BROWSERS: [(&str, &str); 6] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
/// The same for systems.
const SYSTEMS: [(&str, &str); 7] = [
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

impl FromRequestParts<HubState> for Whence {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, hub: &HubState) -> Result<Self, Infallible> {
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let host = match hub.is_by_proxy() {
            true => Host::told_by_proxy(&parts.headers),
            false => parts.extensions.get::<Host>().copied(),
        };
        Ok(Self {
            agent: agent.map_or_else(String::new, browser),
            network: host.map_or_else(String::new, |Host(address)| network(address)),
        })
    }
}

/// The kind of a browser and of its system.
fn browser(agent: &str) -> String {
    let word = |words: &[(&str, &'static str)]| {
        words.iter().find(|(known, _)| agent.contains(known)).map(|(_, word)| *word)
    };
    match (word(&BROWSERS), word(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(word), None) | (None, Some(word)) => word.to_string(),
        (None, None) => "another one".to_string(),
    }
}

/// The prefix of an address that a network's clients share: /24 of IPv4, /48 of IPv6.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        address if address.is_loopback() => "this computer".to_string(),
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{}/24", Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_is_named_by_known_words_alone() {
        const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
        for (agent, named) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
                "Firefox on Linux",
            ),
            (CHROME, "Chrome on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
                "Safari on iOS",
            ),
            ("curl/8.11.0", "another one"),
            ("<script>alert(1)</script>\u{1b}[2J", "another one"),
        ] {
            assert_eq!(browser(agent), named, "{agent}");
        }
    }

    #[test]
    fn network_is_a_prefix() {
        for (address, prefix) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
            ("127.0.0.9", "this computer"),
            ("::1", "this computer"),
        ] {
            assert_eq!(network(address.parse().unwrap()), prefix);
        }
    }
}
