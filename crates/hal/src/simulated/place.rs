//! Socket addresses of places in a simulated network.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// 198.18.0.0/15 is for tests of networks alone (RFC 2544 appendix C.2.2, RFC 6890 table 12).
const NETWORK: u32 = 0xC612_0000;
const PLACES_MAX: u32 = 1 << 17;
const PORT: u16 = 7272;

/// The socket of the host at `place`, of which there are 2¹⁷. Each place is a host of its own.
///
/// # Panics
/// There is no such place.
pub const fn socket_at(place: u32) -> SocketAddr {
    assert!(place < PLACES_MAX, "a simulated network has 131,072 places");
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from_bits(NETWORK | place), PORT))
}

/// The place whose socket that is; `None` for every other socket.
pub fn place_at(socket: SocketAddr) -> Option<u32> {
    let SocketAddr::V4(socket) = socket else { return None };
    let place = socket.ip().to_bits() ^ NETWORK;
    (place < PLACES_MAX && socket.port() == PORT).then_some(place)
}
