//! Distance-based broadcast: a node that heard a body from nearby doesn't pass it on, because it
//! would reach hardly anybody new.
//!
//! Source: Ni et al. (MobiCom 1999) §3.3, with the strength of the signal for the distance, as they
//! propose. Where the link doesn't know it, copies are [counted](crate::counter_broadcast) instead.
//! The state machine is [`crate::broadcast`]'s.

use core::time::Duration;

use crate::broadcast::{Broadcast, Heard, Policy};

/// Distance-based broadcast.
pub type DistanceBroadcast = Broadcast<Distance>;

/// Finds redundant what was heard strongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// From this strength on, in dBm, the sender is near.
    pub near_dbm: i8,
    /// How many copies are enough, however far their senders are.
    pub enough: u32,
    /// The longest wait.
    pub wait: Duration,
}

impl Default for Distance {
    fn default() -> Self {
        Self { near_dbm: -65, enough: 4, wait: Duration::from_millis(80) }
    }
}

impl Policy for Distance {
    const NUMBER: u8 = 7;
    const NAME: &'static str = "distance broadcast";

    fn wait_max(&self) -> Duration {
        self.wait
    }

    fn is_redundant(&self, heard: &Heard) -> bool {
        heard.copies >= self.enough
            || heard.strongest_dbm.is_some_and(|strongest| strongest >= self.near_dbm)
    }
}
