//! Records everything that reaches a device, and repeats the run from the record.
//!
//! A [`Recorded`] node is a [`Door`](tenure_node::Door) like the node itself: what a board hands in and takes out goes
//! through it onto a [`Tape`]. [`replay`] boots a node on the flash as it was, hands it the same input, and compares
//! every output and, at the end, the flash ([ADR 20](../../../docs/adr/0020-one-door-and-a-record-of-it.md)).
//!
//! Invariants:
//! - A record that can't be written on is given up, and the device runs on.
//! - A replay reads no clock, no entropy and no peripheral: the record has them.
//! - A record is read with suspicion: a damaged one ends in an error, never in a panic.
#![forbid(unsafe_code)]

mod entry;
mod player;
mod recorded;
mod tape;

pub use player::{Audience, ReplayError, Replayed, replay};
pub use recorded::Recorded;
pub use tape::Tape;
