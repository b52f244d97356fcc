//! The time: by the board's clock, or on a board that has none by what the owner or the hub told since
//! it booted.
//!
//! Two questions are kept apart:
//! - [`Node::unix_time`] is the best guess, for machines and for judging records. The owner's word counts
//!   more than that of a hub whose key is pinned, and that more than any other hub's.
//! - Leases go by the [`Meter`](crate::meter::Meter)'s time, which only the board's clock, the owner, and
//!   within [`HUB_JUMP_S_MAX`] a hub whose key is pinned can move. A hub that nobody vouched for moves no
//!   lease; and no told time deletes anything, as a machine's grace is counted.

use serde::{Deserialize, Serialize};
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant, UnixTime};

use crate::node::{Moment, Node};

/// A time that is ahead of what was known by more than this is news to leases.
const JUMP_S: u64 = 10;
/// How far a pinned hub can move the time that leases go by in one boot, in seconds, beyond the time that
/// is counted: for a device that was off. The owner alone moves it further.
pub(crate) const HUB_JUMP_S_MAX: u64 = 24 * 60 * 60;
/// The owner's word sets the time back only if it is earlier by more than this, in seconds: until then it
/// may be one that was on its way for long.
const SET_BACK_S_MIN: u64 = 60 * 60;

/// The teller of a time; a later one in this order counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Teller {
    /// A hub that nobody vouched for.
    Hub,
    /// A hub whose key the owner or the settings pinned.
    PinnedHub,
    /// The owner.
    Owner,
}

/// What somebody told, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldTime {
    pub(crate) at: Instant,
    pub(crate) unix: UnixTime,
    pub(crate) by: Teller,
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

    /// The wall clock, unless a hub alone told it that nobody vouched for.
    pub(crate) fn vouched_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        let told = self.told_time.filter(|told| told.by > Teller::Hub);
        moment.unix_time.or_else(|| told.map(|told| told.now(moment.now)))
    }

    /// Takes the hub's word for what time it is, unless somebody told it whose word counts more.
    pub(crate) fn hub_told_time(&mut self, moment: &Moment<'_>, unix: UnixTime) {
        let by = if self.hub_is_vouched_for() { Teller::PinnedHub } else { Teller::Hub };
        if self.told_time.is_none_or(|told| told.by <= by) {
            self.told_time = Some(ToldTime { at: moment.now, unix, by });
        }
        if is_planted(Weakness::FalseHubEndsLeases) {
            let known_s = self.meter.latest_unix_s(moment.now).unwrap_or(0);
            return self.leases_learn(moment, known_s, unix.seconds);
        }
        if by < Teller::PinnedHub || moment.unix_time.is_some() {
            return;
        }
        // Without a lease that tells about when it is, the hub's word moves none.
        let Some(known_s) = self.meter.latest_unix_s(moment.now) else { return };
        let ahead_s = unix.seconds.saturating_sub(known_s).min(self.hub_jump_left_s);
        self.hub_jump_left_s -= ahead_s;
        self.leases_learn(moment, known_s, known_s + ahead_s);
    }

    /// Forgets the time that a hub told.
    pub(crate) fn forget_hubs_time(&mut self) {
        if self.told_time.is_some_and(|told| told.by < Teller::Owner) {
            self.told_time = None;
        }
    }

    /// Lets leases, which went by `known_s`, go by a later time.
    fn leases_learn(&mut self, moment: &Moment<'_>, known_s: u64, unix_s: u64) {
        if unix_s <= known_s {
            return;
        }
        self.meter.learn_unix_s(moment.now, unix_s);
        if unix_s > known_s.saturating_add(JUMP_S) {
            // Leases may be over by it, and it is known at the next start.
            self.checkpoint(moment);
        } else {
            self.attend_to_leases(moment);
        }
    }

    /// Takes the owner's word for what time it is. One that is much earlier than leases went by sets them
    /// back: a wrong clock of the owner's, or a hub's, had moved them.
    pub(crate) fn owner_told_time(&mut self, moment: &Moment<'_>, unix_s: u64) {
        let vouched_s = self.vouched_time(moment).map(|known| known.seconds);
        let is_set_back = |known_s: u64| unix_s.saturating_add(SET_BACK_S_MIN) < known_s;
        if vouched_s.is_none_or(|known_s| known_s < unix_s || is_set_back(known_s)) {
            let unix = UnixTime { seconds: unix_s };
            self.told_time = Some(ToldTime { at: moment.now, unix, by: Teller::Owner });
        }
        let known_s = self.meter.latest_unix_s(moment.now);
        if known_s.is_some_and(is_set_back) {
            self.meter.set_back(moment.now, unix_s);
            self.checkpoint(moment);
        } else if moment.unix_time.is_none() {
            self.leases_learn(moment, known_s.unwrap_or(0), unix_s);
        }
    }
}
