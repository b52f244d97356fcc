//! Timers that wait.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::ProtocolNumber;
use crate::room::has_place;

/// The longest encoding of a timer's value, in bytes.
pub const TIMER_BYTES_MAX: usize = 16;

/// A timer as it waits: whose, which, with what value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The protocol that set it.
    pub protocol: ProtocolNumber,
    /// Which of the protocol's timers.
    pub kind: u8,
    length: u8,
    value: [u8; TIMER_BYTES_MAX],
}

impl Pending {
    /// The timer `kind` of `protocol` with the encoded `value`; `None` if that is too long.
    pub fn new(protocol: ProtocolNumber, kind: u8, value: &[u8]) -> Option<Self> {
        let mut padded = [0; TIMER_BYTES_MAX];
        padded.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { protocol, kind, length: value.len() as u8, value: padded })
    }

    /// Its value, encoded.
    pub fn value(&self) -> &[u8] {
        &self.value[..usize::from(self.length)]
    }
}

/// Where timers wait: one of the framework's parts that can be replaced.
pub trait Timers: Send {
    /// No timers yet, and at most `timers_max`.
    fn new(timers_max: usize) -> Self;

    /// Sets a timer to go off at `at` and, if there is a `period`, again each time it is over. An
    /// equal timer that is pending is replaced. `false` if there is no room.
    fn set(&mut self, timer: Pending, at: Instant, period: Option<Duration>) -> bool;

    /// Forgets a timer.
    fn cancel(&mut self, timer: &Pending);

    /// Forgets every timer of a protocol.
    fn forget(&mut self, protocol: ProtocolNumber);

    /// Takes the timer that is due by `now` and was due first.
    fn due(&mut self, now: Instant) -> Option<Pending>;

    /// When the next timer is due.
    fn next_at(&self) -> Option<Instant>;
}

/// Timers in a plain list: the fastest there is for the few dozen that a node has.
#[derive(Debug)]
pub struct TimerList {
    timers_max: usize,
    /// Counts timers up, so that of those due at the same instant the one set first goes first.
    set: u64,
    entries: Vec<Entry>,
    /// When the next one is due, and where it stands: it is asked for at every turn, and most turns
    /// are none of a timer.
    first: Option<(Instant, usize)>,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    order: u64,
    period: Option<Duration>,
    timer: Pending,
}

impl TimerList {
    fn find_first(&mut self) {
        let entries = self.entries.iter().enumerate();
        let first = entries.min_by_key(|(_, entry)| (entry.at, entry.order));
        self.first = first.map(|(at, entry)| (entry.at, at));
    }
}

impl Timers for TimerList {
    fn new(timers_max: usize) -> Self {
        Self { timers_max, set: 0, entries: Vec::new(), first: None }
    }

    fn set(&mut self, timer: Pending, at: Instant, period: Option<Duration>) -> bool {
        self.set += 1;
        let entry = Entry { at, order: self.set, period, timer };
        match self.entries.iter().position(|entry| entry.timer == timer) {
            Some(known) => self.entries[known] = entry,
            None if self.entries.len() >= self.timers_max => return false,
            None if !has_place(&mut self.entries, 0) => return false,
            None => self.entries.push(entry),
        }
        self.find_first();
        true
    }

    fn cancel(&mut self, timer: &Pending) {
        if let Some(position) = self.entries.iter().position(|entry| entry.timer == *timer) {
            self.entries.swap_remove(position);
            self.find_first();
        }
    }

    fn forget(&mut self, protocol: ProtocolNumber) {
        self.entries.retain(|entry| entry.timer.protocol != protocol);
        self.find_first();
    }

    fn due(&mut self, now: Instant) -> Option<Pending> {
        let (_, first) = self.first.filter(|(at, _)| *at <= now)?;
        let entry = &mut self.entries[first];
        let timer = entry.timer;
        match entry.period {
            Some(period) => {
                // A node that slept through several periods is reminded once.
                let next = entry.at + period;
                entry.at = if next > now { next } else { now + period };
                self.set += 1;
                entry.order = self.set;
            }
            None => {
                self.entries.swap_remove(first);
            }
        }
        self.find_first();
        Some(timer)
    }

    fn next_at(&self) -> Option<Instant> {
        self.first.map(|(at, _)| at)
    }
}
