//! Logs of devices while somebody watches them: from a device's session to the streams of its owner.
//!
//! Invariants:
//! - A device is asked for lines while somebody watches it, and for none otherwise.
//! - Lines are in memory alone, and are forgotten once the last watcher is gone.
//! - A watcher who doesn't keep up loses lines, and is told how many; nobody waits for him.
//! - Watchers are bounded in all and for each key, and so are the lines that wait for each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_wire::control::LogLine;
use tenure_wire::limits::LOG_BYTES_MAX;
use tenure_wire::live_log::{Followed, LogShare};
use tenure_wire::printable::printable;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The most watchers at once, and those of one key.
const WATCHERS_MAX: usize = 64;
pub(crate) const WATCHERS_OF_KEY_MAX: usize = 4;
/// Of those of one key the most of its people, so that one is kept for the key itself, and those of one person.
const WATCHERS_OF_PEOPLE_MAX: usize = 3;
const WATCHERS_OF_PERSON_MAX: usize = 2;
/// The most messages that wait for a watcher.
const WAITING_MAX: usize = 16;
/// The most lines of a device that are kept for whoever comes later.
const KEPT_MAX: usize = 256;
/// The most lines that are taken at once.
const LINES_MAX: usize = 256;
/// The longest word of a line.
const WORD_CHARS_MAX: usize = 32;
/// For how long a device counts as one that shows its log after it asked, in seconds.
const SHARES_S: u64 = 60 * 60;

/// The logs that are watched, shared by the hub and its pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveLogs(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// The watched devices, by name.
    watched: BTreeMap<String, Watched>,
    /// When each device asked last that shows its log, in seconds since 1970 UTC.
    asked_unix_s: BTreeMap<String, u64>,
    /// When those were last forgotten that asked too long ago.
    swept_unix_s: u64,
    /// How many were looked at for that.
    #[cfg(test)]
    swept: usize,
    /// The number of the next watcher.
    next_id: u64,
}

#[derive(Debug)]
struct Watched {
    owner: String,
    /// How far its log is here.
    followed: Followed,
    /// The boot that its lines are numbered by, once the device has said so.
    boot: Option<u32>,
    kept: VecDeque<Arc<LogLine>>,
    watchers: Vec<Watcher>,
}

#[derive(Debug)]
struct Watcher {
    id: u64,
    /// The person of the key who watches; `None` for the key itself.
    person: Option<i64>,
    sender: Sender<Message>,
    /// Lines that it couldn't take.
    lost: u64,
}

/// A part of a log as it reaches a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Lines, oldest first.
    Lines(Vec<Arc<LogLine>>),
    /// So many lines are missing here.
    Lost(u64),
}

/// Somebody's watch over a device, over once it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    logs: LiveLogs,
    device: String,
    id: u64,
    messages: Receiver<Message>,
}

impl LiveLogs {
    /// Begins to watch `device` in the name of its owner `who`, by a person of that key or itself; `None` if there are too many
    /// watchers.
    pub(crate) fn watch(&self, who: &str, person: Option<i64>, device: &str) -> Option<Watch> {
        let mut inner = self.inner();
        let all = inner.watched.values().map(|watched| watched.watchers.len()).sum::<usize>();
        let of_who = inner.watched.values().filter(|watched| watched.owner == who);
        let of_who: Vec<Option<i64>> =
            of_who.flat_map(|watched| &watched.watchers).map(|watcher| watcher.person).collect();
        let of_people = of_who.iter().filter(|by| by.is_some()).count();
        let of_person = of_who.iter().filter(|by| **by == person).count();
        let is_beyond_people = person.is_some()
            && (of_people >= WATCHERS_OF_PEOPLE_MAX || of_person >= WATCHERS_OF_PERSON_MAX);
        if all >= WATCHERS_MAX || of_who.len() >= WATCHERS_OF_KEY_MAX || is_beyond_people {
            return None;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        let (sender, messages) = mpsc::channel(WAITING_MAX);
        // Another owner's device had the name before.
        inner.watched.retain(|name, watched| name != device || watched.owner == who);
        let watched = inner.watched.entry(device.into()).or_insert_with(|| Watched::of(who));
        let mut watcher = Watcher { id, person, sender, lost: 0 };
        watcher.take(watched.kept.iter().cloned().collect(), 0);
        watched.watchers.push(watcher);
        drop(inner);
        Some(Watch { logs: self.clone(), device: device.into(), id, messages })
    }

    /// Whether `device` asked of late whether it is watched, as one does whose owner lets it show its log here.
    pub(crate) fn is_shared(&self, device: &str, unix_s: u64) -> bool {
        let asked = self.inner().asked_unix_s.get(device).copied();
        asked.is_some_and(|asked| unix_s.abs_diff(asked) < SHARES_S)
    }

    /// Takes lines of a device; returns the first one that is wanted, if it is watched.
    pub(crate) fn take(
        &self,
        (device, owner): (&str, &str),
        share: &LogShare,
        unix_s: u64,
    ) -> Option<u64> {
        let mut inner = self.inner();
        inner.asked_unix_s.insert(device.into(), unix_s);
        if unix_s.abs_diff(inner.swept_unix_s) >= SHARES_S {
            // Once in that time, and not for each device: as many stay as are listed.
            inner.swept_unix_s = unix_s;
            #[cfg(test)]
            {
                inner.swept += inner.asked_unix_s.len();
            }
            inner.asked_unix_s.retain(|_, asked| unix_s.abs_diff(*asked) < SHARES_S);
        }
        let watched = inner.watched.get_mut(device).filter(|watched| watched.owner == owner)?;
        watched.take(share);
        Some(watched.followed.next())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn of(owner: &str) -> Self {
        let (kept, watchers) = (VecDeque::new(), Vec::new());
        Self { owner: owner.into(), followed: Followed::default(), boot: None, kept, watchers }
    }

    /// Keeps those lines that are new, and hands them to each watcher.
    fn take(&mut self, share: &LogShare) {
        let is_restart = self.followed.is_restart(share.boot);
        if self.boot.replace(share.boot).is_none() || is_restart {
            // Lines are numbered anew with each boot: those from the first on are asked for.
            return;
        }
        let next = self.followed.next();
        let told = share.lines.iter().filter(|line| line.number >= next).take(LINES_MAX);
        let told: Vec<&LogLine> = told.collect();
        let (Some(first), Some(last)) = (told.first(), told.last()) else { return };
        // The first one that a device tells has whatever number its log begins with.
        let missing = if self.kept.is_empty() { 0 } else { first.number.saturating_sub(next) };
        self.followed.go_on_from(last.number.saturating_add(1));
        // What a device kept over a restart comes again.
        let lines = told.into_iter().filter(|line| self.followed.takes(line));
        let lines: Vec<Arc<LogLine>> = lines.map(clean).map(Arc::new).collect();
        self.kept.extend(lines.iter().cloned());
        self.kept.drain(..self.kept.len().saturating_sub(KEPT_MAX));
        for watcher in &mut self.watchers {
            watcher.take(lines.clone(), missing);
        }
    }
}

impl Watcher {
    /// Hands over lines before which `missing` ones are lost, or counts them as lost.
    fn take(&mut self, lines: Vec<Arc<LogLine>>, missing: u64) {
        let lost = self.lost.saturating_add(missing);
        let count = lines.len() as u64;
        let has_room = self.sender.capacity() > 1;
        if has_room && lost > 0 {
            // There is room, or the watcher is gone.
            let _ = self.sender.try_send(Message::Lost(lost));
        }
        self.lost = if has_room { 0 } else { lost };
        if count > 0 && self.sender.try_send(Message::Lines(lines)).is_err() {
            self.lost = self.lost.saturating_add(count);
        }
    }
}

impl Watch {
    /// The next part of the log.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut inner = self.logs.inner();
        let Some(watched) = inner.watched.get_mut(&self.device) else { return };
        watched.watchers.retain(|watcher| watcher.id != self.id);
        if watched.watchers.is_empty() {
            inner.watched.remove(&self.device);
        }
    }
}

/// A line whose texts are cut, and have nothing in them that a terminal obeys.
fn clean(line: &LogLine) -> LogLine {
    let words = |text: &str, max| printable(text).chars().take(max).collect();
    LogLine {
        level: words(&line.level, WORD_CHARS_MAX),
        message: words(&line.message, LOG_BYTES_MAX),
        ..line.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_900_000_000;

    #[test]
    fn ten_thousand_devices_that_ask_cost_a_step_each_and_those_of_before_are_forgotten() {
        let logs = LiveLogs::default();
        let ask = |device: u64, unix_s| {
            let share = LogShare { boot: 1, lines: Vec::new(), next: 0 };
            assert_eq!(logs.take((&format!("device-{device}"), "owner"), &share, unix_s), None);
        };
        for device in 0..10_000 {
            ask(device, NOW + device % 60);
        }
        assert!(logs.is_shared("device-7", NOW + 60));
        ask(0, NOW + SHARES_S + 60);
        let inner = logs.inner();
        assert_eq!(inner.asked_unix_s.len(), 1, "the others asked an hour ago and more");
        assert!(inner.swept <= 10_001, "{} steps for 10,001 questions", inner.swept);
    }
}
