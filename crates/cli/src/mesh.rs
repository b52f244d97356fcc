//! Meshes: members, keys, experiments, and whole meshes in a simulator.

pub mod experiment;
pub mod invite;
pub mod network_key;
pub mod sim;
