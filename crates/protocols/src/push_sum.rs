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
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Protocol, Question, Reception, Serves,
};

use crate::extremes::Extremes;
use crate::interface::{Contribute, LinkDown, LinkUp, Summarise, Summary};
use crate::mass::Mass;

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

/// Half of what a node had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Half {
    mass: Mass,
    extremes: Extremes,
}

/// Time for a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round;

/// The protocol.
#[derive(Debug)]
pub struct PushSum {
    config: Config,
    mass: Mass,
    extremes: Extremes,
    neighbours: Vec<NodeId>,
}

tenure_mesh::protocol! {
    PushSum = 0x29, "push-sum";
    messages { Half = 1 }
    timers { Round = 1 }
    serves { Summarise, Contribute }
    hears { LinkUp, LinkDown }
}

impl PushSum {
    /// The protocol, on a node with the value that `config` says.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            mass: Mass::of(config.value, config.has_unit),
            extremes: Extremes::of(config.value),
            neighbours: Vec::new(),
        }
    }

    /// What all values come to, as far as that is known.
    pub fn summary(&self) -> Option<Summary> {
        self.mass.summary(&self.extremes)
    }
}

impl Protocol for PushSum {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().around(self.config.interval);
        context.after(first, &Round);
    }
}

impl Expires<Round> for PushSum {
    fn expire(&mut self, _: Round, context: &mut Context<'_, Self>) {
        let pause = context.random().around(self.config.interval);
        context.after(pause, &Round);
        self.extremes.round(self.config.value);
        let at = context.random().below(self.neighbours.len() as u64) as usize;
        if let Some(neighbour) = self.neighbours.get(at) {
            self.mass = self.mass * 0.5;
            context.send(*neighbour, &Half { mass: self.mass, extremes: self.extremes });
        }
    }
}

impl Handles<Half> for PushSum {
    fn handle(&mut self, half: Half, _: Reception<'_>, _: &mut Context<'_, Self>) {
        if half.mass.is_finite() {
            self.mass += half.mass;
            self.extremes.merge(&half.extremes);
        }
    }
}

impl Hears<LinkUp> for PushSum {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        let has_room = self.neighbours.len() < self.config.neighbours_max;
        if has_room && !self.neighbours.contains(&up.neighbour) {
            self.neighbours.push(up.neighbour);
        }
    }
}

impl Hears<LinkDown> for PushSum {
    fn hear(&mut self, down: LinkDown, _: &[u8], _: &mut Context<'_, Self>) {
        self.neighbours.retain(|neighbour| *neighbour != down.neighbour);
    }
}

impl Serves<Summarise> for PushSum {
    fn serve(
        &mut self,
        _: Summarise,
        _: &Question<'_, Summarise>,
        _: &mut Context<'_, Self>,
    ) -> Option<Option<Summary>> {
        Some(self.summary())
    }
}

impl Serves<Contribute> for PushSum {
    fn serve(
        &mut self,
        contribute: Contribute,
        _: &Question<'_, Contribute>,
        _: &mut Context<'_, Self>,
    ) -> Option<bool> {
        let is_taken = contribute.value.is_finite();
        if is_taken {
            self.mass.sum += contribute.value - self.config.value;
            self.config.value = contribute.value;
        }
        Some(is_taken)
    }
}
