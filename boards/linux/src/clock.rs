//! The process's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_hal::{Clock, Instant, UnixTime};

/// Time since the process made this clock, and the system's wall clock.
#[derive(Clone, Copy, Debug)]
pub struct LinuxClock {
    boot: std::time::Instant,
}

impl LinuxClock {
    /// A clock that starts now: this is the moment of boot. Copies share it.
    pub fn start() -> Self {
        Self { boot: std::time::Instant::now() }
    }
}

impl Clock for LinuxClock {
    fn now(&self) -> Instant {
        Instant::BOOT + self.boot.elapsed()
    }

    /// `None` while the system's clock stands before 1970.
    fn unix_time(&self) -> Option<UnixTime> {
        let since_epoch: Duration = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(UnixTime { seconds: since_epoch.as_secs() })
    }
}
