//! Records everything that reaches a device, repeats the run from the record, and goes back and forth in it.
//!
//! A [`Recorded`] node is a [`Door`](tenure_node::Door) like the node itself: what a board hands in and takes out goes
//! through it onto a [`Tape`]. [`replay`] boots a node on the flash as it was, hands it the same input, and compares
//! every output and, at the end, the flash ([ADR 20](../../../docs/adr/0020-one-door-and-a-record-of-it.md)).
//! [`remember`] keeps what its machines did meanwhile, and a [`Walk`] goes through that forwards and backwards. A
//! [`Scribe`] keeps the same of any kernel's machines.
//!
//! Invariants:
//! - A record that can't be written on is given up, and the device runs on.
//! - A replay reads no clock, no entropy and no peripheral: the record has them.
//! - A record is read with suspicion: a damaged one ends in an error, never in a panic.
#![forbid(unsafe_code)]

mod entry;
mod history;
mod player;
mod recorded;
mod tape;
mod walk;

pub use history::{History, Kept, Leg, Line, Position, Remembered, Scribe, remember};
pub use player::{Audience, ReplayError, Replayed, replay};
pub use recorded::Recorded;
pub use tape::Tape;
pub use walk::{Stopped, Walk};
