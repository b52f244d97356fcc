//! Where devices, hubs and meshes are found.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;
use tenure_wire::PublicKey;

/// The port that hubs listen on unless told otherwise.
pub const HUB_PORT: u16 = 7369;
/// The port that devices listen on unless told otherwise.
pub const DEVICE_PORT: u16 = 7370;
/// The port that meshes use unless told otherwise.
pub const MESH_PORT: u16 = 7371;

/// The most datagrams that a hub or a device takes in before it has its turn again, so that a
/// flood doesn't stop it.
pub const DATAGRAMS_PER_TURN: usize = 64;

/// Reads `HOST:PORT`, or `HOST` with `port`.
///
/// # Errors
/// The host isn't known.
pub fn address_of(text: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let with_port = if text.contains(':') { text.to_string() } else { format!("{text}:{port}") };
    let parts = with_port.rsplit_once(':').filter(|(host, port)| {
        !host.is_empty() && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok()
    });
    let (host, _) = parts
        .with_context(|| format!("`{text}` is no address; write HOST:PORT, as 127.0.0.1:{port}"))?;
    let found =
        with_port.to_socket_addrs().with_context(|| format!("the host `{host}` can't be found"))?;
    found.into_iter().next().with_context(|| format!("the host `{host}` has no address"))
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
        assert_eq!(
            address_of("[::1]", 7).unwrap_err().to_string(),
            "`[::1]` is no address; write HOST:PORT, as 127.0.0.1:7"
        );
        assert_eq!(address_of("[::1]:5", 7).unwrap(), "[::1]:5".parse().unwrap());
        assert_eq!(address_of("127.0.0.1", 7).unwrap(), "127.0.0.1:7".parse().unwrap());
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
