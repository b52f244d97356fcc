//! What time it is: by the board's clock, or on a board that has none by what the hub or the owner told since
//! it booted.
//!
//! Both speak in sessions with keys that the device knows. A datagram that was held back tells an earlier
//! time than it is, never a later one; so what is learnt late makes leases end late, and none ends early.

use tenure_hal::{Flash, Instant, UnixTime};

use crate::node::{Moment, Node};

/// A time that is ahead of what was known by more than this is news to leases.
const JUMP_S: u64 = 10;

/// What somebody told, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldTime {
    pub(crate) at: Instant,
    pub(crate) unix: UnixTime,
}

impl ToldTime {
    /// What time it is now by that.
    fn now(&self, now: Instant) -> UnixTime {
        UnixTime { seconds: self.unix.seconds.saturating_add(now.since(self.at).as_secs()) }
    }
}

impl<F: Flash> Node<F> {
    /// The wall clock, if the board has one or it was told.
    pub(crate) fn unix_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        moment.unix_time.or_else(|| self.told_time.map(|told| told.now(moment.now)))
    }

    /// Takes the hub's word for what time it is, which counts more than what was told before.
    pub(crate) fn hub_told_time(&mut self, moment: &Moment<'_>, unix: UnixTime) {
        let known_s = self.unix_time(moment).map(|known| known.seconds.saturating_add(JUMP_S));
        self.told_time = Some(ToldTime { at: moment.now, unix });
        if known_s.is_none_or(|known_s| known_s < unix.seconds) {
            // Leases may be over by it, and it is known at the next start.
            self.checkpoint(moment);
        }
    }

    /// Takes the owner's word for what time it is, unless a later one is known.
    pub(crate) fn owner_told_time(&mut self, moment: &Moment<'_>, unix_s: u64) {
        if self.unix_time(moment).is_none_or(|known| known.seconds < unix_s) {
            self.hub_told_time(moment, UnixTime { seconds: unix_s });
        }
    }
}
