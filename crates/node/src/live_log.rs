//! The device's log as its hub shows it, as far as the owner lets it.
//!
//! Invariants:
//! - A device whose settings don't say so tells its hub no line.
//! - Lines are told while the hub says that somebody watches, [`BYTES_A_DAY`] at most, beside [`BURST`] of it at once.
//! - A line is told again until the hub has it, or the log has dropped it.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::NoResult;
use tenure_wire::control::LogPage;
use tenure_wire::hub::Answer;
use tenure_wire::live_log::{LogShare, LogWish};

use crate::hub::Registration;

/// The most bytes of lines in a day, by and large.
const BYTES_A_DAY: u64 = 32 * 1024 * 1024;
/// How much of the budget may be spent ahead.
const BURST: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest wait that the hub may ask for.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));
/// How long to wait after the hub gave no answer.
const RETRY: Duration = Duration::from_secs(30);
/// How long to wait after a hub said that it shows no logs.
const RETRY_UNSERVED: Duration = Duration::from_secs(60 * 60);

/// How far the hub has the log.
#[derive(Debug)]
pub(crate) struct LiveLog {
    /// Whether the owner lets the hub show it.
    is_shared: bool,
    /// When to ask next; `None` while an answer is on its way.
    at: Option<Instant>,
    /// The first line that the hub wants, if somebody watches.
    wanted: Option<u64>,
    /// Until when the lines so far take the budget.
    spent_until: Instant,
}

impl LiveLog {
    /// Nothing told yet.
    pub(crate) fn new(is_shared: bool, now: Instant) -> Self {
        Self { is_shared, at: Some(now), wanted: None, spent_until: now }
    }

    /// When the hub is to be asked next.
    pub(crate) fn wakes_at(&self, hub: &Registration) -> Option<Instant> {
        self.at.filter(|_| self.is_shared && hub.is_listed())
    }

    /// Whether it is time to ask.
    pub(crate) fn is_due(&self, hub: &Registration, now: Instant) -> bool {
        self.wakes_at(hub).is_some_and(|at| at <= now)
    }

    /// The first line that the hub wants.
    pub(crate) fn wanted(&self) -> Option<u64> {
        self.wanted
    }

    /// The question that is due, with the lines that the hub wants, encoded.
    pub(crate) fn next(&mut self, now: Instant, boot: u32, page: Option<LogPage>) -> Vec<u8> {
        let (lines, next) = page.map_or((Vec::new(), 0), |page| (page.lines, page.next));
        let is_told = !lines.is_empty();
        let bytes = postcard::to_allocvec(&LogShare { boot, lines, next }).unwrap_or_default();
        if is_told {
            let cost_ms = bytes.len() as u64 * 24 * 60 * 60 * 1000 / BYTES_A_DAY;
            self.spent_until = self.spent_until.max(now) + Duration::from_millis(cost_ms);
        }
        self.at = None;
        bytes
    }

    /// Takes the hub's answer.
    pub(crate) fn done(&mut self, now: Instant, result: Result<Option<Vec<u8>>, NoResult>) {
        if result == Err(NoResult::NoSuchFunction) {
            (self.at, self.wanted) = (Some(now + RETRY_UNSERVED), None);
            return;
        }
        let bytes = result.ok().flatten().unwrap_or_default();
        let Ok(Ok(wish)) = postcard::from_bytes::<Answer<LogWish>>(&bytes) else {
            return self.missed(now);
        };
        let (least, most) = AGAIN;
        let wait = Duration::from_secs(wish.again_s.into()).clamp(least, most);
        // Until the burst is paid back but for its last part, the hub hears that the device is there and no line.
        let is_within = self.spent_until.since(now) < BURST;
        self.wanted = wish.from.filter(|_| is_within);
        self.at = Some(now + wait);
    }

    /// Takes note that the hub gave no answer that counts.
    pub(crate) fn missed(&mut self, now: Instant) {
        (self.at, self.wanted) = (Some(now + RETRY), None);
    }
}

#[cfg(test)]
mod tests;
