//! Aggregation by pushing halves: Push-Sum (Kempe, Dobra and Gehrke, "Gossip-Based Computation of
//! Aggregate Information", FOCS 2003).
//!
//! ```text
//!   every round:  half of the mass goes to a neighbour, chosen at random; half stays
//!   mass comes:   it is added
//! ```
//!
//! It is as good as its links: a message that is lost takes its mass along, and a node that leaves
//! too. [`crate::limosense`] is the same with that repaired; this one is for links that repeat until
//! they are acknowledged, and to compare with.

use alloc::vec::Vec;

use tenure_mesh::{Destination, NodeId, Random};

use crate::aggregation::{Aggregation, Link, Method, Told, any_link};
use crate::mass::Mass;

#[cfg(test)]
mod tests;

/// The protocol.
pub type PushSum = Aggregation<Halves>;

/// Pushes halves.
#[derive(Debug, Default)]
pub struct Halves {
    /// The rest of the node's contribution when it was last looked at.
    mass: Mass,
    own: Mass,
}

impl Method for Halves {
    const NUMBER: u8 = 0x29;
    const NAME: &'static str = "push-sum";
    type Flow = ();

    fn mass(&self, own: Mass, _: &[Link<()>]) -> Mass {
        // Kept as it is, and not as a balance: what links leave of it may be small beside what was there.
        self.mass + (own - self.own)
    }

    fn round(&mut self, own: Mass, links: &mut [Link<()>], random: &mut Random) -> Option<Told> {
        let link = any_link(links, random)?;
        let share = self.mass(own, &[]) * 0.5;
        (self.mass, self.own) = (share, own);
        Some(Told { to: Destination::One(link.neighbour), share, parts: Vec::new() })
    }

    fn take(&mut self, share: Mass, _: &mut (), _: &[u8], _: NodeId) {
        self.mass += share;
    }
}
