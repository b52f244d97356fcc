//! Where a device can be reached.

use core::fmt;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The address of a device on one of the links that nodes run over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    /// A UDP port on an IPv4 or IPv6 host.
    Udp(SocketAddr),
    /// A place in the simulator, by number.
    Simulated(u32),
    /// A node of the mesh that this one has joined, by its id there.
    Mesh([u8; 6]),
    /// Whoever is at the other end of a serial line of this device, by the line's number.
    Line(u8),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(socket) => write!(f, "{socket}"),
            Self::Simulated(place) => write!(f, "simulated:{place}"),
            Self::Line(line) => write!(f, "line:{line}"),
            Self::Mesh(node) => {
                f.write_str("mesh:")?;
                node.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        Self::Udp(socket)
    }
}
