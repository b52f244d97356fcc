//! The last lines of every machine's log, numbered, in rings of bounded size: where there is no room
//! for another line, the machine with the most lines loses its oldest, so that a chatterbox drowns
//! nobody's but its own. The last lines of each are kept over a restart.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use litemap::LiteMap;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_kernel::LogEntry;
use tenure_store::ValueKind;
use tenure_wire::control::{LogLine, LogPage};
use tenure_wire::limits::{LOG_KEPT_BYTES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::{LogLevel, MachineId, Name};

use crate::services::Services;
use crate::trees::SEALED_TREE;

/// The most bytes that a line takes in an answer beside its text.
const LINE_OVERHEAD: usize = 80;
/// The version of what is kept.
const KEPT_VERSION: u8 = 1;

/// A line as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptLine {
    boot: u32,
    at_ms: u64,
    unix_s: Option<u64>,
    level: String,
    message: String,
}

impl KeptLine {
    fn of(line: &LogLine) -> Self {
        let LogLine { boot, at_ms, unix_s, level, message, .. } = line.clone();
        Self { boot, at_ms, unix_s, level, message }
    }

    fn of_machine(self, machine: &Name) -> LogLine {
        let Self { boot, at_ms, unix_s, level, message } = self;
        LogLine { number: 0, at_ms, machine: machine.clone(), level, message, unix_s, boot }
    }
}

/// The log of a device since it booted, and before that what was kept of it.
#[derive(Debug)]
pub(crate) struct Log {
    lines_max: usize,
    /// The number of this boot.
    boot: u32,
    /// Each machine's lines, oldest first; no ring is empty.
    rings: LiteMap<Name, VecDeque<LogLine>>,
    /// The number of the next line.
    next: u64,
    /// How many lines made room for later ones.
    lost: u64,
    /// The machines that said something since it was kept.
    unkept: LiteMap<Name, ()>,
}

/// The lines that a reader asks for.
pub(crate) struct Wanted<'a> {
    /// Whose; of all machines if it is `None`.
    pub(crate) machine: Option<&'a Name>,
    /// The number of the first.
    pub(crate) from: u64,
    /// The least grave.
    pub(crate) level: LogLevel,
}

impl Wanted<'_> {
    fn has(&self, line: &LogLine) -> bool {
        // A level that only a later version knows is none to leave out.
        let level = line.level.parse().unwrap_or(LogLevel::Fault);
        line.number >= self.from && level <= self.level
    }
}

impl Log {
    pub(crate) fn new(lines_max: usize, boot: u32) -> Self {
        let (rings, unkept) = (LiteMap::new(), LiteMap::new());
        Self { lines_max, boot, rings, next: 0, lost: 0, unkept }
    }

    /// How many lines there were, by which the next one is numbered.
    pub(crate) fn lines(&self) -> u64 {
        self.next
    }

    /// Numbers on after `lines` lines that went with a sleep.
    pub(crate) fn go_on_from(&mut self, lines: u64) {
        self.next += lines;
        self.lost += lines;
    }

    /// Adds a line that is said at `unix`, if the time is known; gives it as it is kept.
    pub(crate) fn push(&mut self, entry: LogEntry, unix: Option<UnixTime>) -> LogLine {
        self.unkept.insert(entry.machine.clone(), ());
        self.add(LogLine {
            number: 0,
            at_ms: entry.at.as_millis(),
            machine: entry.machine,
            level: entry.level.as_str().to_string(),
            message: entry.message,
            unix_s: unix.map(|time| time.seconds),
            boot: self.boot,
        })
    }

    fn add(&mut self, line: LogLine) -> LogLine {
        let held: usize = self.rings.values().map(VecDeque::len).sum();
        if held >= self.lines_max {
            self.make_room();
        }
        let line = LogLine { number: self.next, ..line };
        self.next += 1;
        self.rings.entry(line.machine.clone()).or_default().push_back(line.clone());
        line
    }

    /// The last lines of `machine`, as they are kept over a restart: [`LOG_KEPT_BYTES_MAX`] at most.
    pub(crate) fn kept(&self, machine: &Name) -> Vec<u8> {
        let lines = self.rings.get(machine).into_iter().flatten();
        let mut kept = alloc::vec![KEPT_VERSION];
        let mut room = LOG_KEPT_BYTES_MAX - kept.len();
        let fitting = lines.rev().map_while(|line| {
            let bytes = postcard::to_allocvec(&KeptLine::of(line)).ok()?;
            room = room.checked_sub(bytes.len())?;
            Some(bytes)
        });
        let mut newest_first: Vec<Vec<u8>> = fitting.collect();
        newest_first.reverse();
        newest_first.iter().for_each(|line| kept.extend_from_slice(line));
        kept
    }

    /// Takes up what was kept of the logs of machines. What can't be read is left out.
    pub(crate) fn take_up(&mut self, logs: &[(Name, Vec<u8>)]) {
        let mut lines = Vec::new();
        for (machine, kept) in logs {
            let Some((&KEPT_VERSION, mut rest)) = kept.split_first() else { continue };
            while let Ok((line, behind)) = postcard::take_from_bytes::<KeptLine>(rest) {
                rest = behind;
                lines.push(line.of_machine(machine));
            }
        }
        // A machine's own lines come one after another, even of one millisecond.
        let mut lines: Vec<_> = lines.into_iter().enumerate().collect();
        let when = |(index, line): &(usize, LogLine)| (line.boot, line.at_ms, *index);
        tenure_hal::sort_by(&mut lines, |one, two| when(one).cmp(&when(two)));
        lines.into_iter().for_each(|(_, line)| {
            self.add(line);
        });
    }

    /// As many lines as fit one answer, of those that are `wanted`. `unix` is the time at `now`, if it is
    /// known: by it lines have a time that were said before the device knew it.
    pub(crate) fn page(
        &self,
        wanted: &Wanted<'_>,
        (now, unix): (Instant, Option<UnixTime>),
        dropped: u64,
    ) -> LogPage {
        let is_asked = |name: &Name| wanted.machine.is_none_or(|one| one == name);
        let rings = self.rings.iter().filter(|(name, _)| is_asked(name));
        let lines = rings.flat_map(|(_, ring)| ring);
        let mut found: Vec<&LogLine> = lines.filter(|line| wanted.has(line)).collect();
        tenure_hal::sort_by(&mut found, |one, two| one.number.cmp(&two.number));
        let mut room = PARAMETER_BYTES_MAX - LINE_OVERHEAD;
        let fitting = found.iter().take_while(|line| {
            let bytes = line.message.len() + LINE_OVERHEAD;
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        let lines: Vec<LogLine> =
            fitting.map(|line| self.dated((*line).clone(), now, unix)).collect();
        let following = found.get(lines.len());
        LogPage {
            next: following.map_or(self.next.max(wanted.from), |line| line.number),
            more: following.is_some(),
            lost: self.lost + dropped,
            boot: self.boot,
            lines,
        }
    }

    /// Forgets the lines of a machine that is gone, whose name another takes. Until then its owner may read why it went.
    pub(crate) fn forget(&mut self, machine: &Name) {
        self.rings.remove(machine);
        self.unkept.remove(machine);
    }

    fn dated(&self, line: LogLine, now: Instant, unix: Option<UnixTime>) -> LogLine {
        let ago_s = now.as_millis().saturating_sub(line.at_ms) / 1000;
        let by_now = unix.filter(|_| line.boot == self.boot);
        let by_now = by_now.map(|time| time.seconds.saturating_sub(ago_s));
        LogLine { unix_s: line.unix_s.or(by_now), ..line }
    }

    /// Drops the oldest line of the machine that has most; among equals, the oldest of all.
    fn make_room(&mut self) {
        let oldest = |ring: &VecDeque<LogLine>| Reverse(ring.front().map(|line| line.number));
        let longest = self.rings.iter().max_by_key(|(_, ring)| (ring.len(), oldest(ring)));
        // A log that keeps no lines has none to drop.
        let Some(name) = longest.map(|(name, _)| name.clone()) else { return };
        self.lost += 1;
        if let Some(ring) = self.rings.get_mut(&name) {
            ring.pop_front();
        }
        self.rings.retain(|_, ring| !ring.is_empty());
    }
}

/// Takes up what was kept of the machines' logs before the restart.
pub(crate) fn take_up<F: Flash>(log: &mut Log, services: &mut Services<F>) {
    let machines = services.kernel.machines().map(|info| (info.id, info.record.name.clone()));
    let machines = machines.collect();
    take_up_of(log, services, machines);
}

/// As [`take_up`], of some machines.
pub(crate) fn take_up_of<F: Flash>(
    log: &mut Log,
    services: &mut Services<F>,
    machines: Vec<(MachineId, Name)>,
) {
    let mut kept_of = |id: &MachineId| {
        let kept = services.kernel.store().get(SEALED_TREE, &kept_path(id));
        kept.ok().flatten().map(|kept| kept.bytes)
    };
    let logs: Vec<_> =
        machines.into_iter().filter_map(|(id, machine)| Some((machine, kept_of(&id)?))).collect();
    log.take_up(&logs);
}

/// Keeps the last lines of the machines that said something since this was done last, on the bill of each.
/// A machine that has used up what it may write to flash, or a store without room, keeps what was kept.
pub(crate) fn keep<F: Flash>(log: &mut Log, services: &mut Services<F>, now: Instant) {
    for machine in log.unkept.keys().cloned().collect::<Vec<_>>() {
        keep_of(log, services, now, &machine);
    }
}

/// As [`keep`], of one machine.
pub(crate) fn keep_of<F: Flash>(
    log: &mut Log,
    services: &mut Services<F>,
    now: Instant,
    machine: &Name,
) {
    log.unkept.remove(machine);
    let found = services.kernel.machines().find(|info| info.record.name == *machine);
    // The device's own lines aren't kept.
    let Some(id) = found.map(|info| info.id) else { return };
    let kept = log.kept(machine);
    if services.kernel.spend_flash(now, id, kept.len()) {
        let _ = services.kernel.store().set(SEALED_TREE, &kept_path(&id), ValueKind::Bytes, &kept);
    }
}

/// Forgets what was kept of the log of a machine that is gone.
pub(crate) fn forget<F: Flash>(services: &mut Services<F>, id: &MachineId) {
    let _ = services.kernel.store().delete(SEALED_TREE, &kept_path(id));
}

fn kept_path(id: &MachineId) -> String {
    alloc::format!("logs.{id}")
}

#[cfg(test)]
mod tests;
