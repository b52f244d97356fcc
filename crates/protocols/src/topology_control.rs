//! Topology control: cuts links and makes them lossy, so that an experiment has the network it
//! wants wherever the nodes stand.
//!
//! Source: the topology manager of Yggdrasil (SAC 2020) §5. It stands between the network and every
//! other protocol as an interceptor: see [`put_in_place`]. What it doesn't shape it lets through.
//!
//! ```text
//!         Shape { lost: n }                 Shape { lost: 0 }
//!  open ─────────────────────► lossy (1000: cut) ─────────────► open
//! ```

use alloc::vec::Vec;

use tenure_mesh::{
    Context, Covers, Declared, Destination, Dispatcher, Event, Intercepts, NodeId, NotHere,
    Passage, Protocol, Question, Queues, Serves, Stack, Timers, Verdict, Way,
};

use crate::interface::{Shape, Shaped};

#[cfg(test)]
mod tests;

/// The most links that are shaped.
const LINKS_MAX: usize = 128;

/// Topology control.
#[derive(Debug, Default)]
pub struct TopologyControl {
    /// The neighbours whose messages are lost, and how many of a thousand.
    links: Vec<(NodeId, u16)>,
}

tenure_mesh::protocol! {
    TopologyControl = 15, "topology control";
    serves { Shape }
    intercepts;
}

/// Starts topology control and puts it between the network and all other protocols.
///
/// # Errors
/// None as long as the stack starts what it is told to.
pub fn put_in_place<D: Dispatcher, Q: Queues, T: Timers>(
    stack: &mut Stack<D, Q, T>,
    now: tenure_hal::Instant,
) -> Result<(), NotHere> {
    stack.start(now, TopologyControl::default());
    stack.intercept(TopologyControl::DESCRIPTION.number, None, Covers::Network)
}

impl TopologyControl {
    fn lost_permille(&self, neighbour: NodeId) -> u32 {
        self.links.iter().find(|link| link.0 == neighbour).map_or(0, |link| link.1.into())
    }
}

impl Protocol for TopologyControl {}

impl Serves<Shape> for TopologyControl {
    fn serve(
        &mut self,
        Shape { neighbour, lost_permille }: Shape,
        _: &Question<'_, Shape>,
        _: &mut Context<'_, Self>,
    ) -> Option<Shaped> {
        self.links.retain(|link| link.0 != neighbour);
        if lost_permille == 0 {
            return Some(Shaped::Yes);
        }
        if self.links.len() >= LINKS_MAX {
            return Some(Shaped::Full);
        }
        self.links.push((neighbour, lost_permille));
        Some(Shaped::Yes)
    }
}

impl Intercepts for TopologyControl {
    fn intercept(
        &mut self,
        passage: &Passage,
        _: &mut Vec<u8>,
        context: &mut Context<'_, Self>,
    ) -> Verdict {
        // A message to one neighbour is lost at its sender. A broadcast goes out, and is lost at each of its
        // receivers: so both ends of a link are to be shaped, and the loss of a message for one neighbour is
        // drawn only once. A link that loses everything loses messages from the neighbour too.
        let neighbour = match passage.way {
            Way::In { envelope } => match envelope.event {
                Event::Message { from, addressed: false, .. } => from,
                Event::Message { from, .. } if self.lost_permille(from) == 1000 => from,
                _ => return Verdict::Pass,
            },
            Way::Out { to: Destination::One(to), .. } => to,
            Way::Out { .. } | Way::Within { .. } => return Verdict::Pass,
        };
        let lost = self.lost_permille(neighbour);
        if lost > 0 && context.random().chance(lost) { Verdict::Stop } else { Verdict::Pass }
    }
}
