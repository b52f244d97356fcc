//! Where a device can be reached.

use core::fmt;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The address of a device on one of the links that nodes run over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "Encoded", try_from = "Encoded")]
pub enum Address {
    /// A UDP port on an IPv4 or IPv6 host.
    Udp(SocketAddr),
    /// A node of the mesh that this one has joined, by its id there.
    Mesh([u8; 6]),
    /// The device at the other end of a serial line of this device, by the line's number.
    Line(u8),
    /// A device to which this one's hub relays, by the hub's number for the way there.
    Relayed([u8; 8]),
}

/// An [`Address`] on the wire, numbered in this order. No address has number 1.
#[derive(Serialize, Deserialize)]
enum Encoded {
    Udp(SocketAddr),
    Unused,
    Mesh([u8; 6]),
    Line(u8),
    Relayed([u8; 8]),
}

impl From<Address> for Encoded {
    fn from(address: Address) -> Self {
        match address {
            Address::Udp(socket) => Self::Udp(socket),
            Address::Mesh(node) => Self::Mesh(node),
            Address::Line(line) => Self::Line(line),
            Address::Relayed(way) => Self::Relayed(way),
        }
    }
}

impl TryFrom<Encoded> for Address {
    type Error = &'static str;

    fn try_from(encoded: Encoded) -> Result<Self, Self::Error> {
        match encoded {
            Encoded::Udp(socket) => Ok(Self::Udp(socket)),
            Encoded::Unused => Err("no address has number 1"),
            Encoded::Mesh(node) => Ok(Self::Mesh(node)),
            Encoded::Line(line) => Ok(Self::Line(line)),
            Encoded::Relayed(way) => Ok(Self::Relayed(way)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(socket) => write!(f, "{socket}"),
            Self::Line(line) => write!(f, "line:{line}"),
            Self::Mesh(node) => {
                f.write_str("mesh:")?;
                node.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Relayed(_) => f.write_str("its hub's relay"),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        Self::Udp(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;
    use alloc::string::ToString as _;
    use postcard::from_bytes;

    use crate::message::encode;

    #[test]
    fn addresses_keep_their_numbers_on_the_wire() {
        let socket = Address::Udp(([10, 0, 0, 2], 7272).into());
        assert_eq!(encode(&socket), [0, 0, 10, 0, 0, 2, 0xE8, 0x38]);
        assert_eq!(encode(&Address::Mesh([1, 2, 3, 4, 5, 6])), [2, 1, 2, 3, 4, 5, 6]);
        assert_eq!(encode(&Address::Line(7)), [3, 7]);
        assert_eq!(encode(&Address::Relayed([8; 8])), [4, 8, 8, 8, 8, 8, 8, 8, 8]);
        for address in [socket, Address::Mesh([9; 6]), Address::Line(255), Address::Relayed([1; 8])]
        {
            assert_eq!(from_bytes(&encode(&address)), Ok(address));
        }
    }

    #[test]
    fn each_kind_of_address_is_shown_by_its_kind() {
        let socket = Address::Udp(([10, 0, 0, 2], 7272).into());
        assert_eq!(socket.to_string(), "10.0.0.2:7272");
        assert_eq!(Address::Mesh([0xA, 2, 0, 0xFF, 5, 6]).to_string(), "mesh:0a0200ff0506");
        assert_eq!(Address::Line(7).to_string(), "line:7");
        assert_eq!(Address::Relayed([7; 8]).to_string(), "its hub's relay");
    }

    #[test]
    fn number_without_an_address_is_refused() {
        for bytes in [&[1][..], &[1, 5], &[4, 0], &[5, 0]] {
            assert!(from_bytes::<Address>(bytes).is_err(), "{bytes:?}");
        }
    }
}
