//! Flooding: every node passes every body on once, after a short random wait.
//!
//! Source: Ho, Obraczka, Tsudik and Viswanath, "Flooding for reliable multicast in multi-hop ad hoc
//! networks" (DIALM 1999); the wait is RFC 5148's jitter, without which neighbours that hear a body
//! at the same time would collide. The state machine is [`crate::broadcast`]'s; nothing is redundant.

use core::time::Duration;

use crate::broadcast::{Broadcast, Heard, Policy};

/// Flooding.
pub type Flooding = Broadcast<Everything>;

/// Passes everything on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Everything {
    /// The longest wait.
    pub jitter: Duration,
}

impl Default for Everything {
    fn default() -> Self {
        Self { jitter: Duration::from_millis(20) }
    }
}

impl Policy for Everything {
    const NUMBER: u8 = 5;
    const NAME: &'static str = "flooding";

    fn wait_max(&self) -> Duration {
        self.jitter
    }

    fn is_redundant(&self, _: &Heard) -> bool {
        false
    }
}
