//! The process's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tenure_hal::{Clock, Instant, UnixTime};

/// The seconds since 1970 at which this version's first lines were there: a clock that shows less was never set. A release
/// raises it.
const EARLIEST_UNIX_S: u64 = 1_767_225_600;
/// How much later a clock may stand: fifteen years, of which no version is kept in use.
const LATEST_UNIX_S: u64 = EARLIEST_UNIX_S + 15 * 31_556_952;

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

/// For how long processors have worked for this process. While it stands still, or waits, that stays as it is.
pub fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Clock for LinuxClock {
    fn now(&self) -> Instant {
        Instant::BOOT + since_system_boot().saturating_sub(self.boot)
    }

    /// `None` while the system's clock shows a time that it can't be: it wasn't set, or is broken.
    fn unix_time(&self) -> Option<UnixTime> {
        believable(SystemTime::now())
    }
}

/// The time that a clock shows, if this software may run at that time.
fn believable(shown: SystemTime) -> Option<UnixTime> {
    let seconds = shown.duration_since(UNIX_EPOCH).ok()?.as_secs();
    (EARLIEST_UNIX_S..LATEST_UNIX_S).contains(&seconds).then_some(UnixTime { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_was_never_set_or_is_decades_ahead_tells_no_time() {
        let at = |seconds| believable(UNIX_EPOCH + Duration::from_secs(seconds));
        // 1970, as without a battery; 2000 and 2022, where many clocks begin; 2099 and beyond.
        for wrong in [0, 946_684_800, 1_640_995_200, 4_070_908_800, 253_402_300_799] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(believable(UNIX_EPOCH - Duration::from_secs(1)), None);
        let now = at(EARLIEST_UNIX_S + 31_556_952);
        assert_eq!(now, Some(UnixTime { seconds: EARLIEST_UNIX_S + 31_556_952 }));
        assert!(believable(SystemTime::now()).is_some(), "the time of this test");
    }
}
