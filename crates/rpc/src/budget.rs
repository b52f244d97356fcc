//! How often something may be done: a token bucket that holds what one second gives.

use tenure_hal::{Instant, micros_of};

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    per_second: u64,
    micro_tokens: u64,
    filled_at: Instant,
}

const MICRO: u64 = 1_000_000;

impl Budget {
    /// A full bucket that gets `per_second` tokens a second and holds as many.
    pub(crate) fn new(now: Instant, per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, micro_tokens: per_second * MICRO, filled_at: now }
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.take_and_leave(now, 0)
    }

    /// Takes a token, if so many are left then.
    pub(crate) fn take_and_leave(&mut self, now: Instant, left: u32) -> bool {
        let elapsed_us = micros_of(now.since(self.filled_at)).min(MICRO);
        self.filled_at = now;
        self.micro_tokens =
            (self.micro_tokens + elapsed_us * self.per_second).min(self.per_second * MICRO);
        match self.micro_tokens.checked_sub(MICRO) {
            Some(rest) if rest >= u64::from(left) * MICRO => {
                self.micro_tokens = rest;
                true
            }
            _ => false,
        }
    }
}
