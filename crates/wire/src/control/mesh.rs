//! Requests of an owner about the mesh and about experiments in it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Enrol;
use crate::limits::PARAMETER_BYTES_MAX;
use crate::message::growing;
use crate::{Name, PublicKey};

/// The owner's invitation to a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// As the owner signed it, for this device alone.
    pub invitation: Vec<u8>,
}

/// The owner's word that a device is a member of the mesh, and what its name is. Who carries it to the
/// device can't change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// As in [`Join`].
    pub invitation: Vec<u8>,
    /// Which name the device carries.
    pub enrol: Enrol,
}

/// Asks for the strangers that have knocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrangersQuery {
    /// The device's own machine that the owner waits for, if for one.
    pub awaited: Option<PublicKey>,
}

/// A device that isn't in the mesh, and asks to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStranger {
    /// Its statement, with its proof to its owner.
    pub knock: Vec<u8>,
    /// The member that heard it.
    pub by: String,
    /// How long ago.
    pub age_s: u32,
}

/// Datagrams of somebody's sessions with another device of the mesh: the owner's, or those of a tenant who has shown a
/// pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carry {
    /// Drawn at random by each tool, so that two at once don't take each other's answers.
    pub tool: u32,
    /// Where to: a node's id in the mesh.
    pub to: [u8; 6],
    /// The datagrams.
    pub datagrams: Vec<Vec<u8>>,
    /// How long the answer may wait until something has come for the tool, in milliseconds.
    #[serde(default)]
    pub wait_ms: u16,
}

/// The longest sum of the datagrams that one [`Carry`] or its answer has, in bytes.
pub const CARRIED_BYTES_MAX: usize = PARAMETER_BYTES_MAX - 512;

/// The most tools, or devices that they speak to, that a member carries datagrams for at once; the one that
/// was served longest ago makes room.
pub const CARRYING_TOOLS_MAX: usize = 4;

/// The time for which a member remembers a tool that fetches nothing, in seconds.
pub const CARRYING_PATIENCE_S: u64 = 30;

/// The most calls of the owner's tools that a member holds until something comes; others are answered at once.
pub const HELD_OWNERS_MAX: usize = 2;

/// The most calls of tenants' tools that a member holds.
pub const HELD_TENANTS_MAX: usize = 2;

/// The longest time for which a member holds a call, in milliseconds.
pub const HELD_MS_MAX: u16 = 5_000;

/// The most passes that a member remembers at once; the one that was used longest ago makes room. They have
/// [`CARRYING_TOOLS_MAX`] tools in all, beside the owner's.
pub const CARRIED_PASSES_MAX: usize = 4;

/// A tenant's datagram counts as one unit for each begun so many bytes.
pub const CARRIED_UNIT_BYTES: usize = 512;

/// The most units that a member sends for one tenant at once.
pub const CARRIED_UNITS_AT_ONCE: u32 = 64;

/// The units that a tenant has again each second.
pub const CARRIED_UNITS_PER_S: u32 = 16;

/// The notes of a device that took part in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentLog {
    /// The device's name in the mesh.
    pub node: String,
    /// Its name, if its record has come.
    pub device: Option<Name>,
    /// Its last lines.
    pub text: String,
}

/// A device's knowledge of its mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStatus {
    /// Its name in the mesh.
    pub node: String,
    /// Its neighbours.
    pub neighbours: u32,
    /// The ways that it knows, as many as fit.
    #[serde(with = "growing::list")]
    pub ways: Vec<MeshWay>,
}

/// A way in the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshWay {
    /// Where to.
    pub to: String,
    /// The name of the device there, if its record has come.
    pub device: Option<Name>,
    /// The neighbour that it begins with.
    pub next_hop: String,
    /// How long it is: expected transmissions, in 64ths.
    pub metric: u16,
}
