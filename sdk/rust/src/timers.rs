//! Timers: functions of this machine that are called later, or again and again, while it serves others.
//!
//! ```no_run
//! use core::time::Duration;
//! use tenure::{Error, log, timers};
//!
//! tenure::export!(entry, on_tick);
//!
//! fn entry() -> Result<(), Error> {
//!     timers::every(Duration::from_secs(10)).call("on_tick")
//! }
//!
//! fn on_tick() {
//!     log!("tick");
//! }
//! # fn main() {}
//! ```
//!
//! A machine has eight timers at most, one for each function. They outlast faults, deep sleep and
//! restarts of the device, but not an update. Setting a timer again as it is changes nothing, so `entry`
//! may do it at each start.

use core::time::Duration;

use crate::calls::milliseconds;
use crate::status::length;
use crate::{Error, host};

/// A timer to be set. Made by [`after`], [`every`], [`at`] and [`schedule`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a timer is set by `call`"]
pub struct Timer<'a> {
    first: First<'a>,
    period_ms: u32,
    parameter: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug)]
enum First<'a> {
    After(u32),
    At(u32),
    By(&'a str),
}

/// Describes a timer that fires once, after `delay`.
pub fn after(delay: Duration) -> Timer<'static> {
    Timer { first: First::After(milliseconds(delay)), period_ms: 0, parameter: None }
}

/// Describes a timer that fires after each `period`, of 10 ms to 49 days.
pub fn every(period: Duration) -> Timer<'static> {
    after(period).repeated(period)
}

/// Describes a timer that fires at a time of day, in seconds since 1970-01-01 00:00 UTC. It waits until
/// the device knows the time.
pub fn at(unix_time: Duration) -> Timer<'static> {
    let unix_time_s = u32::try_from(unix_time.as_secs()).unwrap_or(u32::MAX);
    Timer { first: First::At(unix_time_s), period_ms: 0, parameter: None }
}

/// Describes a timer that fires at each time of `schedule`: a time of day (`06:30`), or the five fields of
/// crontab(5) (`*/15 8-18 * * mon-fri`), 128 bytes at most. Its times are in UTC, or on the clock whose rules
/// stand before it as in POSIX's `TZ` (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows
/// the time, and makes up for none that passed while the device was off.
pub fn schedule(schedule: &str) -> Timer<'_> {
    Timer { first: First::By(schedule), period_ms: 0, parameter: None }
}

impl<'a> Timer<'a> {
    /// Fires again after each `period`: with 24 hours, each day at the same time. A schedule has its own times,
    /// and isn't changed by this.
    pub fn repeated(self, period: Duration) -> Self {
        Self { period_ms: milliseconds(period), ..self }
    }

    /// The parameter of the call, 64 bytes at most.
    pub fn parameter(self, parameter: &'a [u8]) -> Self {
        Self { parameter: Some(parameter), ..self }
    }

    /// Sets the timer, which calls `function` of this machine.
    ///
    /// # Errors
    /// [`Error::NotFound`] (the function), [`Error::Invalid`] (a period below 10 ms, or a text that is no
    /// schedule or never comes), [`Error::TooLong`] (the parameter, or the schedule), [`Error::Full`] beyond eight
    /// timers, [`Error::FlashBudget`], [`Error::Device`].
    pub fn call(self, function: &str) -> Result<(), Error> {
        let (name, name_bytes) = (function.as_ptr(), function.len());
        let (parameter, bytes) = crate::calls::parts(self.parameter);
        let period_ms = self.period_ms;
        // SAFETY: each pointer and length is of a slice that lives until the call returns, or null.
        let status = unsafe {
            match self.first {
                First::After(delay_ms) => {
                    host::timer_after(name, name_bytes, parameter, bytes, delay_ms, period_ms)
                }
                First::At(unix_time_s) => {
                    host::timer_at(name, name_bytes, parameter, bytes, unix_time_s, period_ms)
                }
                First::By(schedule) => {
                    let (text, text_bytes) = (schedule.as_ptr(), schedule.len());
                    host::timer_schedule(name, name_bytes, parameter, bytes, text, text_bytes)
                }
            }
        };
        length(status).map(|_| ())
    }
}

/// Ends the timer of `function`. A call that waits already is made.
///
/// # Errors
/// [`Error::NotFound`] if there is none, [`Error::FlashBudget`], [`Error::Device`].
pub fn cancel(function: &str) -> Result<(), Error> {
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    length(unsafe { host::timer_cancel(function.as_ptr(), function.len()) }).map(|_| ())
}
