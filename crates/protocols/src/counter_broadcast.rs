//! Counter-based broadcast: a node that hears a body often enough while it waits doesn't pass it on.
//!
//! Source: Ni et al. (MobiCom 1999) §3.2: of a node's range, what three others have covered leaves
//! on average less than a tenth to be gained. The state machine is [`crate::broadcast`]'s.

use core::time::Duration;

use crate::broadcast::{Broadcast, Heard, Policy};

/// Counter-based broadcast.
pub type CounterBroadcast = Broadcast<Counter>;

/// Finds redundant what was heard so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// How many copies are enough.
    pub enough: u32,
    /// The longest wait, in which copies are counted.
    pub wait: Duration,
}

impl Default for Counter {
    fn default() -> Self {
        Self { enough: 3, wait: Duration::from_millis(80) }
    }
}

impl Policy for Counter {
    const NUMBER: u8 = 6;
    const NAME: &'static str = "counter broadcast";

    fn wait_max(&self) -> Duration {
        self.wait
    }

    fn is_redundant(&self, heard: &Heard) -> bool {
        heard.copies >= self.enough
    }
}
