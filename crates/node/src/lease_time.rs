//! The time that leases go by, and how long a lease has been over: all that decides when a machine stops and
//! when its data goes.
//!
//! `model` checks these rules in every order of what hubs and the owner may say.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_wire::Term;

use crate::clock::{Clock, Teller};

/// The latest time that any lease went by. It is `None` while no lease and nobody has told one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LatestTime {
    /// In milliseconds since 1970 UTC, and when that was.
    pub(crate) known: Option<(u64, Instant)>,
}

impl LatestTime {
    /// The earliest time that it can be, in milliseconds since 1970 UTC; 0 if nothing is known.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        let since = |at| now.since(at).as_millis() as u64;
        self.known.map_or(0, |(latest_ms, at)| latest_ms.saturating_add(since(at)))
    }

    /// The same in seconds, if anything is known.
    pub(crate) fn unix_s(&self, now: Instant) -> Option<u64> {
        self.known.map(|_| self.ms(now) / 1000)
    }

    /// Learns that it is at least so late.
    pub(crate) fn learn_ms(&mut self, now: Instant, ms: u64) {
        if ms > 0 {
            self.known = Some((self.ms(now).max(ms), now));
        }
    }

    /// The time that leases are to go by from now on, in seconds since 1970 UTC, when a hub says that it is
    /// `unix_s`; `None` if its word moves none.
    pub(crate) fn told_by_hub(
        &self,
        clock: &mut Clock,
        now: Instant,
        unix_s: u64,
        by: Teller,
    ) -> Option<u64> {
        // Without a lease that tells about when it is, the hub's word moves none.
        let known_s = self.unix_s(now).filter(|_| by >= Teller::PinnedHub)?;
        Some(known_s + clock.spend_hub_jump(unix_s.saturating_sub(known_s)))
    }
}

/// The time of one machine's lease, as its ledger keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LeaseTime {
    /// The time for the lease, in milliseconds since 1970 UTC: the latest that was known of the
    /// owner's clock at the signature and the device's, and the time that the device was on since.
    pub(crate) ms: u64,
    /// The milliseconds that the device has been on since it learned that the lease is over, or since the
    /// machine was removed; `None` while it is in force.
    pub(crate) over_ms: Option<u64>,
}

/// The state of a lease, and when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The machine may run, and for so many milliseconds if its term has an end.
    InForce { ends_in_ms: Option<u64> },
    /// The machine is stopped. It has been `known` before, and its data is kept for so many milliseconds more in
    /// which the device is on.
    Over { known: bool, left_ms: u64 },
}

impl Stage {
    /// Whether the lease is over, and that is news.
    pub(crate) fn begins_to_be_over(self) -> bool {
        matches!(self, Self::Over { known: false, .. })
    }
}

impl LeaseTime {
    /// The device was on for so long, and it is `known_ms` at least.
    pub(crate) fn pass(&mut self, on_ms: u64, known_ms: u64) {
        self.over_ms = self.over_ms.map(|over_ms| over_ms.saturating_add(on_ms));
        self.ms = self.ms.saturating_add(on_ms).max(known_ms);
    }

    /// The state of the lease now.
    pub(crate) fn stage(&self, term: &Term) -> Stage {
        if term.is_over(self.ms / 1000) {
            let left_ms = self.left_ms(Duration::from_secs(term.grace_s));
            return Stage::Over { known: self.over_ms.is_some(), left_ms };
        }
        let ends_in_ms =
            term.ends_unix_s.map(|end_s| end_s.saturating_mul(1000).saturating_sub(self.ms));
        Stage::InForce { ends_in_ms }
    }

    /// Takes note of a state: from now on it is counted how long it has been over, or nothing.
    pub(crate) fn take_note(&mut self, stage: Stage) {
        match stage {
            Stage::InForce { .. } => self.over_ms = None,
            Stage::Over { .. } => drop(self.over_ms.get_or_insert(0)),
        }
    }

    /// The rest of a span for which data is kept, in milliseconds that the device is on.
    pub(crate) fn left_ms(&self, span: Duration) -> u64 {
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        span_ms.saturating_sub(self.over_ms.unwrap_or(0))
    }

    /// Goes by that time from now on, if it is earlier, in milliseconds since 1970 UTC.
    pub(crate) fn set_back(&mut self, ms: u64) {
        self.ms = self.ms.min(ms);
    }
}

#[cfg(test)]
mod model;
