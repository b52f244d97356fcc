//! Whether the process stood still: it was stopped, frozen, or suspended with its computer, and datagrams waited meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::SIGCONT;
use tenure_hal::Instant;

/// How much longer than it meant to wait, or worked, the loop may take to come round until it is known that the process
/// stood still. Callers whom a datagram that came meanwhile matters to send it again.
const STOOD_STILL: Duration = Duration::from_secs(5);
/// The same until first messages, which don't say until when they are wanted, have perhaps waited for too long.
const LATE: Duration = Duration::from_secs(1);

/// By when the loop means to come round again, and for how long the processor had worked for it when it said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) due: Instant,
    pub(super) worked: Duration,
}

/// How the loop came round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// As it meant to.
    InTime,
    /// First messages may have waited.
    Late,
    /// Everything has waited for long.
    StoodStill,
}

impl Pace {
    /// How whoever comes round now, having worked that long in all, came round.
    pub(super) fn round(self, now: Instant, worked: Duration) -> Round {
        // The first turn was due at no time.
        if self == Self::default() {
            return Round::InTime;
        }
        let late_by = now.since(self.due).saturating_sub(worked.saturating_sub(self.worked));
        if late_by > STOOD_STILL {
            Round::StoodStill
        } else if late_by > LATE {
            Round::Late
        } else {
            Round::InTime
        }
    }
}

/// Hears that the process goes on after it was stopped, which shows in no clock if it is soon after.
#[derive(Debug)]
pub(super) struct Continued {
    heard: Arc<AtomicBool>,
    listener: Option<SigId>,
}

impl Continued {
    /// Listens; where the system refuses that, it is known by the clock alone.
    pub(super) fn listen() -> Self {
        let heard = Arc::new(AtomicBool::new(false));
        let listener = signal_hook::flag::register(SIGCONT, heard.clone()).ok();
        Self { heard, listener }
    }

    /// Whether the process was let go on since it was asked last.
    pub(super) fn take(&self) -> bool {
        self.heard.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Continued {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            signal_hook::low_level::unregister(listener);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_that_comes_round_late_without_having_worked_stood_still() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1000);
        let span = Duration::from_secs;
        let pace = Pace { due: at(20), worked: span(3) };
        assert_eq!(pace.round(at(10), span(3)), Round::InTime, "woken before it was due");
        assert_eq!(pace.round(at(21), span(3)), Round::InTime);
        assert_eq!(pace.round(at(24), span(3)), Round::Late);
        assert_eq!(pace.round(at(60), span(43)), Round::InTime, "it worked for so long");
        assert_eq!(pace.round(at(60), span(41)), Round::Late);
        assert_eq!(pace.round(at(60), span(3)), Round::StoodStill);
        let first = Pace::default();
        assert_eq!(first.round(at(60), span(0)), Round::InTime, "nobody expected it before");
    }

    #[test]
    fn process_hears_once_that_it_goes_on() {
        // Without a signal, which other tests of this process would hear too.
        let continued = Continued { heard: Arc::new(AtomicBool::new(true)), listener: None };
        assert!(continued.take());
        assert!(!continued.take());
    }
}
