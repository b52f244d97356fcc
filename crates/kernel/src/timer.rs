//! One timer: what it calls, and when it fires next.
//!
//! A timer fires at its time or up to a tenth of its wait later, one second at most: timers that are due
//! within that span share one wake-up. A wait counts from when the timer was set, and from the start after
//! a restart of the device. A time of day counts as soon as the device knows it.
//!
//! A machine begins with the timers of its package. Once it sets or ends one itself, all that it has then
//! are written down, and count until it is updated.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_wire::timer::{PackageTimer, Schedule, When};

use crate::task::Task;

/// How much later than its time a timer fires, at most.
const SLACK_MAX: Duration = Duration::from_secs(1);
/// The part of a timer's wait by which it may fire late.
const SLACK_PART: u32 = 10;

/// When a timer fires first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum First {
    /// After so many milliseconds.
    After(u32),
    /// At that time of day, in seconds since 1970.
    At(u32),
    /// At the next time of a schedule.
    By(Schedule),
}

/// A function that is to be called at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) function: String,
    pub(crate) parameter: Option<Vec<u8>>,
    pub(crate) first: First,
    /// The time between two calls in milliseconds; 0 if there is one.
    pub(crate) period_ms: u32,
    /// When it fires next, if that is known.
    #[serde(with = "crate::moment::optional")]
    pub(crate) due: Option<Instant>,
}

impl Timer {
    /// A timer that a machine begins with; its wait hasn't begun.
    pub(crate) fn of_package(timer: &PackageTimer) -> Self {
        let (first, period_ms) = match timer.when {
            When::Every(period_ms) => (First::After(period_ms), period_ms),
            When::At(schedule) => (First::By(schedule), 0),
        };
        Self { function: timer.function.clone(), parameter: None, first, period_ms, due: None }
    }

    /// Whether setting `other` would change nothing.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.period_ms > 0
            && (&self.function, &self.parameter, self.first, self.period_ms)
                == (&other.function, &other.parameter, other.first, other.period_ms)
    }

    fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms.into())
    }

    /// When the device has to be awake for it.
    fn wakes_at(&self) -> Option<Instant> {
        let wait_ms = match (self.period_ms, self.first) {
            (0, First::After(ms)) => ms,
            (0, First::At(_) | First::By(_)) => 0,
            (period_ms, _) => period_ms,
        };
        let slack = Duration::from_millis((wait_ms / SLACK_PART).into()).min(SLACK_MAX);
        self.due.map(|due| due + slack)
    }

    /// Begins its wait `now`, when the time of day is `unix_us`, if that is known.
    pub(crate) fn begin(&mut self, now: Instant, unix_us: Option<u64>) {
        self.due = match self.first {
            First::After(_) if self.period_ms > 0 && self.due.is_none() => {
                Some(now + self.period())
            }
            First::After(ms) => Some(now + Duration::from_millis(ms.into())),
            First::At(unix_s) => unix_us.map(|unix_us| {
                let at_us = u64::from(unix_s) * 1_000_000;
                let period_us = u64::from(self.period_ms) * 1_000;
                let missed_us = unix_us.saturating_sub(at_us);
                let wait_us = match missed_us.checked_rem(period_us) {
                    // Its next time, if it is past the first.
                    Some(rest) if missed_us > 0 => period_us - rest,
                    _ => at_us.saturating_sub(unix_us),
                };
                now + Duration::from_micros(wait_us)
            }),
            First::By(schedule) => next_by(&schedule, now, unix_us),
        };
    }

    /// Sets it to its next time after `now`; returns whether it has one.
    pub(crate) fn advance(&mut self, now: Instant, unix_us: Option<u64>) -> bool {
        if let First::By(schedule) = self.first {
            self.due = next_by(&schedule, now, unix_us);
            return true;
        }
        let period = self.period();
        let Some(due) = self.due.filter(|_| !period.is_zero()) else { return false };
        let missed = now.since(due).as_micros() / period.as_micros();
        let periods = u32::try_from(missed + 1).unwrap_or(u32::MAX);
        self.due = Some(due + period * periods);
        true
    }

    pub(crate) fn task(&self) -> Task {
        Task::of_kernel(self.function.clone(), self.parameter.clone())
    }
}

/// The next time of `schedule`, if the time of day is known.
fn next_by(schedule: &Schedule, now: Instant, unix_us: Option<u64>) -> Option<Instant> {
    let unix_us = unix_us?;
    let next_us = schedule.next_after(unix_us / 1_000_000)?.checked_mul(1_000_000)?;
    Some(now + Duration::from_micros(next_us - unix_us))
}

/// When the first of `timers` needs the device to be awake.
pub(crate) fn wakes_at(timers: &[Timer]) -> Option<Instant> {
    timers.iter().filter_map(Timer::wakes_at).min()
}
