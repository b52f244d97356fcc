//! The state that a hub's own thread and its pages share while they run, beside the database.

pub(crate) mod acts;
pub(crate) mod carried;
pub(crate) mod hearing;
pub(crate) mod live_logs;

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use tenure_hub::{Fullness, RelayCounts, TABLE_OF_DEVICES};

use crate::owners::Owners;
use acts::Acts;
use carried::Carried;
use hearing::{Hearing, Overload, Traffic};
use live_logs::LiveLogs;

/// How long after a jump of the wall clock another one isn't told, in seconds.
const JUMP_AGAIN_S: u64 = 600;
/// How long a jump of the wall clock is told, in seconds.
const JUMP_TOLD_S: u64 = 60 * 60;
/// The longest time between two turns of the hub's thread at which it still hears, in seconds.
const DEAF_S: u64 = 10;

/// A hub that runs, as its thread and its pages see it. Clones are the same hub.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    logs: LiveLogs,
    hears: Mutex<Hears>,
    hearing: Mutex<Hearing>,
    writers: Mutex<Writers>,
    changed: Condvar,
    /// The most pages of the database; 0 for no limit.
    pages_max: AtomicU32,
    /// How full the hub's tables are.
    fullness: Mutex<Vec<Fullness>>,
    /// What the hub has relayed.
    relayed: Mutex<RelayCounts>,
    /// What is changed in this day, and by whom.
    acts: Acts,
    /// The connections by which datagrams come beside UDP.
    carried: Carried,
    /// Whose keys are owners' here.
    owners: Mutex<Arc<Owners>>,
    /// The last jump of the wall clock.
    jump: Mutex<Option<Jump>>,
    /// How far this computer's clock is corrected, in milliseconds: all hubs on one database have its time.
    clock_correction_ms: AtomicI64,
}

/// Since when the hub has heard without a gap, and when it did last: seconds since 1970 UTC. Both change together.
#[derive(Clone, Copy, Debug, Default)]
struct Hears {
    since_unix_s: u64,
    last_unix_s: u64,
}

/// A jump of the wall clock: it was set, or the hub was away for so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// When it was noticed, in seconds since 1970 UTC by the clock after it.
    at_unix_s: u64,
    /// How far it went; negative for back.
    pub(crate) by_s: i64,
}

/// The writers of the database: one at a time, the directory before all others.
#[derive(Debug, Default)]
struct Writers {
    is_writing: bool,
    directory_waits: bool,
}

/// A writer's turn; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Running);

impl Running {
    /// The logs that are watched.
    pub(crate) fn logs(&self) -> &LiveLogs {
        &self.0.logs
    }

    /// What is changed in this day, and by whom.
    pub(crate) fn acts(&self) -> &Acts {
        &self.0.acts
    }

    /// Whose keys are owners' here.
    pub(crate) fn owners(&self) -> Arc<Owners> {
        Arc::clone(&self.0.owners.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn admit(&self, owners: Owners) {
        *self.0.owners.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(owners);
    }

    /// The wall clock of the hub, in seconds since 1970 UTC: this computer's, corrected by that of a database which other
    /// hubs may share.
    pub fn unix_s(&self) -> u64 {
        let here_ms = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64);
        here_ms.saturating_add_signed(self.clock_correction_ms()) / 1_000
    }

    pub(crate) fn clock_correction_ms(&self) -> i64 {
        self.0.clock_correction_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn correct_clock(&self, correction_ms: i64) {
        self.0.clock_correction_ms.store(correction_ms, Ordering::Relaxed);
    }

    /// Says that the hub hears its devices now, which it does every few seconds at least. After a gap, or a jump of the
    /// clock, it hears anew from now on: silence of before proves nothing.
    pub fn hear(&self, unix_s: u64) {
        let mut hears = self.0.hears.lock().unwrap_or_else(PoisonError::into_inner);
        let last = hears.last_unix_s;
        if unix_s < last || unix_s - last > DEAF_S {
            hears.since_unix_s = unix_s;
        }
        hears.last_unix_s = unix_s;
    }

    /// Says what came to the hub's socket until now. While it hears too few of its devices nothing is judged by silence, and
    /// it hears anew once that is over.
    pub fn measure(&self, unix_s: u64, traffic: Traffic) {
        let mut hearing = self.0.hearing.lock().unwrap_or_else(PoisonError::into_inner);
        hearing.note(unix_s, traffic);
        let is_overloaded = hearing.overload().is_some();
        drop(hearing);
        if is_overloaded {
            let mut hears = self.0.hears.lock().unwrap_or_else(PoisonError::into_inner);
            hears.since_unix_s = unix_s;
        }
    }

    /// Why the hub hears too few of its devices, if it does.
    pub(crate) fn overload(&self) -> Option<Overload> {
        self.0.hearing.lock().unwrap_or_else(PoisonError::into_inner).overload()
    }

    /// What came to the hub's socket since its start.
    pub(crate) fn traffic(&self) -> Traffic {
        self.0.hearing.lock().unwrap_or_else(PoisonError::into_inner).traffic()
    }

    /// Since when the hub has heard without a gap, as it is at `unix_s`, when silence is to be judged: both in seconds since
    /// 1970 UTC. A hub that hears nothing at that moment has heard since then at the earliest: its thread may be the last
    /// one to wake after the process stood still. Where no thread of a hub ever took note, as in a tool, nothing was missed.
    pub(crate) fn hears_since_unix_s(&self, unix_s: u64) -> u64 {
        match self.is_deaf(unix_s) {
            Some(Some(_)) => unix_s,
            _ if self.overload().is_some() => unix_s,
            Some(None) | None => self.hears().since_unix_s,
        }
    }

    fn hears(&self) -> Hears {
        *self.0.hears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the hub hears no device now; if so, since how many seconds, unless it never did.
    pub(crate) fn is_deaf(&self, unix_s: u64) -> Option<Option<u64>> {
        let last = self.hears().last_unix_s;
        let silent_s = unix_s.saturating_sub(last);
        (silent_s > DEAF_S).then_some((last > 0).then_some(silent_s))
    }

    /// Takes note that the wall clock went on by so many seconds at once, or back, and says so.
    pub(crate) fn note_jump(&self, at_unix_s: u64, by_s: i64) {
        let mut jump = self.0.jump.lock().unwrap_or_else(PoisonError::into_inner);
        // One that can't be written down yet comes again.
        if jump.is_some_and(|jump| at_unix_s.abs_diff(jump.at_unix_s) < JUMP_AGAIN_S) {
            return;
        }
        let noted = Jump { at_unix_s, by_s };
        tracing::error!("{}", noted.words());
        *jump = Some(noted);
    }

    /// The last jump of the wall clock, for an hour.
    pub(crate) fn jump(&self, unix_s: u64) -> Option<Jump> {
        let jump = *self.0.jump.lock().unwrap_or_else(PoisonError::into_inner);
        jump.filter(|jump| unix_s.saturating_sub(jump.at_unix_s) < JUMP_TOLD_S)
    }

    /// Says how full the hub's tables are now.
    pub fn tell_fullness(&self, tables: &[Fullness]) {
        let mut told = self.0.fullness.lock().unwrap_or_else(PoisonError::into_inner);
        told.clear();
        told.extend_from_slice(tables);
    }

    /// How full the hub's tables were when that was last told.
    pub(crate) fn fullness(&self) -> Vec<Fullness> {
        self.0.fullness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many devices the hub lists, of how many; `None` before it was told.
    pub(crate) fn listed(&self) -> Option<Fullness> {
        let told = self.0.fullness.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().find(|table| table.table == TABLE_OF_DEVICES).copied()
    }

    /// Says what the hub has relayed until now.
    pub fn tell_relayed(&self, relayed: RelayCounts) {
        *self.0.relayed.lock().unwrap_or_else(PoisonError::into_inner) = relayed;
    }

    /// What the hub had relayed when that was last told.
    pub(crate) fn relayed(&self) -> RelayCounts {
        *self.0.relayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most pages of the database, if there is a limit.
    pub(crate) fn pages_max(&self) -> Option<u32> {
        Some(self.0.pages_max.load(Ordering::Relaxed)).filter(|pages| *pages > 0)
    }

    pub(crate) fn limit_pages(&self, pages: Option<u32>) {
        self.0.pages_max.store(pages.unwrap_or(0), Ordering::Relaxed);
    }

    /// The directory's turn to write, as soon as whoever writes now is done: nobody else comes before it.
    /// `None` after `patience`.
    pub(crate) fn directory_writes(&self, patience: Duration) -> Option<Turn> {
        let mut writers = self.writers();
        writers.directory_waits = true;
        let waits = |writers: &mut Writers| writers.is_writing;
        let waited = self.0.changed.wait_timeout_while(writers, patience, waits);
        let (mut writers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        writers.directory_waits = false;
        self.take(writers)
    }

    /// The turn of somebody else, when neither they nor the directory write or wait to. `None` after
    /// `patience`.
    pub(crate) fn others_write(&self, patience: Duration) -> Option<Turn> {
        let waits = |writers: &mut Writers| writers.is_writing || writers.directory_waits;
        let waited = self.0.changed.wait_timeout_while(self.writers(), patience, waits);
        let (writers, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { None } else { self.take(writers) }
    }

    fn take(&self, mut writers: MutexGuard<'_, Writers>) -> Option<Turn> {
        let is_free = !writers.is_writing;
        writers.is_writing = true;
        drop(writers);
        // Others may wait for the directory, which waits no longer.
        self.0.changed.notify_all();
        is_free.then(|| Turn(self.clone()))
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.0.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jump {
    /// Says what happened, and what didn't.
    pub(crate) fn words(self) -> String {
        let by = humantime::format_duration(Duration::from_secs(self.by_s.unsigned_abs()));
        match self.by_s < 0 {
            true => format!(
                "the clock went back by {by}: records of a time that never came are over, and nothing is forgotten for it"
            ),
            false => format!(
                "the clock went ahead by {by} while the hub heard nobody: it was off or stood still, or its clock is wrong; \
                 nothing is forgotten for it"
            ),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.writers().is_writing = false;
        self.0.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use tenure_hub::Renewals;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    #[test]
    fn hub_that_stood_still_or_whose_clock_jumped_hears_anew() {
        let running = Running::default();
        for (unix_s, since) in [(100, 100), (105, 100), (115, 100), (126, 126), (120, 120)] {
            running.hear(unix_s);
            assert_eq!(running.hears_since_unix_s(unix_s), since, "at {unix_s}");
        }
    }

    /// The threads that judge silence may be the first to wake.
    #[test]
    fn hub_that_stood_still_has_heard_nothing_before_its_own_thread_wakes() {
        let running = Running::default();
        for unix_s in [100, 105, 110] {
            running.hear(unix_s);
        }
        assert_eq!(running.hears_since_unix_s(120), 100);
        assert_eq!(running.hears_since_unix_s(190), 190, "nobody listened");
        running.hear(190);
        assert_eq!(running.hears_since_unix_s(191), 190);
    }

    #[test]
    fn hub_that_loses_most_of_what_devices_say_judges_nobody_and_hears_anew_when_that_is_over() {
        let running = Running::default();
        let turn = |unix_s, (received, dropped), overdue| {
            let renewals = Renewals { in_time: 10, overdue, listed: 10 + overdue };
            let traffic = Traffic { received, dropped, renewals, ..Traffic::default() };
            running.measure(unix_s, traffic);
            running.hear(unix_s);
            running.hears_since_unix_s(unix_s)
        };
        assert_eq!([turn(100, (0, 0), 0), turn(105, (50, 0), 2)], [100, 100]);
        assert_eq!([turn(110, (60, 90), 0), turn(115, (70, 180), 0)], [110, 115], "it drops most");
        assert_eq!(turn(120, (170, 180), 0), 120, "just now");
        assert_eq!([turn(130, (270, 180), 0), turn(139, (370, 180), 0)], [120, 120]);
        assert_eq!(
            [turn(140, (370, 180), 9), turn(145, (370, 180), 9)],
            [140, 145],
            "who is due is late"
        );
        assert_eq!([turn(150, (470, 180), 1), turn(155, (570, 180), 1)], [145, 145]);
    }

    #[test]
    fn one_writes_at_a_time_and_the_directory_comes_first() {
        let running = Running::default();
        let turn = running.others_write(SOON).unwrap();
        assert!(running.others_write(SOON).is_none());
        assert!(running.directory_writes(SOON).is_none());
        drop(turn);
        let turn = running.others_write(SOON).unwrap();
        let patience = Duration::from_secs(600);
        std::thread::scope(|scope| {
            let directory = scope.spawn(|| running.directory_writes(patience).unwrap());
            while !running.writers().directory_waits {
                std::thread::yield_now();
            }
            // The place is free, and kept for the directory.
            running.writers().is_writing = false;
            assert!(running.others_write(Duration::ZERO).is_none());
            std::mem::forget(turn);
            running.0.changed.notify_all();
            drop(directory.join().unwrap());
        });
        assert!(running.others_write(SOON).is_some());
    }
}
