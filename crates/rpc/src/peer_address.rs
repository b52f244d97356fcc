//! All that an endpoint needs to know of the addresses of its transport.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use tenure_wire::{Address, carried};

/// The transport's address of a peer.
pub trait PeerAddress: Clone + Eq + Hash {
    /// Feeds `hasher` the part of the address that one sender can't vary as it likes. All addresses
    /// with an equal part share one allowance of handshakes. By default that is the whole address.
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    /// Whether the parts that one sender can't vary are equal.
    fn is_same_host(&self, other: &Self) -> bool {
        self == other
    }

    /// The least time that an answer from there is waited for. By default none: what isn't answered in the usual time
    /// was lost.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// The [patience](PeerAddress::patience) with a mesh. Each hop makes sure of the next one there, and keeps a datagram while
/// it looks for a way: one that is late isn't lost, and a second one takes the same air.
const MESH_PATIENCE: Duration = Duration::from_secs(1);

/// The beginning of an address of IPv6 that one customer can't vary, in bytes (/48; RFC 6177).
const NETWORK_BYTES: usize = 6;

/// A host has all ports of its IP address, and all addresses of a customer's network of IPv6; a connection to a hub has the
/// host from which it comes.
impl PeerAddress for SocketAddr {
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        match host_of(self) {
            IpAddr::V4(ip) => ip.hash(hasher),
            IpAddr::V6(ip) => ip.octets()[..NETWORK_BYTES].hash(hasher),
        }
    }

    fn is_same_host(&self, other: &Self) -> bool {
        match (host_of(self), host_of(other)) {
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                one.octets()[..NETWORK_BYTES] == other.octets()[..NETWORK_BYTES]
            }
            (one, other) => one == other,
        }
    }
}

fn host_of(address: &SocketAddr) -> IpAddr {
    carried::host_of(address).unwrap_or(address.ip()).to_canonical()
}

impl PeerAddress for Address {
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Udp(socket) => socket.hash_host(hasher),
            // Whoever forges the hub's address has as many ways as it likes.
            Self::Relayed(_) => Self::Relayed([0; 8]).hash(hasher),
            other => other.hash(hasher),
        }
    }

    fn is_same_host(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp(one), Self::Udp(other)) => one.is_same_host(other),
            (Self::Relayed(_), Self::Relayed(_)) => true,
            (one, other) => one == other,
        }
    }

    fn patience(&self) -> Duration {
        match self {
            Self::Mesh(_) => MESH_PATIENCE,
            _ => Duration::ZERO,
        }
    }
}

/// Where there is one peer only.
impl PeerAddress for () {}
impl PeerAddress for u8 {}
impl PeerAddress for u32 {}
impl PeerAddress for usize {}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// What is fed to it.
    struct Fed(Vec<u8>);

    impl Hasher for Fed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    #[test]
    fn customers_network_of_ipv6_is_one_host_and_a_mapped_address_is_that_of_ipv4() {
        for (one, other, is_same) in [
            ("192.0.2.1:1", "192.0.2.1:2", true),
            ("192.0.2.1:1", "192.0.2.2:1", false),
            ("192.0.2.1:1", "[::ffff:192.0.2.1]:1", true),
            ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false),
            ("[2001:db8:1:2::1]:1", "[2001:db8:1:2::2]:2", true),
            ("[2001:db8:1:2::1]:1", "[2001:db8:1:ffff::1]:1", true),
            ("[2001:db8:1:2::1]:1", "[2001:db8:2:2::1]:1", false),
            ("[fe80::1%1]:1", "[fe80::2%2]:1", true),
            // Connections from 198.51.100.7, 198.51.100.8 and 2001:db8:1:2::/64.
            ("[100::c633:6407]:1", "[100::c633:6407]:2", true),
            ("[100::c633:6407]:1", "[100::c633:6408]:1", false),
            ("[100::c633:6407]:1", "198.51.100.7:1", true),
            ("[100::2001:db8:1:2]:1", "[2001:db8:1:3::1]:1", true),
            ("[100::2001:db8:1:2]:1", "[100::2001:db8:2:2]:1", false),
        ] {
            let [one, other]: [SocketAddr; 2] = [one, other].map(|text| text.parse().unwrap());
            let fed = [one, other].map(|address| {
                let mut fed = Fed(Vec::new());
                address.hash_host(&mut fed);
                fed.0
            });
            assert_eq!(one.is_same_host(&other), is_same, "{one} {other}");
            assert_eq!(fed[0] == fed[1], is_same, "{one} {other}");
        }
    }
}
