//! Addresses of connections: a hub that takes datagrams by connections beside UDP gives each of them an address of its own.
//!
//! They lie in 100::/64, which leads nowhere (RFC 6666), so that what is sent there by others is lost: the lower half has the
//! host that the connection comes from, and the port is the connection's number. Nobody but the hub that gave one can use it.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Address;

/// The upper half of these addresses.
const PREFIX: u64 = 0x0100_0000_0000_0000;

/// The address of the connection with this number that comes from `host`, of which the network (/64) counts if it has IPv6.
pub fn address_of(host: IpAddr, number: u16) -> SocketAddr {
    let host = match host.to_canonical() {
        IpAddr::V4(host) => u64::from(u32::from(host)),
        IpAddr::V6(host) => (u128::from(host) >> 64) as u64,
    };
    let bits = (u128::from(PREFIX) << 64) | u128::from(host);
    SocketAddr::from((Ipv6Addr::from(bits), number))
}

/// The host that a connection with this address comes from; `None` for every other address.
pub fn host_of(address: &SocketAddr) -> Option<IpAddr> {
    let SocketAddr::V6(address) = address else { return None };
    let bits = u128::from(*address.ip());
    if (bits >> 64) as u64 != PREFIX {
        return None;
    }
    let host = bits as u64;
    Some(match u32::try_from(host) {
        Ok(host) => Ipv4Addr::from(host).into(),
        Err(_) => Ipv6Addr::from(u128::from(host) << 64).into(),
    })
}

/// Whether an address is that of a connection.
pub fn is_carried(address: &Address) -> bool {
    matches!(address, Address::Udp(address) if host_of(address).is_some())
}

/// An address for people: that of a connection says so.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a Address);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.0 {
            Address::Udp(address) => host_of(address),
            _ => None,
        };
        match host {
            Some(host) => write!(f, "{host}, by WebSocket"),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn address_tells_the_host_that_a_connection_comes_from() {
        for (host, told) in [
            ("198.51.100.7", "198.51.100.7"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("fd00::1", "fd00::"),
        ] {
            let address = address_of(host.parse().unwrap(), 7);
            assert_eq!((address.port(), host_of(&address)), (7, told.parse().ok()), "{host}");
            assert!(is_carried(&address.into()));
            let shown = Shown(&address.into()).to_string();
            assert_eq!(shown, alloc::format!("{told}, by WebSocket"));
        }
    }

    #[test]
    fn address_of_anybody_else_is_none_of_a_connection() {
        for other in ["198.51.100.7:7", "[2001:db8::1]:7", "[::1]:7", "[100:0:0:1::1]:7"] {
            let address: SocketAddr = other.parse().unwrap();
            assert_eq!(host_of(&address), None, "{other}");
            assert_eq!(Shown(&address.into()).to_string(), other);
        }
        assert!(!is_carried(&Address::Line(1)));
        assert_eq!(Shown(&Address::Line(1)).to_string(), "line:1");
    }
}
