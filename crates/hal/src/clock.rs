//! Time: a monotonic instant since boot, and the wall clock where the board has one.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time, in microseconds since the device booted.
///
/// It never runs backwards and never wraps: 64 bits of microseconds last 584,000 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    micros: u64,
}

impl Instant {
    /// The moment of boot.
    pub const BOOT: Self = Self { micros: 0 };

    /// The instant `micros` microseconds after boot.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// The instant `millis` milliseconds after boot.
    pub const fn from_millis(millis: u64) -> Self {
        Self { micros: millis.saturating_mul(1_000) }
    }

    /// Microseconds since boot.
    pub const fn as_micros(self) -> u64 {
        self.micros
    }

    /// Milliseconds since boot, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.micros / 1_000
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.micros.saturating_sub(earlier.micros))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self { micros: self.micros.saturating_add(micros) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self { micros: self.micros.saturating_sub(micros) }
    }
}

/// Wall-clock time, in seconds since 1970-01-01 00:00 UTC, leap seconds not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime {
    /// Seconds since the epoch.
    pub seconds: u64,
}

/// A board's clock.
pub trait Clock {
    /// The time since boot. It doesn't decrease between calls, and it goes on while the device sleeps
    /// or is suspended: `rpc` relies on it to know how long it was away.
    fn now(&self) -> Instant;

    /// The wall clock, or `None` on a board that has none or hasn't been told yet.
    fn unix_time(&self) -> Option<UnixTime>;
}
