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

    /// Whether the parts that one sender can't vary are equal.
    fn is_same_host(&self, other: &Self) -> bool {
        self == other
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

    fn is_same_host(&self, other: &Self) -> bool {
        match (self.ip().to_canonical(), other.ip().to_canonical()) {
            (IpAddr::V6(one), IpAddr::V6(other)) => one.octets()[..8] == other.octets()[..8],
            (one, other) => one == other,
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

    fn is_same_host(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp(one), Self::Udp(other)) => one.is_same_host(other),
            (one, other) => one == other,
        }
    }
}

/// Where there is one peer only.
impl PeerAddress for () {}
impl PeerAddress for u8 {}
impl PeerAddress for u32 {}
impl PeerAddress for usize {}
