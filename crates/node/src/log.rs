//! The last lines of every machine's log, numbered, in a ring of bounded size.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

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
    lines: VecDeque<LogLine>,
    next: u64,
}

impl Log {
    pub(crate) fn new(lines_max: usize) -> Self {
        Self { lines_max, lines: VecDeque::new(), next: 0 }
    }

    pub(crate) fn push(&mut self, entry: LogEntry) -> &LogLine {
        if self.lines.len() >= self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back(LogLine {
            number: self.next,
            at_ms: entry.at.as_millis(),
            machine: entry.machine,
            level: entry.level.as_str().to_string(),
            message: entry.message,
        });
        self.next += 1;
        &self.lines[self.lines.len() - 1]
    }

    /// As many lines from number `from` on as fit one answer, of one machine or of all.
    pub(crate) fn page(&self, machine: Option<&Name>, from: u64, dropped: u64) -> LogPage {
        let mut lines = Vec::new();
        let mut room = PARAMETER_BYTES_MAX - LINE_OVERHEAD;
        let mut next = from.max(self.first());
        for line in self.lines.iter().filter(|line| line.number >= from) {
            if machine.is_none_or(|machine| line.machine == *machine) {
                let bytes = line.message.len() + LINE_OVERHEAD;
                if bytes > room {
                    return LogPage { lines, next, lost: self.first() + dropped, more: true };
                }
                room -= bytes;
                lines.push(line.clone());
            }
            next = line.number + 1;
        }
        LogPage { lines, next, lost: self.first() + dropped, more: false }
    }

    /// The number of the oldest line that is still here.
    fn first(&self) -> u64 {
        self.next - self.lines.len() as u64
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
}
