//! The last lines of every machine's log, numbered, in rings of bounded size: where there is no room
//! for another line, the machine with the most lines loses its oldest, so that a chatterbox drowns
//! nobody's but its own.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tenure_kernel::LogEntry;
use tenure_wire::Name;
use tenure_wire::control::{LogLine, LogPage};
use tenure_wire::limits::PARAMETER_BYTES_MAX;

/// What a line takes beside its text, at most, in an answer.
const LINE_OVERHEAD: usize = 64;

/// The log of a device since it booted.
#[derive(Debug)]
pub(crate) struct Log {
    lines_max: usize,
    /// Each machine's lines, oldest first; no ring is empty.
    rings: BTreeMap<Name, VecDeque<LogLine>>,
    /// The number of the next line.
    next: u64,
    /// How many lines made room for later ones.
    lost: u64,
}

impl Log {
    pub(crate) fn new(lines_max: usize) -> Self {
        Self { lines_max, rings: BTreeMap::new(), next: 0, lost: 0 }
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

    /// Adds a line; gives it as it is kept.
    pub(crate) fn push(&mut self, entry: LogEntry) -> LogLine {
        let kept: usize = self.rings.values().map(VecDeque::len).sum();
        if kept >= self.lines_max {
            self.make_room();
        }
        let line = LogLine {
            number: self.next,
            at_ms: entry.at.as_millis(),
            machine: entry.machine,
            level: entry.level.as_str().to_string(),
            message: entry.message,
        };
        self.next += 1;
        self.rings.entry(line.machine.clone()).or_default().push_back(line.clone());
        line
    }

    /// As many lines from number `from` on as fit one answer, of one machine or of all.
    pub(crate) fn page(&self, machine: Option<&Name>, from: u64, dropped: u64) -> LogPage {
        let rings = self.rings.iter().filter(|(name, _)| machine.is_none_or(|one| one == *name));
        let mut wanted: Vec<&LogLine> =
            rings.flat_map(|(_, ring)| ring).filter(|line| line.number >= from).collect();
        wanted.sort_unstable_by_key(|line| line.number);
        let mut room = PARAMETER_BYTES_MAX - LINE_OVERHEAD;
        let fitting = wanted.iter().take_while(|line| {
            let bytes = line.message.len() + LINE_OVERHEAD;
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        let lines: Vec<LogLine> = fitting.map(|line| (*line).clone()).collect();
        let following = wanted.get(lines.len());
        LogPage {
            next: following.map_or(self.next.max(from), |line| line.number),
            more: following.is_some(),
            lost: self.lost + dropped,
            lines,
        }
    }

    /// Drops the oldest line of the machine that has most; among equals, the oldest of all.
    fn make_room(&mut self) {
        let oldest = |ring: &VecDeque<LogLine>| Reverse(ring.front().map(|line| line.number));
        let longest = self.rings.iter().max_by_key(|(_, ring)| (ring.len(), oldest(ring)));
        // A log that keeps no lines has none to drop.
        let Some(name) = longest.map(|(name, _)| name.clone()) else { return };
        self.lost += 1;
        self.rings.retain(|machine, ring| {
            if *machine == name {
                ring.pop_front();
            }
            !ring.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use tenure_hal::Instant;
    use tenure_kernel::LogLevel;

    fn filled(lines_max: usize, lines: usize, text: &str) -> Log {
        let mut log = Log::new(lines_max);
        for number in 0..lines {
            let machine = if number % 2 == 0 { "even" } else { "odd" };
            log.push(LogEntry {
                at: Instant::from_millis(number as u64),
                machine: machine.parse().unwrap(),
                level: LogLevel::Info,
                message: String::from(text),
            });
        }
        log
    }

    #[test]
    fn a_full_log_forgets_its_oldest_lines_and_says_how_many() {
        let page = filled(4, 10, "text").page(None, 0, 0);
        let numbers: Vec<u64> = page.lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [6, 7, 8, 9]);
        assert_eq!((page.next, page.lost, page.more), (10, 6, false));
    }

    #[test]
    fn pages_follow_one_another_without_gap_or_repeat() {
        let log = filled(500, 500, &"x".repeat(200));
        let (mut from, mut seen) = (0, Vec::new());
        loop {
            let page = log.page(None, from, 0);
            seen.extend(page.lines.iter().map(|line| line.number));
            from = page.next;
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, (0..500).collect::<Vec<u64>>());
    }

    #[test]
    fn one_machines_lines_alone() {
        let odd = "odd".parse().unwrap();
        let page = filled(10, 10, "text").page(Some(&odd), 3, 0);
        let numbers: Vec<u64> = page.lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [3, 5, 7, 9]);
    }

    #[test]
    fn a_chatterbox_drowns_nobodys_lines_but_its_own() {
        let mut log = Log::new(8);
        let mut say = |machine: &str| {
            log.push(LogEntry {
                at: Instant::BOOT,
                machine: machine.parse().unwrap(),
                level: LogLevel::Info,
                message: String::from("text"),
            });
        };
        say("quiet");
        say("quiet");
        (0..1000).for_each(|_| say("chatterbox"));
        let quiet = "quiet".parse().unwrap();
        assert_eq!(log.page(Some(&quiet), 0, 0).lines.len(), 2);
        let all = log.page(None, 0, 0);
        assert_eq!((all.lines.len(), all.lost, all.next), (8, 994, 1002));
    }
}
