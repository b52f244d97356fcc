//! A client of MQTT 5.0 (OASIS Standard, 7 March 2019), over any stream of bytes. Clauses (§) are that standard's.
//!
//! Bytes of the broker go into [`Session::receive`], bytes for it come out of [`Session::output`], and [`Session::event`] says
//! what happened. Nothing blocks and nothing reads a clock.
//!
//! Invariants:
//! - What a broker can fill has a limit: the length of a packet, the messages under way in both directions, the bytes to send.
//! - The queue of messages for the broker keeps to its limits of messages and bytes, whatever the broker does.
//! - What must be known after a restart is told by [`Session::change`] before the bytes that depend on it are in
//!   [`Session::output`]: whoever writes the changes down first and sends then keeps each promise of QoS 1 and 2.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fault;
mod packet;
mod queue;
mod reason;
mod session;
mod topic;
mod wire;

pub use fault::Fault;
pub use queue::{Outgoing, QueueLimits, Stage};
pub use reason::Reason;
pub use session::{Change, Config, Event, Kept, Session, Subscription};
pub use topic::{TopicError, check_filter, check_topic, matches};

use alloc::string::String;
use alloc::vec::Vec;

/// The promise by which a message is handed over (§4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// Once at most.
    #[default]
    AtMostOnce,
    /// Once at least.
    AtLeastOnce,
    /// Exactly once.
    ExactlyOnce,
}

impl Qos {
    /// The QoS of that number; there are 0, 1 and 2.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// An application message (§3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its topic name.
    pub topic: String,
    /// Its payload.
    pub payload: Vec<u8>,
    /// The promise.
    pub qos: Qos,
    /// Whether the broker keeps it for subscribers to come; of a message that came, whether it was kept.
    pub retain: bool,
}

#[cfg(test)]
mod tests;
