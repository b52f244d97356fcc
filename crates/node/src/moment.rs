//! Time as a board hands it in, and when a node wants to be polled again.

use tenure_hal::{Entropy, Instant, UnixTime};

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
