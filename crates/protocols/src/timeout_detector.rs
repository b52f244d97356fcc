//! Failure detection by a fixed timeout: a neighbour that says nothing for so long has stopped.
//!
//! Source: Chandra and Toueg, "Unreliable failure detectors for reliable distributed systems" (JACM
//! 1996) §7, of the class ◊P: the timeout grows with each mistake, so mistakes end. The state machine
//! is [`crate::failure_detection`]'s.

use core::time::Duration;

use crate::failure_detection::{Detector, Judgement};

#[cfg(test)]
mod tests;

/// Failure detection by a fixed timeout.
pub type TimeoutDetector = Detector<Config>;

/// The configuration.
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

impl Judgement for Config {
    const NUMBER: u8 = 10;
    const NAME: &'static str = "timeout detector";
    /// How often it was suspected wrongly.
    type History = u32;

    fn period(&self) -> Duration {
        self.period
    }

    fn neighbours_max(&self) -> usize {
        self.neighbours_max
    }

    fn note(&self, mistakes: &mut u32, _: Duration, was_suspected: bool) {
        *mistakes = mistakes.saturating_add(was_suspected.into());
    }

    fn patience(&self, mistakes: &u32) -> Option<Duration> {
        Some(self.timeout + self.growth.saturating_mul(*mistakes))
    }
}
