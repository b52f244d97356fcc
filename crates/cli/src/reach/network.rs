//! Where devices, hubs and meshes are found.

use std::net::{Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _};

use anyhow::{Context as _, ensure};
use tenure_board_linux::BindError;
use tenure_reach::TunnelUrl;
use tenure_wire::PublicKey;

use crate::reach::hub_link::nowhere;

/// The error of a command whose answer, from the address of a hub, is no hub's.
pub const UNREADABLE: &str =
    "what answers there isn't understood: it is no hub, or a hub of another version";

/// The port that hubs listen on unless told otherwise.
pub const HUB_PORT: u16 = 7369;
/// The port that devices listen on unless told otherwise.
pub const DEVICE_PORT: u16 = 7370;
/// The port that meshes use unless told otherwise.
pub const MESH_PORT: u16 = 7371;

/// The most datagrams that a hub or a device takes in before it has its turn again, so that a
/// flood doesn't stop it.
pub const DATAGRAMS_PER_TURN: usize = 64;

/// The most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// Reads `HOST:PORT`, or `HOST` with `port`; returns the host's first address.
///
/// # Errors
/// The host isn't known.
pub fn address_of(text: &str, port: u16) -> anyhow::Result<SocketAddr> {
    Ok(addresses_of(text, port)?[0])
}

/// Reads `HOST:PORT`, or `HOST` with `port`; returns those of the host's addresses to which a socket that is bound to `from`
/// can send, at least one.
///
/// # Errors
/// The host isn't known, or has addresses of the other family alone.
pub fn addresses_from(from: SocketAddr, text: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let addresses = addresses_of(text, port)?;
    let reached: Vec<SocketAddr> =
        addresses.iter().filter(|to| can_send(from, **to)).copied().collect();
    let own = if from.is_ipv4() { "IPv4" } else { "IPv6" };
    ensure!(
        !reached.is_empty(),
        "what listens at {from} speaks {own} alone, and `{text}` is at {}; listen at [::]:{}",
        addresses[0],
        from.port()
    );
    Ok(reached)
}

/// A listener for connections at `address`.
///
/// # Errors
/// Nobody can listen there.
pub fn listener_at(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).map_err(|error| BindError { address, error })
}

/// Whether a socket that is bound to `from` can send to `to`: to its own family, and the one at `[::]` to both.
pub fn can_send(from: SocketAddr, to: SocketAddr) -> bool {
    from.is_ipv4() == to.is_ipv4() || from.is_ipv6() && from.ip().is_unspecified()
}

/// Reads `HOST:PORT`, or `HOST` with `port`; returns all addresses of the host that are to be tried, at least one, in the
/// system's order (RFC 6724).
///
/// # Errors
/// The host isn't known.
pub fn addresses_of(text: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let with_port = with_port(text, port);
    let host = host_of(&with_port)
        .with_context(|| format!("`{text}` is no address; write HOST:PORT, as 127.0.0.1:{port}"))?;
    let found =
        with_port.to_socket_addrs().with_context(|| format!("the host `{host}` can't be found"))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < ADDRESSES_MAX {
            addresses.push(address);
        }
    }
    ensure!(!addresses.is_empty(), "the host `{host}` has no address");
    Ok(addresses)
}

/// Where a hub is: the addresses of UDP, and the WebSocket to it if one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPlace {
    /// At least one.
    pub addresses: Vec<SocketAddr>,
    /// For where UDP is blocked.
    pub url: Option<TunnelUrl>,
}

/// Reads the place of a hub: `HOST:PORT`, `HOST`, or `wss://HOST`, whose UDP is at the port that hubs have.
///
/// # Errors
/// The text is none of that, or the host isn't known; by WebSocket a proxy may know it.
pub fn hub_place(text: &str) -> anyhow::Result<HubPlace> {
    if !TunnelUrl::is_meant(text) {
        return Ok(HubPlace { addresses: addresses_of(text, HUB_PORT)?, url: None });
    }
    let url = websocket_of(text)?;
    let addresses = addresses_of(&host_of_url(&url), HUB_PORT);
    let addresses = addresses.unwrap_or_else(|_| vec![nowhere()]);
    Ok(HubPlace { addresses, url: Some(url) })
}

/// Reads `wss://HOST`.
///
/// # Errors
/// It is no address of a WebSocket.
pub fn websocket_of(text: &str) -> anyhow::Result<TunnelUrl> {
    text.parse().with_context(|| {
        format!("`{text}` is no address of a hub's pages; write wss://HOST, or wss://HOST:PORT")
    })
}

/// The host of a WebSocket, with the port at which hubs listen by UDP.
pub fn host_of_url(url: &TunnelUrl) -> String {
    format!("{}:{HUB_PORT}", url.url().origin().host)
}

/// Whether `HOST:PORT`, or `HOST`, names a host whose address is to be looked up, and which can be another one later.
pub fn is_name(text: &str) -> bool {
    let with_port = with_port(text, HUB_PORT);
    with_port.parse::<SocketAddr>().is_err() && host_of(&with_port).is_some()
}

fn with_port(text: &str, port: u16) -> String {
    match text.parse::<Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]:{port}"),
        Err(_) if text.contains(':') && !text.ends_with(']') => text.to_string(),
        Err(_) => format!("{text}:{port}"),
    }
}

/// The host of `HOST:PORT`; none if that is no address.
fn host_of(with_port: &str) -> Option<&str> {
    let (host, port) = with_port.rsplit_once(':')?;
    let is_host = !host.is_empty() && !host.contains(char::is_whitespace);
    (is_host && port.parse::<u16>().is_ok()).then_some(host)
}

/// Reads `HOST:PORT#KEY`, where the key says who is meant; the address alone says where to look.
///
/// # Errors
/// The text after `#` is no key.
pub fn split_key(text: &str) -> anyhow::Result<(&str, Option<PublicKey>)> {
    match text.split_once('#') {
        None => Ok((text, None)),
        Some((address, key)) => {
            let key = key.parse().with_context(|| format!("`{key}`, after the #, is no key"))?;
            Ok((address, Some(key)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_address_and_a_host_that_nobody_knows_are_told_apart() {
        let error = |text| format!("{:#}", address_of(text, 1).unwrap_err());
        for text in ["", ":", ":80", "host:", "host:http", "a b:80", "host:70000"] {
            assert!(
                error(text).ends_with("is no address; write HOST:PORT, as 127.0.0.1:1"),
                "{text}"
            );
        }
        let unknown = error("nohost.invalid:7370");
        assert!(unknown.starts_with("the host `nohost.invalid` can't be found: "), "{unknown}");
        for (text, port) in [("[::1]", 7), ("::1", 7), ("[::1]:5", 5)] {
            assert_eq!(address_of(text, 7).unwrap(), ([0, 0, 0, 0, 0, 0, 0, 1], port).into());
        }
        assert_eq!(address_of("127.0.0.1", 7).unwrap(), "127.0.0.1:7".parse().unwrap());
    }

    #[test]
    fn hub_that_is_named_by_its_pages_has_udp_at_the_usual_port_and_needs_no_resolver() {
        let place = hub_place("ws://127.0.0.1:8080").unwrap();
        assert_eq!(place.addresses, [SocketAddr::from(([127, 0, 0, 1], HUB_PORT))]);
        assert_eq!(place.url.unwrap().to_string(), "ws://127.0.0.1:8080");
        assert_eq!(hub_place("wss://nohost.invalid").unwrap().addresses, [nowhere()]);
        assert_eq!(hub_place("127.0.0.1:7").unwrap().url, None);
        assert!(hub_place("wss://").is_err() && hub_place("nohost.invalid").is_err());
    }

    #[test]
    fn names_are_told_from_addresses_and_from_what_is_neither() {
        for name in ["hub.example", "hub.example:7369", "localhost", "attic:1"] {
            assert!(is_name(name), "{name}");
        }
        for other in
            ["127.0.0.1", "127.0.0.1:7369", "::1", "[::1]:7369", "[::1]", "a b", "hub:http", ""]
        {
            assert!(!is_name(other), "{other}");
        }
    }

    #[test]
    fn address_that_a_socket_cannot_send_to_is_refused_with_the_way_out() {
        let from = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (own, to) in [("127.0.0.1:1", "127.0.0.1"), ("[::]:1", "127.0.0.1"), ("[::1]:1", "::1")]
        {
            addresses_from(from(own), to, 7).unwrap();
        }
        let error = addresses_from(from("0.0.0.0:1"), "::1", 7).unwrap_err().to_string();
        assert_eq!(
            error,
            "what listens at 0.0.0.0:1 speaks IPv4 alone, and `::1` is at [::1]:7; listen at [::]:1"
        );
        addresses_from(from("[::1]:1"), "127.0.0.1", 7).unwrap_err();
    }

    #[test]
    fn key_after_the_address_is_read_or_refused() {
        let key = PublicKey([7; 32]);
        assert_eq!(split_key("attic:7370").unwrap(), ("attic:7370", None));
        let text = format!("127.0.0.1:1#{key}");
        assert_eq!(split_key(&text).unwrap(), ("127.0.0.1:1", Some(key)));
        assert!(split_key("127.0.0.1:1#").is_err() && split_key("127.0.0.1:1#x").is_err());
    }
}
