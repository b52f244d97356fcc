//! The agenda: the one queue of events, by time, that every world here runs on.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events by time, and those of the same time in the order in which they were planned.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    to_come: BinaryHeap<Entry<E>>,
    planned: u64,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { to_come: BinaryHeap::new(), planned: 0 }
    }
}

impl<E> Agenda<E> {
    /// Lets `event` happen at `at_us`.
    pub(crate) fn plan(&mut self, at_us: u64, event: E) {
        self.planned += 1;
        self.to_come.push(Entry { at_us, order: self.planned, event });
    }

    /// When the next event is.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.to_come.peek().map(|entry| entry.at_us)
    }

    /// The next event and its time.
    pub(crate) fn next(&mut self) -> Option<(u64, E)> {
        self.to_come.pop().map(|entry| (entry.at_us, entry.event))
    }
}

#[derive(Debug)]
struct Entry<E> {
    at_us: u64,
    order: u64,
    event: E,
}

/// The heap gives the greatest first, which is the earliest here.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.order).cmp(&(self.at_us, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
