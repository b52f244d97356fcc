//! Failure detection by a fixed timeout: a neighbour that says nothing for so long has stopped.
//!
//! Source: Chandra and Toueg, "Unreliable failure detectors for reliable distributed systems" (JACM
//! 1996) §7, of the class ◊P: the timeout grows with each mistake, so mistakes end.
//!
//! ```text
//!            heartbeat            nothing for its timeout: Suspected
//!  unknown ───────────► trusted ──────────────────────────────────────► suspected
//!                          ▲                                                │
//!                          └────────────────────────────────────────────────┘
//!                            heartbeat: Trusted, and its timeout grows
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, Expires, Handles, NodeId, Protocol, Reception};

use crate::interface::{Suspected, Trusted};

#[cfg(test)]
mod tests;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often this node says that it lives.
    pub period: Duration,
    /// How long a neighbour may say nothing, at first.
    pub timeout: Duration,
    /// By how much that grows with each mistake.
    pub growth: Duration,
    /// The most neighbours that are watched.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            timeout: Duration::from_millis(3500),
            growth: Duration::from_secs(1),
            neighbours_max: 64,
        }
    }
}

/// Failure detection by a fixed timeout.
#[derive(Debug)]
pub struct TimeoutDetector {
    config: Config,
    neighbours: Vec<Neighbour>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    id: NodeId,
    heard: Instant,
    timeout: Duration,
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
    TimeoutDetector = 10, "timeout detector";
    messages { Heartbeat = 1 }
    timers { Beat = 1, Look = 2 }
    tells { Suspected, Trusted }
}

impl TimeoutDetector {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        Self { config, neighbours: Vec::new() }
    }

    /// Who is suspected now.
    pub fn suspected(&self) -> impl Iterator<Item = NodeId> {
        self.neighbours.iter().filter(|it| it.suspected).map(|it| it.id)
    }

    /// Looks again when the next timeout is over.
    fn arm(&self, context: &mut Context<'_, Self>) {
        let trusted = self.neighbours.iter().filter(|it| !it.suspected);
        if let Some(next) = trusted.map(|it| it.heard + it.timeout).min() {
            context.after(next.since(context.now()), &Look);
        }
    }
}

impl Protocol for TimeoutDetector {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let wait = context.random().below_span(self.config.period);
        context.after(wait, &Beat);
    }
}

impl Expires<Beat> for TimeoutDetector {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        context.broadcast(&Heartbeat);
        let wait = context.random().around(self.config.period);
        context.after(wait, &Beat);
    }
}

impl Handles<Heartbeat> for TimeoutDetector {
    fn handle(&mut self, _: Heartbeat, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (id, now) = (reception.from, context.now());
        if let Some(known) = self.neighbours.iter_mut().find(|it| it.id == id) {
            known.heard = now;
            if known.suspected {
                known.suspected = false;
                known.timeout += self.config.growth;
                context.tell(&Trusted { neighbour: id }, &[]);
                self.arm(context);
            }
            return;
        }
        if self.neighbours.len() >= self.config.neighbours_max {
            let places = self.neighbours.iter().enumerate();
            let Some((oldest, _)) = places.min_by_key(|(_, it)| it.heard) else { return };
            self.neighbours.swap_remove(oldest);
        }
        let timeout = self.config.timeout;
        self.neighbours.push(Neighbour { id, heard: now, timeout, suspected: false });
        self.arm(context);
    }
}

impl Expires<Look> for TimeoutDetector {
    fn expire(&mut self, _: Look, context: &mut Context<'_, Self>) {
        let now = context.now();
        for neighbour in self.neighbours.iter_mut().filter(|it| !it.suspected) {
            if neighbour.heard + neighbour.timeout <= now {
                neighbour.suspected = true;
                context.tell(&Suspected { neighbour: neighbour.id }, &[]);
            }
        }
        self.arm(context);
    }
}
