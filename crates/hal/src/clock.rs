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
    // Not inlined, as the sums below: a division of 64 bits is long on a CPU of 32, and there are
    // hundreds of them.
    #[inline(never)]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.micros.saturating_sub(earlier.micros))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    #[inline(never)]
    fn add(self, span: Duration) -> Self {
        Self { micros: self.micros.saturating_add(micros_of(span)) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    #[inline(never)]
    fn sub(self, span: Duration) -> Self {
        Self { micros: self.micros.saturating_sub(micros_of(span)) }
    }
}

/// A span in microseconds, rounded down; one that doesn't fit is the longest that does.
pub const fn micros_of(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000).saturating_add(span.subsec_micros() as u64)
}

/// `value * numerator / denominator`, rounded down; what doesn't fit, division by zero included, is the
/// highest number.
///
/// It is here once because a division of 128 bits takes 2 KB of flash on a CPU of 32 wherever it is
/// written, and seldom needs more than 64.
#[inline(never)]
pub const fn proportion(value: u64, numerator: u64, denominator: u64) -> u64 {
    if let Some(product) = value.checked_mul(numerator)
        && let Some(quotient) = product.checked_div(denominator)
    {
        return quotient;
    }
    let product = value as u128 * numerator as u128;
    let (mut rest, low) = ((product >> 64) as u64, product as u64);
    if rest >= denominator {
        return u64::MAX;
    }
    // Long division, a bit at a time: the rest stays below the denominator.
    let (mut quotient, mut bit) = (0, 64);
    while bit > 0 {
        bit -= 1;
        let carry = rest >> 63 == 1;
        rest = rest << 1 | low >> bit & 1;
        if carry || rest >= denominator {
            rest = rest.wrapping_sub(denominator);
            quotient |= 1 << bit;
        }
    }
    quotient
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proportion_is_what_128_bits_say() {
        let values = [0, 1, 7, 999_999, 1 << 31, 1 << 32, u64::MAX / 3, u64::MAX - 1, u64::MAX];
        for value in values {
            for numerator in values {
                for denominator in values {
                    let product = u128::from(value) * u128::from(numerator);
                    let exact = product.checked_div(denominator.into()).unwrap_or(u128::MAX);
                    let expected = u64::try_from(exact).unwrap_or(u64::MAX);
                    let found = proportion(value, numerator, denominator);
                    assert_eq!(found, expected, "{value} * {numerator} / {denominator}");
                }
            }
        }
    }

    #[test]
    fn a_span_too_long_for_an_instant_ends_at_the_last() {
        let last = Instant::from_micros(u64::MAX);
        assert_eq!(Instant::from_millis(5) + Duration::MAX, last);
        assert_eq!(last - Duration::MAX, Instant::BOOT);
        assert_eq!(micros_of(Duration::new(2, 3_999)), 2_000_003);
    }
}
