//! The pauses between attempts: they double, and differ from device to device.

use core::time::Duration;

const FIRST_MS: u64 = 1_000;
/// The pause doubles so often: to 64 seconds.
const DOUBLINGS_MAX: u32 = 6;

/// How often an attempt has failed since one succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    failures: u32,
}

impl BackOff {
    /// The pause after one more failure. `random` makes it up to a quarter longer, so that devices that lost their broker
    /// at once don't come back at once.
    pub(super) fn next(&mut self, random: u8) -> Duration {
        let pause_ms = FIRST_MS << self.failures.min(DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(pause_ms + pause_ms * u64::from(random) / 1024)
    }
}
