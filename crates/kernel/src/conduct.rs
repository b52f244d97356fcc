//! Conduct: what faults cost a machine, how good behaviour makes up for them, and when it is banned.
//!
//! Invariants:
//! - Only a machine's own faults count against it. A loss of power counts against nobody.
//! - What must outlast a restart of the device is written to flash once per change of repute, and once
//!   per bite of the watchdog; never per fault or per turn.
//!
//! Each fault adds one to the machine's score, and keeps it from running for a second, doubled with
//! each further one, ten minutes at most. From the third on it also waits a thousand times as long as it ran, so that
//! a loop of crashes gets less than a thousandth of the processor whatever it does in between. Running
//! without a fault for twice the last wait, a minute at least, takes one off again. At
//! [`PROBATION_AT`] a machine is on probation: the score outlasts restarts, until it is back at zero.
//! At [`BAN_AT`] it is banned until its owner lifts that, or updates it.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;

/// The score from which on a machine is on probation.
pub(crate) const PROBATION_AT: u32 = 5;
/// The score at which it is banned.
pub(crate) const BAN_AT: u32 = 12;
/// The score from which on the time that it ran counts.
const LOOP_AT: u32 = 3;
/// How many times as long as it ran it waits then.
const LOOP_WAIT: u32 = 1_000;
const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(600);
const LOOP_WAIT_MAX: Duration = Duration::from_secs(6 * 3600);
/// The shortest run without a fault that takes one off the score.
const GOOD_RUN_MIN: Duration = Duration::from_secs(60);

/// The standing of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repute {
    /// Nothing is held against it.
    #[default]
    Good,
    /// It has failed again and again; that is remembered over restarts of the device.
    Probation,
    /// It doesn't run any more, until its owner lifts that or updates it.
    Banned,
}

impl Repute {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Probation => "probation",
            Self::Banned => "banned",
        }
    }
}

/// The record of a machine's conduct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conduct {
    repute: Repute,
    score: u32,
    /// Since when it may run; absent before its first fault.
    #[serde(with = "crate::moment::optional")]
    since: Option<Instant>,
    /// The last wait that it was given.
    wait: Duration,
}

impl Conduct {
    /// As it was written down; a machine on probation starts with what puts it there at least.
    pub(crate) fn remembered(repute: Repute, score: u32, now: Instant) -> Self {
        let score = match repute {
            Repute::Good => score.min(PROBATION_AT - 1),
            Repute::Probation => score.clamp(PROBATION_AT, BAN_AT - 1),
            Repute::Banned => BAN_AT,
        };
        let wait = wait_for(score);
        Self { repute, score, since: Some(now), wait }
    }

    pub(crate) fn repute(&self) -> Repute {
        self.repute
    }

    /// How many faults count against it.
    pub(crate) fn score(&self) -> u32 {
        self.score
    }

    /// It has failed after running for `ran`. Gives when it may start again: never, if it is banned.
    pub(crate) fn fault(&mut self, now: Instant, ran: Duration) -> Option<Instant> {
        self.settle(now);
        self.score = (self.score + 1).min(BAN_AT);
        let mut wait = wait_for(self.score);
        if self.score >= LOOP_AT {
            wait = wait.max(ran.saturating_mul(LOOP_WAIT).min(LOOP_WAIT_MAX));
        }
        self.wait = wait;
        self.since = Some(now + wait);
        if self.score >= BAN_AT {
            self.repute = Repute::Banned;
        } else if self.score >= PROBATION_AT {
            self.repute = Repute::Probation;
        }
        (self.repute != Repute::Banned).then(|| now + wait)
    }

    /// Takes off the score what it has behaved well for.
    pub(crate) fn settle(&mut self, now: Instant) {
        // It has never faulted, or is banned, which time alone does not lift.
        let Some(since) = self.since.filter(|_| self.repute != Repute::Banned) else { return };
        let mut since = since;
        while self.score > 0 {
            let good_run = (self.wait * 2).max(GOOD_RUN_MIN);
            if now.since(since) < good_run {
                break;
            }
            since = since + good_run;
            self.score -= 1;
            self.wait = wait_for(self.score);
        }
        self.since = Some(since);
        if self.score == 0 {
            *self = Self::default();
        }
    }
}

/// The wait after the fault that made the score this.
fn wait_for(score: u32) -> Duration {
    match score.checked_sub(1) {
        None => Duration::ZERO,
        Some(before) => WAIT_FIRST.saturating_mul(1 << before.min(16)).min(WAIT_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const BRIEF: Duration = Duration::from_millis(1);

    #[test]
    fn waits_double_until_the_ban() {
        let (mut conduct, mut now) = (Conduct::default(), Instant::BOOT);
        let mut waits = Vec::new();
        while let Some(restart) = conduct.fault(now, BRIEF) {
            waits.push(restart.since(now).as_secs());
            now = restart;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]);
        assert_eq!(conduct.repute(), Repute::Banned);
    }

    #[test]
    fn repute_changes_at_most_thrice_on_the_way_to_the_ban_and_back() {
        let (mut conduct, mut now) = (Conduct::default(), Instant::BOOT);
        for fault in 1..BAN_AT {
            now = conduct.fault(now, BRIEF).unwrap();
            let expected = if fault < PROBATION_AT { Repute::Good } else { Repute::Probation };
            assert_eq!(conduct.repute(), expected);
        }
        now = now + Duration::from_secs(10_000);
        conduct.settle(now);
        assert_eq!(conduct, Conduct::default(), "all is made up for");
    }

    #[test]
    fn good_behaviour_makes_up_for_one_fault_at_a_time() {
        let (mut conduct, now) = (Conduct::default(), Instant::BOOT);
        let restart = conduct.fault(now, BRIEF).unwrap();
        let restart = conduct.fault(restart, BRIEF).unwrap();
        conduct.settle(restart + Duration::from_millis(59_999));
        assert_eq!(conduct.score(), 2);
        conduct.settle(restart + Duration::from_secs(60));
        assert_eq!(conduct.score(), 1);
        conduct.settle(restart + Duration::from_secs(120));
        assert_eq!(conduct.score(), 0);
    }

    #[test]
    fn a_loop_of_crashes_gets_less_than_a_thousandth_whatever_it_burns() {
        for ran in [1, 100, 1_000, 5_000, 20_000].map(Duration::from_millis) {
            let (mut conduct, mut now) = (Conduct::default(), Instant::BOOT);
            let (mut busy, mut since) = (Duration::ZERO, None);
            while let Some(restart) = conduct.fault(now, ran) {
                if conduct.score() >= LOOP_AT {
                    since.get_or_insert(now);
                    busy += ran;
                }
                now = restart + ran;
            }
            let span = now.since(since.unwrap());
            assert!(busy * 1000 <= span, "{ran:?}: {busy:?} of {span:?}");
        }
    }

    #[test]
    fn what_is_remembered_outlasts_a_restart() {
        let conduct = Conduct::remembered(Repute::Probation, 0, Instant::BOOT);
        assert_eq!((conduct.repute(), conduct.score()), (Repute::Probation, PROBATION_AT));
        let mut banned = Conduct::remembered(Repute::Banned, 3, Instant::BOOT);
        banned.settle(Instant::from_millis(u64::MAX / 2000));
        assert_eq!(banned.repute(), Repute::Banned, "time alone lifts no ban");
    }
}
