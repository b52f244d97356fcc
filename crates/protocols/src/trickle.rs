//! The Trickle timer (RFC 6206): when to say what others may already have said.

use core::time::Duration;

use tenure_mesh::Random;

/// One Trickle timer. Its owner sets the two timers that [`Trickle::begin`] gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trickle {
    interval_min: Duration,
    interval_max: Duration,
    /// RFC 6206's k.
    enough: u32,
    /// Its I.
    interval: Duration,
    /// Its c.
    consistent: u32,
}

impl Trickle {
    pub(crate) fn new(interval_min: Duration, interval_max: Duration, enough: u32) -> Self {
        Self { interval_min, interval_max, enough, interval: interval_max, consistent: 0 }
    }

    /// Something is inconsistent (§4.2, step 6); gives whether an interval is to begin at once.
    pub(crate) fn reset(&mut self) -> bool {
        let slow = self.interval > self.interval_min;
        self.interval = self.interval_min;
        slow
    }

    /// Begins an interval: gives when to speak (§4.2, step 2) and when it is over.
    pub(crate) fn begin(&mut self, random: &mut Random) -> (Duration, Duration) {
        self.consistent = 0;
        let half = self.interval / 2;
        (half + random.below_span(half), self.interval)
    }

    /// An interval is over (§4.2, step 5).
    pub(crate) fn slow_down(&mut self) {
        self.interval = (self.interval * 2).min(self.interval_max);
    }

    /// Somebody said the same (§4.2, step 3).
    pub(crate) fn heard_the_same(&mut self) {
        self.consistent += 1;
    }

    /// Whether too few said the same to keep silent (§4.2, step 4).
    pub(crate) fn has_something_to_say(&self) -> bool {
        self.consistent < self.enough
    }
}
