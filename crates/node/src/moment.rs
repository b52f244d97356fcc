//! Time as a board hands it in, and when a node wants to be polled again.

use core::time::Duration;

use tenure_hal::{Entropy, Instant, UnixTime};

/// How late a node may be polled, or handed something, until it is known that its device stood still: longer than any work
/// takes, an erasure of flash or a handshake among it.
const STOOD_STILL: Duration = Duration::from_secs(5);

/// The circumstances of a call to a node, by its board.
pub struct Moment<'a> {
    /// The time since boot.
    pub now: Instant,
    /// The wall clock, on boards that have one.
    pub unix_time: Option<UnixTime>,
    /// Randomness.
    pub entropy: &'a mut dyn Entropy,
}

/// When a node wants to be polled again, unless a datagram comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once.
    Now,
    /// At that instant.
    At(Instant),
    /// Not by itself.
    Never,
}

impl Wake {
    /// Whether a device stood still that comes round `now`, after it was handed something at `last` and wanted to be polled
    /// then.
    pub(crate) fn is_missed(self, last: Instant, now: Instant) -> bool {
        let due = match self {
            Self::Now => last,
            Self::At(at) => at.max(last),
            Self::Never => return false,
        };
        now.since(due) > STOOD_STILL
    }

    /// The wake for the first of these timers.
    pub(crate) fn for_first(timers: impl Iterator<Item = Option<Instant>>, now: Instant) -> Self {
        match timers.flatten().min() {
            Some(at) if at <= now => Self::Now,
            Some(at) => Self::At(at),
            None => Self::Never,
        }
    }

    /// The earlier of this wake and `at`.
    #[cfg(feature = "mesh")]
    pub(crate) fn or_at(self, at: Option<Instant>, now: Instant) -> Self {
        match self {
            Self::Now => Self::Now,
            Self::At(first) => Self::for_first([Some(first), at].into_iter(), now),
            Self::Never => Self::for_first([at].into_iter(), now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_that_comes_round_much_later_than_it_wanted_stood_still() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1000);
        assert!(!Wake::At(at(20)).is_missed(at(10), at(12)), "woken before it was due");
        assert!(!Wake::At(at(20)).is_missed(at(10), at(24)), "busy");
        assert!(Wake::At(at(20)).is_missed(at(10), at(26)));
        assert!(!Wake::At(at(20)).is_missed(at(25), at(29)), "it was handed something since");
        assert!(Wake::Now.is_missed(at(10), at(16)));
        assert!(!Wake::Now.is_missed(at(10), at(14)));
        assert!(!Wake::Never.is_missed(at(10), at(10_000)), "nobody expected it");
    }
}
