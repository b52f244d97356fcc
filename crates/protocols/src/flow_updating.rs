//! Aggregation by flows that are kept antisymmetric: Flow Updating (Jesus, Baquero and Almeida,
//! "Fault-Tolerant Aggregation by Flow Updating", DAIS 2009).
//!
//! ```text
//!   estimate = own - flows to all neighbours
//!
//!   every round:  average the own estimate with those that neighbours had last;
//!                 let as much more flow to each as it lacks of the average; tell it flow and average
//!   told so:      the flow from here is the opposite of that there
//!   link down:    its flow is forgotten
//! ```
//!
//! Each message says the whole flow of its link, so loss and repetition do no harm, and all nodes come
//! to the average of those that are there now.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question, Reception, Serves,
};

use crate::extremes::Extremes;
use crate::interface::{Contribute, LinkDown, LinkUp, Summarise, Summary};
use crate::mass::Mass;

pub use crate::push_sum::Config;

#[cfg(test)]
mod tests;

/// The average that a node has come to. What flows to each neighbour follows: its id, and the flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Average {
    estimate: Mass,
    extremes: Extremes,
}

/// Time for a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round;

/// The protocol.
#[derive(Debug)]
pub struct FlowUpdating {
    config: Config,
    extremes: Extremes,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    neighbour: NodeId,
    /// From here to there.
    flow: Mass,
    /// What the neighbour had last.
    estimate: Option<Mass>,
}

tenure_mesh::protocol! {
    FlowUpdating = 0x2B, "flow-updating";
    messages { Average = 1 }
    timers { Round = 1 }
    serves { Summarise, Contribute }
    hears { LinkUp, LinkDown }
}

impl FlowUpdating {
    /// The protocol, on a node with the value that `config` says.
    pub fn new(config: Config) -> Self {
        Self { config, extremes: Extremes::of(config.value), links: Vec::new() }
    }

    /// What all values come to, as far as that is known.
    pub fn summary(&self) -> Option<Summary> {
        self.estimate().summary(&self.extremes)
    }

    fn estimate(&self) -> Mass {
        let own = Mass::of(self.config.value, self.config.has_unit);
        self.links.iter().fold(own, |mass, link| mass - link.flow)
    }
}

impl Protocol for FlowUpdating {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().around(self.config.interval);
        context.after(first, &Round);
    }
}

impl Expires<Round> for FlowUpdating {
    fn expire(&mut self, _: Round, context: &mut Context<'_, Self>) {
        let pause = context.random().around(self.config.interval);
        context.after(pause, &Round);
        self.extremes.round(self.config.value);
        let own = self.estimate();
        let heard = self.links.iter().filter_map(|link| link.estimate);
        let (sum, number) =
            heard.fold((own, 1.0), |(sum, number), estimate| (sum + estimate, number + 1.0));
        let average = sum * (1.0 / number);
        let mut body = Vec::new();
        for link in &mut self.links {
            if let Some(estimate) = &mut link.estimate {
                link.flow += average - *estimate;
                *estimate = average;
            }
            // Serialising a few numbers into memory doesn't fail.
            body = postcard::to_extend(&(link.neighbour, link.flow), body).unwrap_or_default();
        }
        let message = Average { estimate: average, extremes: self.extremes };
        context.transmit(&message, Outgoing { body: &body, ..Outgoing::default() });
    }
}

impl Handles<Average> for FlowUpdating {
    fn handle(
        &mut self,
        average: Average,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let own = context.node();
        let mut flows = reception.body;
        let Some(link) = self.links.iter_mut().find(|link| link.neighbour == reception.from) else {
            return;
        };
        if !average.estimate.is_finite() {
            return;
        }
        self.extremes.merge(&average.extremes);
        while let Ok(((to, flow), rest)) = postcard::take_from_bytes::<(NodeId, Mass)>(flows) {
            flows = rest;
            if to == own && flow.is_finite() {
                link.flow = -flow;
                link.estimate = Some(average.estimate);
            }
        }
    }
}

impl Hears<LinkUp> for FlowUpdating {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        let is_known = self.links.iter().any(|link| link.neighbour == up.neighbour);
        if !is_known && self.links.len() < self.config.neighbours_max {
            let flow = Mass::default();
            self.links.push(Link { neighbour: up.neighbour, flow, estimate: None });
        }
    }
}

impl Hears<LinkDown> for FlowUpdating {
    fn hear(&mut self, down: LinkDown, _: &[u8], _: &mut Context<'_, Self>) {
        self.links.retain(|link| link.neighbour != down.neighbour);
    }
}

impl Serves<Summarise> for FlowUpdating {
    fn serve(
        &mut self,
        _: Summarise,
        _: &Question<'_, Summarise>,
        _: &mut Context<'_, Self>,
    ) -> Option<Option<Summary>> {
        Some(self.summary())
    }
}

impl Serves<Contribute> for FlowUpdating {
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
