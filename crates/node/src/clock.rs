//! The wall clock: the board's, or on a board without one the time that the owner or the hub told since
//! boot.
//!
//! Two questions are kept apart:
//! - [`Clock::unix_time`] is the best guess, for machines and for judging records. The owner's word counts
//!   more than that of a hub whose key is pinned, and that more than any other hub's.
//! - Leases go by the [`Meter`](crate::meter::Meter)'s time, which only the board's clock, the owner, and
//!   within [`HUB_JUMP_S_MAX`] a hub whose key is pinned can move. A hub that nobody vouched for moves no
//!   lease; and no told time deletes anything, as a machine's grace is counted.

use serde::{Deserialize, Serialize};
use tenure_hal::{Instant, UnixTime};

#[cfg(feature = "mesh")]
use crate::membership::RecordsTime;
use crate::moment::Moment;

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

/// A time that somebody told, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldTime {
    pub(crate) at: Instant,
    pub(crate) unix: UnixTime,
    pub(crate) by: Teller,
}

impl ToldTime {
    /// The time now by that.
    fn now(&self, now: Instant) -> UnixTime {
        UnixTime { seconds: self.unix.seconds.saturating_add(now.since(self.at).as_secs()) }
    }
}

/// The wall clock of a device.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) told: Option<ToldTime>,
    /// How far the hub may still move the time that leases go by, in seconds.
    pub(crate) hub_jump_left_s: u64,
    /// The time that other devices' records told, on a device in a mesh.
    #[cfg(feature = "mesh")]
    pub(crate) by_records: Option<RecordsTime>,
}

impl Clock {
    /// The clock of a device that starts.
    pub(crate) fn new() -> Self {
        Self {
            told: None,
            hub_jump_left_s: HUB_JUMP_S_MAX,
            #[cfg(feature = "mesh")]
            by_records: None,
        }
    }

    /// The board's clock. A board that judges certificates doesn't go by a clock that its owner contradicts.
    pub(crate) fn board_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        #[cfg(feature = "bridge")]
        if let Some(told) = self.told.filter(|told| told.by == Teller::Owner) {
            let told_s = told.now(moment.now).seconds;
            let agrees = |board: &UnixTime| board.seconds.abs_diff(told_s) <= SET_BACK_S_MIN;
            return moment.unix_time.filter(agrees);
        }
        moment.unix_time
    }

    /// The wall clock, if the board has one or it was told.
    pub(crate) fn unix_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        self.board_time(moment).or_else(|| self.told.map(|told| told.now(moment.now)))
    }

    /// The wall clock, unless a hub alone told it that nobody vouched for.
    pub(crate) fn vouched_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        let told = self.told.filter(|told| told.by > Teller::Hub);
        self.board_time(moment).or_else(|| told.map(|told| told.now(moment.now)))
    }

    /// Who vouches for [`Self::vouched_time`]: the board's clock, if it is `None`.
    #[cfg(feature = "bridge")]
    pub(crate) fn voucher(&self, moment: &Moment<'_>) -> Option<Teller> {
        match self.board_time(moment) {
            Some(_) => None,
            None => self.told.map(|told| told.by),
        }
    }

    /// The time by which records are judged: the wall clock, or in a mesh the time that other devices'
    /// records told.
    pub(crate) fn records_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        let known = self.unix_time(moment);
        #[cfg(feature = "mesh")]
        let known = known.or_else(|| Some(self.by_records.as_ref()?.at(moment.now)));
        known
    }

    /// Takes a hub's word for the time, unless somebody told it whose word counts more.
    pub(crate) fn hub_told(&mut self, now: Instant, unix: UnixTime, by: Teller) {
        if self.told.is_none_or(|told| told.by <= by) {
            self.told = Some(ToldTime { at: now, unix, by });
        }
    }

    /// Takes the owner's word for the time. One that is a little earlier than a time which was vouched for
    /// doesn't count.
    pub(crate) fn owner_told(&mut self, moment: &Moment<'_>, unix_s: u64) {
        let vouched_s = self.vouched_time(moment).map(|known| known.seconds);
        if vouched_s.is_none_or(|known_s| known_s < unix_s || is_set_back(unix_s, known_s)) {
            let unix = UnixTime { seconds: unix_s };
            self.told = Some(ToldTime { at: moment.now, unix, by: Teller::Owner });
        }
    }

    /// Forgets the time that a hub told.
    pub(crate) fn forget_hubs_time(&mut self) {
        if self.told.is_some_and(|told| told.by < Teller::Owner) {
            self.told = None;
        }
    }

    /// Spends what the hub may still move leases by: returns how much of `ahead_s` counts, in seconds.
    pub(crate) fn spend_hub_jump(&mut self, ahead_s: u64) -> u64 {
        let counted_s = ahead_s.min(self.hub_jump_left_s);
        self.hub_jump_left_s -= counted_s;
        counted_s
    }
}

/// Whether `unix_s` is so much earlier than `known_s` that the owner means to set the time back.
pub(crate) fn is_set_back(unix_s: u64, known_s: u64) -> bool {
    unix_s.saturating_add(SET_BACK_S_MIN) < known_s
}

#[cfg(all(test, feature = "bridge"))]
mod tests {
    use core::time::Duration;

    use tenure_hal::{Entropy, EntropyError};

    use super::*;

    const DAY_S: u64 = 24 * 60 * 60;
    const TODAY_S: u64 = 1_800_000_000;

    /// Randomness that nobody asks for.
    struct Unasked;

    impl Entropy for Unasked {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyError> {
            Err(EntropyError)
        }
    }

    /// The time and its voucher, an hour after the boot, on a board whose clock shows `board_s`.
    fn known(clock: &Clock, board_s: Option<u64>) -> (Option<u64>, Option<Teller>) {
        let moment = Moment {
            now: Instant::BOOT + Duration::from_secs(3600),
            unix_time: board_s.map(|seconds| UnixTime { seconds }),
            entropy: &mut Unasked,
        };
        let vouched = clock.vouched_time(&moment).map(|time| time.seconds);
        (vouched, clock.voucher(&moment))
    }

    fn told(by: Teller) -> Clock {
        let told = ToldTime { at: Instant::BOOT, unix: UnixTime { seconds: TODAY_S - 3600 }, by };
        Clock { told: Some(told), ..Clock::new() }
    }

    #[test]
    fn clock_counts_unless_the_owner_contradicts_it() {
        let owner = told(Teller::Owner);
        for wrong in [TODAY_S - 3 * 3600, TODAY_S + 3 * 3600, TODAY_S + 4000 * DAY_S] {
            assert_eq!(known(&owner, Some(wrong)), (Some(TODAY_S), Some(Teller::Owner)));
        }
        for about in [TODAY_S - 1800, TODAY_S + 1800] {
            assert_eq!(known(&owner, Some(about)), (Some(about), None), "the clock is exacter");
        }
        let wrong = TODAY_S + 4000 * DAY_S;
        for by in [Teller::PinnedHub, Teller::Hub] {
            assert_eq!(known(&told(by), Some(wrong)), (Some(wrong), None), "no hub contradicts it");
        }
    }

    #[test]
    fn board_without_a_clock_takes_the_word_of_its_owner_or_of_a_pinned_hub() {
        assert_eq!(known(&Clock::new(), None).0, None);
        for by in [Teller::PinnedHub, Teller::Owner] {
            assert_eq!(known(&told(by), None), (Some(TODAY_S), Some(by)));
        }
        assert_eq!(known(&told(Teller::Hub), None).0, None, "nobody vouches for that hub");
    }
}
