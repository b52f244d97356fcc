//! The process's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tenure_hal::{Clock, Instant, UnixTime};

/// Time since the process made this clock, time in suspend included, and the system's wall clock.
#[derive(Clone, Copy, Debug)]
pub struct LinuxClock {
    boot: Duration,
}

impl LinuxClock {
    /// A clock that starts now: this is the moment of boot. Copies share it.
    pub fn start() -> Self {
        Self { boot: since_system_boot() }
    }
}

/// `CLOCK_BOOTTIME`, which unlike `CLOCK_MONOTONIC` goes on while the system is suspended (see
/// `clock_gettime(2)`): peers count on it that no time is left out.
fn since_system_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Clock for LinuxClock {
    fn now(&self) -> Instant {
        Instant::BOOT + since_system_boot().saturating_sub(self.boot)
    }

    /// `None` while the system's clock stands before 1970.
    fn unix_time(&self) -> Option<UnixTime> {
        let since_epoch: Duration = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(UnixTime { seconds: since_epoch.as_secs() })
    }
}
