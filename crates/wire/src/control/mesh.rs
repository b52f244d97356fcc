//! What an owner asks about the mesh and about experiments in it.

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

/// Who has knocked?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrangersQuery {
    /// The device's own machine that the owner waits for, if for one.
    pub awaited: Option<PublicKey>,
}

/// A device that isn't in the mesh, and asks to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStranger {
    /// What it said, with its proof to its owner.
    pub knock: Vec<u8>,
    /// The member that heard it.
    pub by: String,
    /// How long ago.
    pub age_s: u32,
}

/// Datagrams of the owner's sessions with another device of the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carry {
    /// Drawn at random by each of the owner's tools, so that two at once don't take each other's answers.
    pub tool: u32,
    /// Where to: a node's id in the mesh.
    pub to: [u8; 6],
    /// What is sent there.
    pub datagrams: Vec<Vec<u8>>,
}

/// The longest sum of the datagrams that one [`Carry`] or its answer has, in bytes.
pub const CARRIED_BYTES_MAX: usize = PARAMETER_BYTES_MAX - 512;

/// The most tools, or devices that they speak to, that a member carries datagrams for at once; the one that
/// was served longest ago makes room.
pub const CARRYING_TOOLS_MAX: usize = 4;

/// The time for which a member remembers a tool that fetches nothing, in seconds.
pub const CARRYING_PATIENCE_S: u64 = 30;

/// What a device noted while it took part in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentLog {
    /// What the device is called in the mesh.
    pub node: String,
    /// Its name, if its record has come.
    pub device: Option<Name>,
    /// Its last lines.
    pub text: String,
}

/// What a device knows of its mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStatus {
    /// What it is called in the mesh.
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
