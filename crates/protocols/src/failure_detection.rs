//! The common part of failure detectors: heartbeats, and suspicion of a silence that lasts too long.
//!
//! Source: Chandra and Toueg, "Unreliable failure detectors for reliable distributed systems" (JACM
//! 1996). How long is too long is a [`Judgement`]: a [fixed timeout](crate::timeout_detector), or
//! [accrual](crate::accrual_detector).
//!
//! ```text
//!            heartbeat            silent for as long as the judgement allows: Suspected
//!  unknown ───────────► trusted ───────────────────────────────────────────────────────► suspected
//!                          ▲                                                                 │
//!                          └─────────────────────────────────────────────────────────────────┘
//!                                             heartbeat: Trusted
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, Expires, Handles, NodeId, Protocol, Reception};

use crate::interface::{Suspected, Trusted};
use crate::oldest::drop_oldest;

#[cfg(test)]
pub(crate) mod tests;

/// How long a neighbour may be silent.
pub trait Judgement: Send + 'static {
    /// The number of the detector that judges so.
    const NUMBER: u8;
    /// Its name.
    const NAME: &'static str;
    /// The memory of each neighbour.
    type History: Default + Send;

    /// How often this node says that it lives.
    fn period(&self) -> Duration;

    /// The most neighbours that are watched.
    fn neighbours_max(&self) -> usize;

    /// A heartbeat came, so long after the one before; the neighbour had been suspected or not.
    fn note(&self, history: &mut Self::History, span: Duration, was_suspected: bool);

    /// How long a silence isn't suspected; `None` as long as too little is known.
    fn patience(&self, history: &Self::History) -> Option<Duration>;
}

/// Failure detection that judges by `J`.
#[derive(Debug)]
pub struct Detector<J: Judgement> {
    pub(crate) judgement: J,
    pub(crate) neighbours: Vec<Neighbour<J::History>>,
}

#[derive(Debug)]
pub(crate) struct Neighbour<H> {
    pub(crate) id: NodeId,
    pub(crate) heard: Instant,
    pub(crate) history: H,
    suspected: bool,
}

/// "I live."
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heartbeat;

/// It is time to say so.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Beat;

/// It is time to look who doesn't.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Look;

tenure_mesh::protocol! {
    [J: Judgement] Detector<J> = J::NUMBER, J::NAME;
    messages { Heartbeat = 1 }
    timers { Beat = 1, Look = 2 }
    tells { Suspected, Trusted }
}

impl<J: Judgement> Detector<J> {
    /// With what was chosen.
    pub fn new(judgement: J) -> Self {
        Self { judgement, neighbours: Vec::new() }
    }

    /// The nodes suspected now.
    pub fn suspected(&self) -> impl Iterator<Item = NodeId> {
        self.neighbours.iter().filter(|it| it.suspected).map(|it| it.id)
    }

    /// Looks again when the next silence would be too long.
    fn arm(&self, context: &mut Context<'_, Self>) {
        let trusted = self.neighbours.iter().filter(|it| !it.suspected);
        if let Some(next) = trusted.filter_map(|it| it.suspected_at(&self.judgement)).min() {
            context.after(next.since(context.now()), &Look);
        }
    }
}

impl<H> Neighbour<H> {
    fn suspected_at<J: Judgement<History = H>>(&self, judgement: &J) -> Option<Instant> {
        Some(self.heard + judgement.patience(&self.history)?)
    }
}

impl<J: Judgement> Protocol for Detector<J> {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let wait = context.random().below_span(self.judgement.period());
        context.after(wait, &Beat);
    }
}

impl<J: Judgement> Expires<Beat> for Detector<J> {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        context.broadcast(&Heartbeat);
        context.after_about(self.judgement.period(), &Beat);
    }
}

impl<J: Judgement> Handles<Heartbeat> for Detector<J> {
    fn handle(&mut self, _: Heartbeat, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (id, now) = (reception.from, context.now());
        if let Some(known) = self.neighbours.iter_mut().find(|it| it.id == id) {
            let span = now.since(known.heard);
            self.judgement.note(&mut known.history, span, known.suspected);
            known.heard = now;
            if core::mem::take(&mut known.suspected) {
                context.tell(&Trusted { neighbour: id }, &[]);
            }
        } else {
            drop_oldest(&mut self.neighbours, self.judgement.neighbours_max(), |it| it.heard);
            let history = J::History::default();
            self.neighbours.push(Neighbour { id, heard: now, history, suspected: false });
        }
        self.arm(context);
    }
}

impl<J: Judgement> Expires<Look> for Detector<J> {
    fn expire(&mut self, _: Look, context: &mut Context<'_, Self>) {
        let now = context.now();
        for neighbour in self.neighbours.iter_mut().filter(|it| !it.suspected) {
            if neighbour.suspected_at(&self.judgement).is_some_and(|at| at <= now) {
                neighbour.suspected = true;
                context.tell(&Suspected { neighbour: neighbour.id }, &[]);
            }
        }
        self.arm(context);
    }
}
