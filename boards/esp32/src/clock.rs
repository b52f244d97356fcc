//! Time and sleep: the chip's system timer, which counts microseconds from reset on, and what the
//! low-power timer had counted before, deep sleep included.

use core::time::Duration;

use tenure_hal::{Clock, Instant, UnixTime};

/// The clock of the chip; it has no wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemTimer {
    /// The time from when power came until this start.
    before: Duration,
}

impl SystemTimer {
    pub(crate) fn started_at(before: Duration) -> Self {
        Self { before }
    }
}

impl Clock for SystemTimer {
    fn now(&self) -> Instant {
        let since = esp_hal::time::Instant::now().duration_since_epoch().as_micros();
        Instant::from_micros(since) + self.before
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

/// Leaves the processor to the radio's tasks, or to sleep, for so long.
pub(crate) fn wait(nap: Duration) {
    if !nap.is_zero() {
        esp_radio_rtos_driver::usleep(u32::try_from(nap.as_micros()).unwrap_or(u32::MAX));
    }
}
