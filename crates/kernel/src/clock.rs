//! The kernel's clocks: the time of day, and the next time at which a timer is due.

use tenure_hal::Instant;

/// How far the time of day may be off before timers are set anew, in microseconds.
const DRIFT_US_MAX: u64 = 2_000_000;

/// The time of day, and when the next timer is due.
#[derive(Default)]
pub(crate) struct Clock {
    /// No timer is due before; `None` after one was set.
    quiet_until: Option<Instant>,
    /// The time of day at which the device booted, in microseconds since 1970, once it was told.
    booted_unix_us: Option<u64>,
}

impl Clock {
    /// Notes that a timer was set, or may be due sooner.
    pub(crate) fn timers_changed(&mut self) {
        self.quiet_until = None;
    }

    /// Notes that no timer is due before `at`, or at all.
    pub(crate) fn set_quiet_until(&mut self, at: Option<Instant>) {
        self.quiet_until = Some(at.unwrap_or(Instant::from_micros(u64::MAX)));
    }

    /// Whether no timer is due `now`.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_until.is_some_and(|at| now < at)
    }

    /// The time of day in microseconds since 1970, if the device has been told.
    pub(crate) fn unix_us(&self, now: Instant) -> Option<u64> {
        self.booted_unix_us.map(|booted| booted.saturating_add(now.as_micros()))
    }

    /// Hears the time of day; returns it in microseconds if it is news.
    pub(crate) fn hear(&mut self, now: Instant, unix_s: Option<u64>) -> Option<u64> {
        let unix_us = unix_s?.checked_mul(1_000_000)?;
        let known = self.unix_us(now);
        if known.is_some_and(|known| known.abs_diff(unix_us) <= DRIFT_US_MAX) {
            return None;
        }
        self.booted_unix_us = Some(unix_us.saturating_sub(now.as_micros()));
        self.timers_changed();
        Some(unix_us)
    }
}
