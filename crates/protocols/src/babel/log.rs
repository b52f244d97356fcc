//! Which lines of a table were told, and when: each has the number at which it was told last.

use alloc::vec::Vec;

use super::table::Place;

/// A log of told lines. Invariant: versions grow, and each line that is told stands in it once; what
/// stood there before is empty, and thrown away when there is more of that than of lines.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Vec<(u32, Option<Line>)>,
    lines: usize,
}

/// A line of the table, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The way to this node itself.
    Own,
    /// The way to the destination at that place.
    To(Place),
}

/// So many entries may be empty beside as many as there are lines.
const EMPTY_AT_EASE: usize = 16;

impl Log {
    /// Notes that `line` is told at `version`, which is higher than any before.
    pub(super) fn push(&mut self, version: u32, line: Line) {
        if self.entries.len() >= 2 * self.lines + EMPTY_AT_EASE {
            self.entries.retain(|(_, line)| line.is_some());
        }
        self.entries.push((version, Some(line)));
        self.lines += 1;
    }

    /// Forgets the line that was told at `version`.
    pub(super) fn remove(&mut self, version: u32) {
        if let Ok(at) = self.entries.binary_search_by_key(&version, |(told, _)| *told)
            && self.entries[at].1.take().is_some()
        {
            self.lines -= 1;
        }
    }

    /// The lines after version `after` and up to version `last`, oldest first.
    pub(super) fn between(&self, after: u32, last: u32) -> impl Iterator<Item = (u32, Line)> + '_ {
        let from = self.entries.partition_point(|(version, _)| *version <= after);
        let entries = self.entries[from..].iter().take_while(move |(version, _)| *version <= last);
        entries.filter_map(|(version, line)| Some((*version, (*line)?)))
    }
}
