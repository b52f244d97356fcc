//! Failure detection by accrual: how improbable a neighbour's silence is, from how it spoke before.
//!
//! Source: Hayashibara, Défago, Yared and Katayama, "The φ accrual failure detector" (SRDS 2004).
//! φ is −log₁₀ of the probability that a heartbeat comes later than now, if the spans between
//! heartbeats are normally distributed. It is compared with a threshold by the quantiles of that
//! distribution, so that no floating point is needed.
//!
//! ```text
//!            two heartbeats            φ reaches the threshold: Suspected
//!  unknown ─────────────────► trusted ────────────────────────────────────► suspected
//!                                ▲                                              │
//!                                └──────────────────────────────────────────────┘
//!                                                heartbeat: Trusted
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, Expires, Handles, NodeId, Protocol, Reception};

use crate::interface::{Suspected, Trusted};

#[cfg(test)]
mod tests;

/// The quantiles of the normal distribution for φ = 1, 2, 3, …: where its tail is 10⁻ᵠ, in
/// thousandths of the standard deviation.
const QUANTILES: [u32; 12] =
    [1282, 2326, 3090, 3719, 4265, 4753, 5199, 5612, 5998, 6361, 6706, 7034];

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often this node says that it lives.
    pub period: Duration,
    /// From which φ on, 1 to 12, a neighbour is suspected.
    pub threshold: u8,
    /// How many spans are remembered of each neighbour.
    pub spans_max: usize,
    /// The standard deviation is taken to be so much at least.
    pub deviation_min: Duration,
    /// The most neighbours that are watched.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            threshold: 8,
            spans_max: 32,
            deviation_min: Duration::from_millis(100),
            neighbours_max: 32,
        }
    }
}

/// Failure detection by accrual.
#[derive(Debug)]
pub struct AccrualDetector {
    config: Config,
    neighbours: Vec<Neighbour>,
}

#[derive(Debug)]
struct Neighbour {
    id: NodeId,
    heard: Instant,
    /// In milliseconds.
    spans: VecDeque<u32>,
    suspected: bool,
}

/// "I live."
#[derive(Debug, Serialize, Deserialize)]
struct Heartbeat;

/// It is time to say so.
#[derive(Debug, Serialize, Deserialize)]
struct Beat;

/// It is time to look who doesn't.
#[derive(Debug, Serialize, Deserialize)]
struct Look;

tenure_mesh::protocol! {
    AccrualDetector = 11, "accrual detector";
    messages { Heartbeat = 1 }
    timers { Beat = 1, Look = 2 }
    tells { Suspected, Trusted }
}

impl AccrualDetector {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        Self { config, neighbours: Vec::new() }
    }

    /// Who is suspected now.
    pub fn suspected(&self) -> impl Iterator<Item = NodeId> {
        self.neighbours.iter().filter(|it| it.suspected).map(|it| it.id)
    }

    /// How improbable the silence of `neighbour` is: φ, rounded down, at most 12.
    pub fn phi(&self, neighbour: NodeId, now: Instant) -> Option<u8> {
        let neighbour = self.neighbours.iter().find(|it| it.id == neighbour)?;
        let reached =
            |phi: &u8| neighbour.reaches_at(*phi, &self.config).is_some_and(|at| at <= now);
        Some((1..=QUANTILES.len() as u8).take_while(reached).last().unwrap_or(0))
    }

    fn arm(&self, context: &mut Context<'_, Self>) {
        let trusted = self.neighbours.iter().filter(|it| !it.suspected);
        let due = trusted.filter_map(|it| it.reaches_at(self.config.threshold, &self.config));
        if let Some(next) = due.min() {
            context.after(next.since(context.now()), &Look);
        }
    }
}

impl Neighbour {
    /// When φ reaches `phi` if nothing is heard till then; `None` as long as too little is known.
    fn reaches_at(&self, phi: u8, config: &Config) -> Option<Instant> {
        let count = self.spans.len() as u64;
        let mean =
            self.spans.iter().map(|span| u64::from(*span)).sum::<u64>().checked_div(count)?;
        let squares =
            self.spans.iter().map(|span| u64::from(*span).abs_diff(mean).pow(2)).sum::<u64>();
        let deviation = (squares / count).isqrt().max(config.deviation_min.as_millis() as u64);
        let quantile = QUANTILES[usize::from(phi.clamp(1, QUANTILES.len() as u8)) - 1];
        let silence = mean + deviation * u64::from(quantile) / 1000;
        Some(self.heard + Duration::from_millis(silence))
    }
}

impl Protocol for AccrualDetector {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let wait = context.random().below_span(self.config.period);
        context.after(wait, &Beat);
    }
}

impl Expires<Beat> for AccrualDetector {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        context.broadcast(&Heartbeat);
        let wait = context.random().around(self.config.period);
        context.after(wait, &Beat);
    }
}

impl Handles<Heartbeat> for AccrualDetector {
    fn handle(&mut self, _: Heartbeat, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (id, now) = (reception.from, context.now());
        if let Some(known) = self.neighbours.iter_mut().find(|it| it.id == id) {
            let span = now.since(known.heard).as_millis().min(u32::MAX.into()) as u32;
            known.heard = now;
            if known.suspected {
                // A silence that was suspected is an outage, and says nothing of the usual spans.
                known.suspected = false;
                context.tell(&Trusted { neighbour: id }, &[]);
            } else {
                if known.spans.len() >= self.config.spans_max {
                    known.spans.pop_front();
                }
                known.spans.push_back(span);
            }
        } else {
            if self.neighbours.len() >= self.config.neighbours_max {
                let places = self.neighbours.iter().enumerate();
                let Some((oldest, _)) = places.min_by_key(|(_, it)| it.heard) else { return };
                self.neighbours.swap_remove(oldest);
            }
            let spans = VecDeque::new();
            self.neighbours.push(Neighbour { id, heard: now, spans, suspected: false });
        }
        self.arm(context);
    }
}

impl Expires<Look> for AccrualDetector {
    fn expire(&mut self, _: Look, context: &mut Context<'_, Self>) {
        let (now, config) = (context.now(), self.config);
        for neighbour in self.neighbours.iter_mut().filter(|it| !it.suspected) {
            if neighbour.reaches_at(config.threshold, &config).is_some_and(|at| at <= now) {
                neighbour.suspected = true;
                context.tell(&Suspected { neighbour: neighbour.id }, &[]);
            }
        }
        self.arm(context);
    }
}
