//! A schedule on the clock of a place, which is put forward and back.
//!
//! A change of the clock counts as it does for Debian's cron (crontab(5), cron(8)). A schedule that says at which times
//! of day has each of its times once: those that the clock leaps over come as it leaps, and those that it shows again
//! don't come again. A schedule with a star in its minutes or hours goes by what the clock shows.

use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::zone::OFFSET_S_MAX;
use super::{Schedule, ScheduleError, Zone};

/// The beginning of a text that says a zone.
pub(super) const PREFIX: &str = "TZ=";
/// The end of the time that is looked at, in seconds since 1970: about the year 36,800.
const END_S: i64 = 1 << 40;
/// The most changes and times that are looked at to find the next: those of more than ten years.
const STEPS_MAX: u32 = 64;
/// Two clocks of a zone are never farther apart, in seconds.
const APART_S_MAX: i64 = 2 * OFFSET_S_MAX;

/// A [`Schedule`] on the clock of a [`Zone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalSchedule {
    /// The clock's reading when it comes.
    pub schedule: Schedule,
    /// The clock.
    pub zone: Zone,
}

impl LocalSchedule {
    /// That schedule on that clock.
    ///
    /// # Errors
    /// [`ScheduleError::Never`]: the clock leaps over all of its times.
    pub fn new(schedule: Schedule, zone: Zone) -> Result<Self, ScheduleError> {
        let local = Self { schedule, zone };
        local.next_after(0).map(|_| local).ok_or(ScheduleError::Never)
    }

    /// The first of its times after `unix_s`, in seconds since 1970; `None` if it has none, or none in ten years but
    /// times of day that the clock leaps over.
    pub fn next_after(&self, unix_s: u64) -> Option<u64> {
        let mut at = i64::try_from(unix_s).ok().filter(|at| *at < END_S)?;
        let is_fixed = self.schedule.is_fixed();
        let mut over = at + self.zone.ahead_s(at);
        if is_fixed && let Some(change) = self.zone.change_before(at) {
            // Times that the clock showed before it was put back are over until it shows more.
            over = over.max(change.at + change.before_s - 1);
        }
        for _ in 0..STEPS_MAX {
            let shown = self.shown_after(over)?;
            let due = shown - self.zone.ahead_s(at);
            let change = self.zone.change_after(at).filter(|change| change.at <= due);
            let Some(change) = change else { return u64::try_from(due).ok() };
            let shown_then = change.at + change.after_s;
            if change.at < due - APART_S_MAX && (is_fixed || shown_then > over) {
                // Until then changes show again or leap over only what the schedule hasn't.
                at = due - APART_S_MAX;
                continue;
            }
            at = change.at;
            if !is_fixed {
                over = shown_then - 1;
            } else if shown <= shown_then {
                return u64::try_from(change.at).ok();
            }
        }
        None
    }

    /// The first of the schedule's times behind what a clock showed, as if it were UTC.
    fn shown_after(&self, shown: i64) -> Option<i64> {
        let next = self.schedule.next_after(u64::try_from(shown).unwrap_or_default())?;
        i64::try_from(next).ok().filter(|next| *next < END_S)
    }
}

impl FromStr for LocalSchedule {
    type Err = ScheduleError;

    /// Reads `TZ=` with a [`Zone`], and a [`Schedule`] behind it.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let text = text.trim_start().strip_prefix(PREFIX).ok_or(ScheduleError::Fields)?;
        let (zone, schedule) =
            text.split_once(|c: char| c.is_ascii_whitespace()).ok_or(ScheduleError::Fields)?;
        let zone = zone.parse().map_err(ScheduleError::Zone)?;
        Self::new(schedule.trim_start().parse()?, zone)
    }
}

#[cfg(test)]
mod tests;
