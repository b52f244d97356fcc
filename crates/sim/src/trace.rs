//! The trace of a run: a hash of all events, the last events in words, all of them if wanted.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::Write as _;

/// How many events are kept in words.
const TAIL: usize = 60;
/// FNV-1a, 64 bits.
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

/// The events of one run.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    tail: VecDeque<String>,
    printed: bool,
    line: String,
}

impl Trace {
    /// An empty trace, whose events are also printed if `printed`.
    pub(crate) fn new(printed: bool) -> Self {
        Self { hash: FNV_OFFSET, events: 0, tail: VecDeque::new(), printed, line: String::new() }
    }

    /// Adds an event that happened `at_us` microseconds after the start.
    pub(crate) fn note(&mut self, at_us: u64, event: fmt::Arguments<'_>) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        // Writing to a String doesn't fail.
        let _ = write!(line, "{:>11.6} {event}", at_us as f64 / 1e6);
        self.mix(line.as_bytes());
        self.events += 1;
        if self.printed {
            // A reader that closes the pipe has read enough; the run goes on to its verdict.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        if self.tail.len() >= TAIL {
            self.line = self.tail.pop_front().unwrap_or_default();
        }
        self.tail.push_back(line);
    }

    /// Lets bytes into the hash that no event shows.
    pub(crate) fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    /// The hash of everything so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The last events in words, oldest first.
    pub(crate) fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }
}
