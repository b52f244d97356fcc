//! Coverage-based broadcast: a node passes a body on only if it has a neighbour that no copy heard so
//! far can have reached.
//!
//! Sources: Lim and Kim, "Multicast tree construction and flooding in wireless ad hoc networks" (MSWiM
//! 2000), whose self-pruning lets a copy say whom its sender reaches; Peng and Lu, "On the reduction of
//! broadcast redundancy in mobile ad hoc networks" (MobiHoc 2000), whose nodes go on comparing while
//! they wait. Who would reach more that are left waits less, so that few send. And because copies say whom
//! their senders reach, a node knows who else reaches its neighbours, two hops away and out of its hearing:
//! what several of those have, it leaves to them if they come first in an order that all know (Wu and Li,
//! "On calculating connected dominating set", DIAL M 1999). The state machine is [`crate::broadcast`]'s.
//!
//! A copy that is lost on the way to a node that its sender is said to reach stays lost;
//! [reliable broadcast](crate::reliable_broadcast) repairs that.

use core::time::Duration;

use crate::broadcast::{Broadcast, Heard, Policy};

/// Coverage-based broadcast.
pub type CoverageBroadcast = Broadcast<Coverage>;

/// Finds redundant what has reached all neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The longest wait, of who would reach one more neighbour only.
    pub wait: Duration,
    /// A neighbour is reached to which so many frames of 255 arrive.
    pub quality_min: u8,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { wait: Duration::from_millis(120), quality_min: 120 }
    }
}

impl Policy for Coverage {
    const NUMBER: u8 = 17;
    const NAME: &'static str = "coverage broadcast";

    fn wait_max(&self) -> Duration {
        self.wait
    }

    fn reaches_from(&self) -> Option<u8> {
        Some(self.quality_min)
    }

    fn is_redundant(&self, heard: &Heard) -> bool {
        heard.left.is_empty()
    }
}
