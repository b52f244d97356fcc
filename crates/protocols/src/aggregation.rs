//! Rounds, links and answers of aggregations that spread a sum as if it were a fluid.
//!
//! A [`Method`] says how much flows over a link: [Push-Sum](crate::push_sum),
//! [LiMoSense](crate::limosense), [Flow Updating](crate::flow_updating).
//!
//! ```text
//!   every round:   the method lets something flow, and says what neighbours are told of it
//!   told so:       the method takes it; the extremes are merged
//!   link down:     its flows are forgotten, unless it is up again soon
//! ```

use alloc::vec::Vec;
use core::fmt::Debug;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Destination, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Random, Reception,
};

use crate::extremes::Extremes;
use crate::interface::{Contribute, LinkDown, LinkUp, Summarise, Summary};
use crate::mass::Mass;

#[cfg(test)]
pub(crate) mod tests;

/// How long a link must be down until its flows are forgotten. What is forgotten is all that ever went
/// over it, and much more than what went one way on balance: were links forgotten that lose much and are
/// down for a moment now and then, sums would never come to rest.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The node's own value.
    pub value: f64,
    /// Whether it is the one node with the unit, by which all count.
    pub has_unit: bool,
    /// The time between rounds.
    pub interval: Duration,
    /// The most neighbours.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            value: 0.0,
            has_unit: false,
            interval: Duration::from_millis(250),
            neighbours_max: 48,
        }
    }
}

/// The mass that flows over links, and when it is forgotten.
pub trait Method: Debug + Default + Send + 'static {
    /// The number of the aggregation by this method.
    const NUMBER: u8;
    /// Its name.
    const NAME: &'static str;
    /// The state of each link.
    type Flow: Debug + Default + Send;

    /// The mass here, on a node that brings along `own`.
    fn mass(&self, own: Mass, links: &[Link<Self::Flow>]) -> Mass;

    /// Lets something flow, and gives what is told of it; `None` if there is nobody to tell.
    fn round(
        &mut self,
        own: Mass,
        links: &mut [Link<Self::Flow>],
        random: &mut Random,
    ) -> Option<Told>;

    /// Takes what came over a link. The masses in it are finite.
    fn take(&mut self, share: Mass, flow: &mut Self::Flow, parts: &[u8], node: NodeId);
}

/// A link that is up, or was a short time ago.
#[derive(Clone, Copy, Debug)]
pub struct Link<F> {
    /// Where it leads.
    pub neighbour: NodeId,
    /// The flow over it.
    pub flow: F,
    down_since: Option<Instant>,
}

/// The message to neighbours on a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The receiver.
    pub to: Destination,
    /// The mass that is told.
    pub share: Mass,
    /// The method's part.
    pub parts: Vec<u8>,
}

/// A protocol that adds the node's own value to what all nodes' values come to.
pub(crate) trait Contributes: Protocol {
    /// The sum of all values, as far as that is known.
    fn summary(&self) -> Option<Summary>;

    /// The node's own value.
    fn value(&mut self) -> &mut f64;

    /// The node's own value is another one now.
    fn value_changed(&mut self, _: &mut Context<'_, Self>)
    where
        Self: Sized,
    {
    }
}

/// Lets a protocol that [`Contributes`] answer what aggregations are asked.
macro_rules! answer {
    ([$($parameters:tt)*] $protocol:ty) => {
        impl<$($parameters)*> tenure_mesh::Serves<$crate::interface::Summarise> for $protocol {
            fn serve(
                &mut self,
                _: $crate::interface::Summarise,
                _: &tenure_mesh::Question<'_, $crate::interface::Summarise>,
                _: &mut tenure_mesh::Context<'_, Self>,
            ) -> Option<Option<$crate::interface::Summary>> {
                Some($crate::aggregation::Contributes::summary(self))
            }
        }

        impl<$($parameters)*> tenure_mesh::Serves<$crate::interface::Contribute> for $protocol {
            fn serve(
                &mut self,
                contribute: $crate::interface::Contribute,
                _: &tenure_mesh::Question<'_, $crate::interface::Contribute>,
                context: &mut tenure_mesh::Context<'_, Self>,
            ) -> Option<bool> {
                use $crate::aggregation::Contributes;
                let taken = contribute.accepted();
                if let Some(value) = taken {
                    *self.value() = value;
                    self.value_changed(context);
                }
                Some(taken.is_some())
            }
        }
    };
}

pub(crate) use answer;

/// An aggregation by the method `M`.
#[derive(Debug)]
pub struct Aggregation<M: Method> {
    config: Config,
    method: M,
    extremes: Extremes,
    links: Vec<Link<M::Flow>>,
}

/// A neighbour's word on its round; its method's part follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    mass: Mass,
    extremes: Extremes,
}

/// Time for a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round;

tenure_mesh::protocol! {
    [M: Method] Aggregation<M> = M::NUMBER, M::NAME;
    messages { Share = 1 }
    timers { Round = 1 }
    serves { Summarise, Contribute }
    hears { LinkUp, LinkDown }
}

impl<M: Method> Aggregation<M> {
    /// The aggregation, on a node with the value that `config` says.
    pub fn new(config: Config) -> Self {
        let extremes = Extremes::of(config.value);
        Self { config, method: M::default(), extremes, links: Vec::new() }
    }

    /// The sum of all values, as far as that is known.
    pub fn summary(&self) -> Option<Summary> {
        self.method.mass(self.own(), &self.links).summary(&self.extremes)
    }

    fn own(&self) -> Mass {
        Mass::of(self.config.value, self.config.has_unit)
    }

    fn forget_links(&mut self, now: Instant) {
        let is_gone = |since: Instant| now.since(since) >= FORGOTTEN_AFTER;
        self.links.retain(|link| !link.down_since.is_some_and(is_gone));
    }
}

impl<F> Link<F> {
    /// Whether it is up now.
    pub fn is_up(&self) -> bool {
        self.down_since.is_none()
    }
}

/// One of the links that are up, each as likely as the others.
pub fn any_link<'a, F>(links: &'a mut [Link<F>], random: &mut Random) -> Option<&'a mut Link<F>> {
    let up = links.iter().filter(|link| link.is_up()).count();
    let at = random.below(up as u64) as usize;
    links.iter_mut().filter(|link| link.is_up()).nth(at)
}

impl<M: Method> Protocol for Aggregation<M> {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.after_about(self.config.interval, &Round);
    }
}

impl<M: Method> Expires<Round> for Aggregation<M> {
    fn expire(&mut self, _: Round, context: &mut Context<'_, Self>) {
        context.after_about(self.config.interval, &Round);
        self.extremes.round(self.config.value);
        self.forget_links(context.now());
        let own = self.own();
        let told = self.method.round(own, &mut self.links, context.random());
        if let Some(Told { to, share, parts }) = told {
            let share = Share { mass: share, extremes: self.extremes };
            context.transmit(&share, Outgoing { to, body: &parts, ..Outgoing::default() });
        }
    }
}

impl<M: Method> Handles<Share> for Aggregation<M> {
    fn handle(&mut self, share: Share, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let link = self.links.iter_mut().find(|link| link.neighbour == reception.from);
        if let Some(link) = link.filter(|_| share.mass.is_finite()) {
            self.method.take(share.mass, &mut link.flow, reception.body, context.node());
            self.extremes.merge(&share.extremes);
        }
    }
}

impl<M: Method> Hears<LinkUp> for Aggregation<M> {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        let known = self.links.iter_mut().find(|link| link.neighbour == up.neighbour);
        if let Some(link) = known {
            link.down_since = None;
        } else if self.links.len() < self.config.neighbours_max {
            let (neighbour, flow) = (up.neighbour, M::Flow::default());
            self.links.push(Link { neighbour, flow, down_since: None });
        }
    }
}

impl<M: Method> Hears<LinkDown> for Aggregation<M> {
    fn hear(&mut self, down: LinkDown, _: &[u8], context: &mut Context<'_, Self>) {
        let now = context.now();
        let known = self.links.iter_mut().find(|link| link.neighbour == down.neighbour);
        if let Some(link) = known {
            link.down_since.get_or_insert(now);
        }
        self.forget_links(now);
    }
}

impl<M: Method> Contributes for Aggregation<M> {
    fn summary(&self) -> Option<Summary> {
        self.summary()
    }

    fn value(&mut self) -> &mut f64 {
        &mut self.config.value
    }
}

answer! { [M: Method] Aggregation<M> }
