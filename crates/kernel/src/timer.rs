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
use tenure_wire::timer::{LocalSchedule, PackageTimer, Schedule, When};

use crate::task::Task;

/// How much later than its time a timer fires, at most.
const SLACK_MAX: Duration = Duration::from_secs(1);
/// The part of a timer's wait by which it may fire late.
const SLACK_PART: u32 = 10;

/// How far the time of day may be set back without a time of day that has come coming again, in
/// microseconds: as cron has it. Beyond that, the time that was there before counts as wrong.
const SET_BACK_US_MAX: u64 = 3 * 3_600 * 1_000_000;

/// When a timer fires first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum First {
    /// After so many milliseconds.
    After(u32),
    /// At that time of day, in seconds since 1970.
    At(u32),
    /// At the next time of a schedule in UTC.
    By(Schedule),
    /// At the next time of a schedule on the clock of a zone.
    ByLocal(LocalSchedule),
}

impl First {
    /// Whether it has its own times, one after the other.
    fn is_schedule(&self) -> bool {
        matches!(self, Self::By(_) | Self::ByLocal(_))
    }

    /// Whether it takes the time of day.
    pub(crate) fn takes_time_of_day(&self) -> bool {
        self.is_schedule() || matches!(self, Self::At(_))
    }

    /// The first time of a schedule after `unix_s`, in seconds since 1970.
    fn next_after(&self, unix_s: u64) -> Option<u64> {
        match self {
            Self::By(schedule) => schedule.next_after(unix_s),
            Self::ByLocal(schedule) => schedule.next_after(unix_s),
            Self::After(_) | Self::At(_) => None,
        }
    }

    /// When a timer fires first that fires at `when`, and its period in milliseconds; 0 if it has none.
    pub(crate) fn of(when: When) -> (Self, u32) {
        match when {
            When::Every(period_ms) => (Self::After(period_ms), period_ms),
            When::At(schedule) => (Self::By(schedule), 0),
            When::AtLocal(schedule) => (Self::ByLocal(schedule), 0),
        }
    }
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
    /// The time of day at which it fired last in this boot, in microseconds since 1970.
    #[serde(skip)]
    fired_unix_us: Option<u64>,
}

impl Timer {
    /// A timer whose wait hasn't begun.
    pub(crate) fn new(
        (function, parameter): (String, Option<Vec<u8>>),
        (first, period_ms): (First, u32),
    ) -> Self {
        Self { function, parameter, first, period_ms, due: None, fired_unix_us: None }
    }

    /// A timer that a machine begins with; its wait hasn't begun.
    pub(crate) fn of_package(timer: &PackageTimer) -> Self {
        Self::new((timer.function.clone(), None), First::of(timer.when))
    }

    /// Whether setting `other` would change nothing.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_repeated = self.period_ms > 0 || self.first.is_schedule();
        is_repeated
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
            (0, _) => 0,
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
                let after_us = self.after(unix_us);
                let missed_us = after_us.saturating_sub(at_us);
                let next_us = match missed_us.checked_rem(period_us) {
                    // Its next time, if it is past the first.
                    Some(rest) if missed_us > 0 => after_us + period_us - rest,
                    _ => at_us,
                };
                now + Duration::from_micros(next_us.saturating_sub(unix_us))
            }),
            First::By(_) | First::ByLocal(_) => self.next_of_schedule(now, unix_us),
        };
    }

    /// The time after which its next one comes: the time of day, or when it fired if the clock was set back
    /// a little since.
    fn after(&self, unix_us: u64) -> u64 {
        let is_set_back = |fired: &u64| fired.saturating_sub(unix_us) <= SET_BACK_US_MAX;
        self.fired_unix_us.filter(is_set_back).map_or(unix_us, |fired| fired.max(unix_us))
    }

    /// The next time of its schedule, if the time of day is known.
    fn next_of_schedule(&self, now: Instant, unix_us: Option<u64>) -> Option<Instant> {
        let unix_us = unix_us?;
        let after_s = self.after(unix_us) / 1_000_000;
        let next_us = self.first.next_after(after_s)?.checked_mul(1_000_000)?;
        Some(now + Duration::from_micros(next_us.saturating_sub(unix_us)))
    }

    /// Sets it to its next time after `now`; returns whether it has one.
    pub(crate) fn advance(&mut self, now: Instant, unix_us: Option<u64>) -> bool {
        self.fired_unix_us = unix_us;
        if self.first.is_schedule() {
            self.due = self.next_of_schedule(now, unix_us);
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

/// When the first of `timers` needs the device to be awake.
pub(crate) fn wakes_at(timers: &[Timer]) -> Option<Instant> {
    timers.iter().filter_map(Timer::wakes_at).min()
}
