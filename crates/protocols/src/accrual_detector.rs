//! Failure detection by accrual: how improbable a neighbour's silence is, from how it spoke before.
//!
//! Source: Hayashibara, Défago, Yared and Katayama, "The φ accrual failure detector" (SRDS 2004).
//! φ is −log₁₀ of the probability that a heartbeat comes later than now, if the spans between
//! heartbeats are normally distributed. It is compared with a threshold by the quantiles of that
//! distribution, so that no floating point is needed. The state machine is
//! [`crate::failure_detection`]'s, in which a neighbour is first judged after two heartbeats.

use alloc::collections::VecDeque;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;

use crate::failure_detection::{Detector, Judgement};

#[cfg(test)]
mod tests;

/// The quantiles of the normal distribution for φ = 1, 2, 3, …: where its tail is 10⁻ᵠ, in
/// thousandths of the standard deviation.
const QUANTILES: [u32; 12] =
    [1282, 2326, 3090, 3719, 4265, 4753, 5199, 5612, 5998, 6361, 6706, 7034];

/// Failure detection by accrual.
pub type AccrualDetector = Detector<Config>;

/// The configuration.
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

/// The last spans between a neighbour's heartbeats, in milliseconds.
#[derive(Debug, Default)]
pub struct Spans(VecDeque<u32>);

impl Detector<Config> {
    /// How improbable the silence of `neighbour` is: φ, rounded down, at most 12.
    pub fn phi(&self, neighbour: NodeId, now: Instant) -> Option<u8> {
        let neighbour = self.neighbours.iter().find(|it| it.id == neighbour)?;
        let silence = now.since(neighbour.heard);
        let reached = |phi: &u8| {
            let patience = neighbour.history.silence(*phi, &self.judgement);
            patience.is_some_and(|patience| patience <= silence)
        };
        Some((1..=QUANTILES.len() as u8).take_while(reached).last().unwrap_or(0))
    }
}

impl Spans {
    /// How long a silence has to be to reach `phi`; `None` as long as nothing is known.
    fn silence(&self, phi: u8, config: &Config) -> Option<Duration> {
        let spans = || self.0.iter().map(|span| u64::from(*span));
        let count = self.0.len() as u64;
        let mean = spans().sum::<u64>().checked_div(count)?;
        let squares = spans().map(|span| span.abs_diff(mean).pow(2)).sum::<u64>();
        let deviation = (squares / count).isqrt().max(config.deviation_min.as_millis() as u64);
        let quantile = QUANTILES[usize::from(phi.clamp(1, QUANTILES.len() as u8)) - 1];
        Some(Duration::from_millis(mean + deviation * u64::from(quantile) / 1000))
    }
}

impl Judgement for Config {
    const NUMBER: u8 = 11;
    const NAME: &'static str = "accrual detector";
    type History = Spans;

    fn period(&self) -> Duration {
        self.period
    }

    fn neighbours_max(&self) -> usize {
        self.neighbours_max
    }

    fn note(&self, Spans(spans): &mut Spans, span: Duration, was_suspected: bool) {
        // A silence that was suspected is an outage, and says nothing of the usual spans.
        if was_suspected {
            return;
        }
        if spans.len() >= self.spans_max {
            spans.pop_front();
        }
        spans.push_back(span.as_millis().min(u32::MAX.into()) as u32);
    }

    fn patience(&self, spans: &Spans) -> Option<Duration> {
        spans.silence(self.threshold, self)
    }
}
