//! Aggregation by halves whose loss is made good: LiMoSense (Eyal, Keidar and Rom, "LiMoSense: Live
//! Monitoring in Dynamic Sensor Networks", ALGOSENSORS 2011).
//!
//! ```text
//!   mass = own + all that came from each neighbour - all that went to each neighbour
//!
//!   every round:  half of the mass is added to what went to a neighbour, chosen at random,
//!                 and the neighbour is told all that ever went to it
//!   told so:      that is what came from this neighbour, whatever came before
//!   link down:    what came and went over it is forgotten, unless it is up again soon
//! ```
//!
//! Because a message says all that ever went over its link, the next one makes good for one that was
//! lost, and one that comes twice does no harm. A node that leaves takes only its own value along,
//! once its neighbours notice.

use alloc::vec::Vec;

use tenure_mesh::{Destination, NodeId, Random};

use crate::aggregation::{Aggregation, Link, Method, Told, any_link};
use crate::mass::Mass;

#[cfg(test)]
mod tests;

/// The protocol.
pub type LimoSense = Aggregation<Totals>;

/// Pushes halves, and tells all that ever went.
#[derive(Debug, Default)]
pub struct Totals;

/// All that ever went over a link.
#[derive(Debug, Default)]
pub struct Flow {
    sent: Mass,
    received: Mass,
}

impl Method for Totals {
    const NUMBER: u8 = 0x2A;
    const NAME: &'static str = "limosense";
    type Flow = Flow;

    fn mass(&self, own: Mass, links: &[Link<Flow>]) -> Mass {
        links.iter().fold(own, |mass, link| mass + link.flow.received - link.flow.sent)
    }

    fn round(&mut self, own: Mass, links: &mut [Link<Flow>], random: &mut Random) -> Option<Told> {
        let half = self.mass(own, links) * 0.5;
        let link = any_link(links, random)?;
        // While something is out of step, there may be less than nothing to give.
        if half.count > 0.0 {
            link.flow.sent += half;
        }
        let (to, share) = (Destination::One(link.neighbour), link.flow.sent);
        Some(Told { to, share, parts: Vec::new() })
    }

    fn take(&mut self, share: Mass, flow: &mut Flow, _: &[u8], _: NodeId) {
        flow.received = share;
    }
}
