//! Aggregation by flows that are kept antisymmetric: Flow Updating (Jesus, Baquero and Almeida,
//! "Fault-Tolerant Aggregation by Flow Updating", DAIS 2009).
//!
//! ```text
//!   estimate = own - flows to all neighbours
//!
//!   every round:  average the own estimate with those that neighbours had last;
//!                 let as much more flow to each as it lacks of the average; tell it flow and average
//!   told so:      the flow from here is the opposite of that there
//!   link down:    its flow is forgotten, unless it is up again soon
//! ```
//!
//! Each message says the whole flow of its link, so loss and repetition do no harm, and all nodes come
//! to the average of those that are there now.

use alloc::vec::Vec;

use tenure_mesh::{Destination, NodeId, Random, decode};

use crate::aggregation::{Aggregation, Link, Method, Told};
use crate::mass::Mass;

#[cfg(test)]
mod tests;

/// The protocol. What neighbours are told beside the average are the flows to all of them: for each
/// its id, and the flow.
pub type FlowUpdating = Aggregation<Averages>;

/// Averages with the neighbours.
#[derive(Debug, Default)]
pub struct Averages;

/// The flow over a link.
#[derive(Debug, Default)]
pub struct Flow {
    /// From here to there.
    out: Mass,
    /// The neighbour's last estimate.
    estimate: Option<Mass>,
}

impl Method for Averages {
    const NUMBER: u8 = 0x2B;
    const NAME: &'static str = "flow-updating";
    type Flow = Flow;

    fn mass(&self, own: Mass, links: &[Link<Flow>]) -> Mass {
        links.iter().fold(own, |mass, link| mass - link.flow.out)
    }

    fn round(&mut self, own: Mass, links: &mut [Link<Flow>], _: &mut Random) -> Option<Told> {
        let own = self.mass(own, links);
        let heard = links.iter().filter_map(|link| link.flow.estimate);
        let (sum, number) =
            heard.fold((own, 1.0), |(sum, number), estimate| (sum + estimate, number + 1.0));
        let average = sum * (1.0 / number);
        let mut parts = Vec::new();
        for Link { neighbour, flow, .. } in links {
            if let Some(estimate) = &mut flow.estimate {
                flow.out += average - *estimate;
                *estimate = average;
            }
            // Serialising a few numbers into memory doesn't fail.
            parts = postcard::to_extend(&(*neighbour, flow.out), parts).unwrap_or_default();
        }
        Some(Told { to: Destination::All, share: average, parts })
    }

    fn take(&mut self, share: Mass, flow: &mut Flow, mut parts: &[u8], node: NodeId) {
        while let Some(((to, out), rest)) = decode::<(NodeId, Mass)>(parts) {
            parts = rest;
            if to == node && out.is_finite() {
                *flow = Flow { out: -out, estimate: Some(share) };
            }
        }
    }
}
