//! The clock of a node: it counts from the node's boot, and may run fast or slow.

use tenure_hal::Instant;

const MILLION: i128 = 1_000_000;

/// A node's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// When it began to count, in microseconds of the world.
    pub booted_us: u64,
    /// By how much it runs fast, in millionths.
    pub drift_ppm: i64,
}

impl Clock {
    /// The clock's time when the world's is `now_us`.
    pub(crate) fn local(&self, now_us: u64) -> Instant {
        let since_us = now_us - self.booted_us;
        Instant::from_micros(since_us.saturating_add_signed(self.drift(since_us)))
    }

    /// The first microsecond of the world in which it shows `at` or later.
    pub(crate) fn world_us(&self, at: Instant) -> u64 {
        let shown_us = u128::from(at.as_micros());
        let pace = (MILLION + i128::from(self.drift_ppm)).max(1) as u128;
        let since_us = (shown_us * MILLION as u128).div_ceil(pace) as u64;
        // Its drift is rounded as well, towards zero.
        let mut at_us = self.booted_us + since_us.saturating_sub(1);
        while self.local(at_us) < at {
            at_us += 1;
        }
        at_us
    }

    fn drift(&self, since_us: u64) -> i64 {
        (i128::from(since_us) * i128::from(self.drift_ppm) / MILLION) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_for_a_reading_happens_when_it_is_shown_and_not_a_microsecond_later() {
        for drift_ppm in [-1_000, -50, -1, 0, 1, 50, 1_000] {
            let clock = Clock { booted_us: 12_345, drift_ppm };
            for shown_us in [0, 1, 999, 1_000_000, 123_456_789, 86_400_000_000, 999_999_999_999] {
                let at = Instant::from_micros(shown_us);
                let at_us = clock.world_us(at);
                assert!(clock.local(at_us) >= at, "{drift_ppm} {shown_us}");
                if at_us > clock.booted_us {
                    assert!(clock.local(at_us - 1) < at, "{drift_ppm} {shown_us}");
                }
            }
        }
    }
}
