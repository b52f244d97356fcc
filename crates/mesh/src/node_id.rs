//! The identity of a node among its neighbours.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_wire::MachineId;

/// A node's id in a mesh: 48 bits, of a device the first six bytes of its own machine's id.
///
/// In a network of 10,000 nodes two share an id with a probability of 2 in 10 million.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u64);

impl NodeId {
    /// How many bytes an id takes on the wire.
    pub const BYTES: usize = 6;

    /// The id with that number, of which the low 48 bits count.
    pub const fn from_number(number: u64) -> Self {
        Self(number & 0xFFFF_FFFF_FFFF)
    }

    /// The id as a number below 2⁴⁸.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The id in `bytes`.
    pub const fn from_bytes(bytes: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// The id as it stands on the wire.
    pub const fn to_bytes(self) -> [u8; 6] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }
}

impl From<&MachineId> for NodeId {
    /// The id of the device whose own machine has the id `machine`.
    fn from(machine: &MachineId) -> Self {
        let [a, b, c, d, e, f, ..] = machine.0;
        Self::from_bytes([a, b, c, d, e, f])
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

impl core::str::FromStr for NodeId {
    type Err = core::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self::from_number)
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u8; 6]>::deserialize(deserializer).map(Self::from_bytes)
    }
}
