//! All that an endpoint needs to know of the addresses of its transport.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use tenure_wire::Address;

/// The transport's address of a peer.
pub trait PeerAddress: Clone + Eq + Hash {
    /// Feeds `hasher` the part of the address that one sender can't vary as it likes. All addresses
    /// with an equal part share one allowance of handshakes. By default that is the whole address.
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }
}

/// A host has all ports of its IP address, and as a rule all addresses of an IPv6 network of 64 bits.
impl PeerAddress for SocketAddr {
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        match self.ip().to_canonical() {
            IpAddr::V4(ip) => ip.hash(hasher),
            IpAddr::V6(ip) => ip.octets()[..8].hash(hasher),
        }
    }
}

impl PeerAddress for Address {
    fn hash_host<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Udp(socket) => socket.hash_host(hasher),
            other => other.hash(hasher),
        }
    }
}

/// Where there is one peer only.
impl PeerAddress for () {}
impl PeerAddress for u8 {}
impl PeerAddress for u32 {}
impl PeerAddress for usize {}
