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
//! What is forgotten is all that ever went over a link, and much more than what went one way on
//! balance. So links that fail for a moment must not be forgotten, or sums never come to rest.
//!
//! Because a message says all that ever went over its link, the next one makes good for one that was
//! lost, and one that comes twice does no harm. A node that leaves takes only its own value along,
//! once its neighbours notice.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Protocol, Question, Reception, Serves,
};

use crate::extremes::Extremes;
use crate::interface::{Contribute, LinkDown, LinkUp, Summarise, Summary};
use crate::mass::Mass;

pub use crate::push_sum::Config;

#[cfg(test)]
mod tests;

/// A link is forgotten that has been down so long.
const FORGET_AFTER: Duration = Duration::from_secs(15);

/// All that ever went to the neighbour that hears this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    sent: Mass,
    extremes: Extremes,
}

/// Time for a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round;

/// The protocol.
#[derive(Debug)]
pub struct LimoSense {
    config: Config,
    extremes: Extremes,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    neighbour: NodeId,
    sent: Mass,
    received: Mass,
    down_since: Option<Instant>,
}

tenure_mesh::protocol! {
    LimoSense = 0x2A, "limosense";
    messages { Flow = 1 }
    timers { Round = 1 }
    serves { Summarise, Contribute }
    hears { LinkUp, LinkDown }
}

impl LimoSense {
    /// The protocol, on a node with the value that `config` says.
    pub fn new(config: Config) -> Self {
        Self { config, extremes: Extremes::of(config.value), links: Vec::new() }
    }

    /// What all values come to, as far as that is known.
    pub fn summary(&self) -> Option<Summary> {
        self.mass().summary(&self.extremes)
    }

    fn mass(&self) -> Mass {
        let own = Mass::of(self.config.value, self.config.has_unit);
        self.links.iter().fold(own, |mass, link| mass + link.received - link.sent)
    }
}

impl Protocol for LimoSense {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().around(self.config.interval);
        context.after(first, &Round);
    }
}

impl Expires<Round> for LimoSense {
    fn expire(&mut self, _: Round, context: &mut Context<'_, Self>) {
        let pause = context.random().around(self.config.interval);
        context.after(pause, &Round);
        self.extremes.round(self.config.value);
        let now = context.now();
        let is_gone = |since: Instant| now.since(since) >= FORGET_AFTER;
        self.links.retain(|link| !link.down_since.is_some_and(is_gone));
        let half = self.mass() * 0.5;
        let up = self.links.iter().filter(|link| link.down_since.is_none()).count();
        let at = context.random().below(up as u64) as usize;
        let mut up = self.links.iter_mut().filter(|link| link.down_since.is_none());
        if let Some(link) = up.nth(at) {
            // While something is out of step, there may be less than nothing to give.
            if half.count > 0.0 {
                link.sent += half;
            }
            context.send(link.neighbour, &Flow { sent: link.sent, extremes: self.extremes });
        }
    }
}

impl Handles<Flow> for LimoSense {
    fn handle(&mut self, flow: Flow, reception: Reception<'_>, _: &mut Context<'_, Self>) {
        let link = self.links.iter_mut().find(|link| link.neighbour == reception.from);
        if let Some(link) = link.filter(|_| flow.sent.is_finite()) {
            link.received = flow.sent;
            self.extremes.merge(&flow.extremes);
        }
    }
}

impl Hears<LinkUp> for LimoSense {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        let known = self.links.iter_mut().find(|link| link.neighbour == up.neighbour);
        if let Some(link) = known {
            link.down_since = None;
        } else if self.links.len() < self.config.neighbours_max {
            let (neighbour, nothing) = (up.neighbour, Mass::default());
            self.links.push(Link { neighbour, sent: nothing, received: nothing, down_since: None });
        }
    }
}

impl Hears<LinkDown> for LimoSense {
    fn hear(&mut self, down: LinkDown, _: &[u8], context: &mut Context<'_, Self>) {
        let now = context.now();
        let known = self.links.iter_mut().find(|link| link.neighbour == down.neighbour);
        if let Some(link) = known {
            link.down_since.get_or_insert(now);
        }
    }
}

impl Serves<Summarise> for LimoSense {
    fn serve(
        &mut self,
        _: Summarise,
        _: &Question<'_, Summarise>,
        _: &mut Context<'_, Self>,
    ) -> Option<Option<Summary>> {
        Some(self.summary())
    }
}

impl Serves<Contribute> for LimoSense {
    fn serve(
        &mut self,
        contribute: Contribute,
        _: &Question<'_, Contribute>,
        _: &mut Context<'_, Self>,
    ) -> Option<bool> {
        let is_taken = contribute.value.is_finite();
        if is_taken {
            self.config.value = contribute.value;
        }
        Some(is_taken)
    }
}
