//! The script of a machine whose journal is played: its records, in order, and the first difference from them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use tenure_journal::{Event, Given, Record, Why};

/// The answers that a machine gets while its journal is played.
#[derive(Default)]
pub(crate) struct Script {
    records: VecDeque<Record>,
    /// How many records were taken.
    pub(crate) taken: u64,
    /// Host calls since the last record that follow from the machine's state unless the device failed them.
    calls: u32,
    /// The pieces of the host call under way that were taken.
    pieces: u32,
    /// The event that the machine has in hand.
    pub(crate) event: Option<Event>,
    /// Whether the task under way handles that event.
    pub(crate) handles: bool,
    /// The fuel of the next turn.
    pub(crate) turn_fuel: Option<u64>,
    /// Fuel that was paid since the machine's state was taken up, or lost when it was stopped, without what turns cost.
    pub(crate) total: u64,
    /// Whether the stop that comes next was taken from the records already.
    pub(crate) stops: bool,
    /// The first difference.
    pub(crate) difference: Option<Difference>,
}

impl Script {
    /// Adds records.
    pub(crate) fn add(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    /// The next record.
    pub(crate) fn next(&self) -> Option<&Record> {
        self.records.front()
    }

    /// Takes the next record.
    pub(crate) fn take(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.taken += 1;
        self.calls = 0;
        if matches!(record, Record::Task(_)) {
            self.pieces = 0;
        }
        Some(record)
    }

    /// Takes the answer to a host call, if it is next.
    pub(crate) fn take_given(&mut self) -> Option<Given> {
        if !matches!(self.next(), Some(Record::Given(_))) {
            return None;
        }
        match self.take() {
            Some(Record::Given(given)) => Some(given),
            _ => None,
        }
    }

    /// How many pieces of a host call were taken before its last, with one that is followed by more of them or is the last.
    pub(crate) fn pieces_with(&mut self, more: bool) -> u32 {
        self.pieces = if more { self.pieces.saturating_add(1) } else { 0 };
        self.pieces
    }

    /// Takes a time that the machine asks for; notes the difference if none is next.
    pub(crate) fn take_uptime(&mut self) -> Option<u64> {
        let Some(Record::Uptime(us)) = self.next() else {
            self.differs("the time");
            return None;
        };
        let us = *us;
        self.take();
        Some(us)
    }

    /// The same for the time of day.
    pub(crate) fn take_unix(&mut self) -> Option<i64> {
        let Some(Record::Unix(seconds)) = self.next() else {
            self.differs("the time of day");
            return None;
        };
        let seconds = *seconds;
        self.take();
        Some(seconds)
    }

    /// Takes as many random bytes as there is room for; notes the difference if others are next.
    pub(crate) fn take_random(&mut self, into: &mut [u8]) -> bool {
        match self.next() {
            Some(Record::Random(bytes)) if bytes.len() == into.len() => {
                into.copy_from_slice(bytes);
                self.take();
                true
            }
            _ => {
                self.differs("random bytes");
                false
            }
        }
    }

    /// Counts a host call that follows from the machine's state; returns the error by which the device failed it, if it
    /// did.
    pub(crate) fn refusal(&mut self) -> Option<i32> {
        self.calls = self.calls.saturating_add(1);
        let error = match self.next() {
            Some(Record::Refused { calls, error }) if *calls == self.calls => *error,
            _ => return None,
        };
        self.take();
        Some(error)
    }

    /// The machine is stopped.
    pub(crate) fn stopped(&mut self, fuel: u64, why: Why) {
        if core::mem::take(&mut self.stops) {
            return;
        }
        let next = self.next().map(Record::kind);
        let recorded = match self.next() {
            Some(Record::Stopped { fuel, why }) => Some((*fuel, *why)),
            _ => None,
        };
        // A task that has used too much fuel is stopped for that, whatever it does in the same turn.
        if recorded == Some((fuel, why)) || recorded == Some((fuel, Why::TaskFuel)) {
            self.take();
            return;
        }
        self.difference.get_or_insert(Difference::Stopped { why, fuel, next, recorded });
    }

    /// The task under way is done.
    pub(crate) fn task_done(&mut self) {
        if core::mem::take(&mut self.handles) {
            self.event = None;
        }
    }

    /// Notes that the machine asks for something that isn't next.
    pub(crate) fn differs(&mut self, asked: &'static str) {
        let next = self.next().map(Record::kind);
        self.difference.get_or_insert(Difference::Asked { asked, next });
    }
}

/// How a run differs from its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The machine asked for something else than the journal has next.
    Asked {
        /// The thing that it asked for.
        asked: &'static str,
        /// The kind of the journal's next record, if there is one.
        next: Option<&'static str>,
    },
    /// The machine is not where the next record can happen to it.
    Order {
        /// The kind of the record.
        next: &'static str,
        /// The machine's state in words.
        state: &'static str,
    },
    /// The task under way used other fuel up to the next record.
    TaskFuel {
        /// As the journal has it.
        recorded: u64,
        /// As it was found.
        found: u64,
    },
    /// The machine used other fuel since its state was taken up, turns included.
    Total {
        /// As the journal has it.
        recorded: u64,
        /// As it was found, with the price of the journal's turns.
        found: u64,
    },
    /// The machine was stopped otherwise.
    Stopped {
        /// Why it was stopped now.
        why: Why,
        /// After which fuel of its task.
        fuel: u64,
        /// The kind of the journal's next record.
        next: Option<&'static str>,
        /// Fuel and reason of the stop that the journal has next, if it has one.
        recorded: Option<(u64, Why)>,
    },
    /// A record can't be true: the machine's owner can't have set that value, or no host call returns that.
    Impossible,
    /// The machine ran for longer than it may.
    Endless,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { asked, next: Some(next) } => {
                write!(
                    f,
                    "the machine asks for {asked}, where the journal has a record of kind `{next}`"
                )
            }
            Self::Asked { asked, next: None } => {
                write!(f, "the machine asks for {asked}, where the journal ends")
            }
            Self::Order { next, state } => {
                write!(f, "the machine is {state}, where the journal has a record of kind `{next}`")
            }
            Self::TaskFuel { recorded, found } => {
                write!(f, "the task used {found} units of fuel, where the journal has {recorded}")
            }
            Self::Total { recorded, found } => {
                write!(
                    f,
                    "the machine used {found} units of fuel in all, where the journal has {recorded}"
                )
            }
            Self::Stopped { why, fuel, recorded: Some((recorded_fuel, recorded)), .. } => write!(
                f,
                "the machine stopped ({why:?}) after {fuel} units of fuel, where the journal has {recorded:?} after \
                 {recorded_fuel}"
            ),
            Self::Stopped { why, fuel, next, .. } => write!(
                f,
                "the machine stopped ({why:?}) after {fuel} units of fuel, where the journal has {}",
                next.unwrap_or("no more records")
            ),
            Self::Impossible => f.write_str("the journal has a record that no device writes"),
            Self::Endless => f.write_str("the machine runs on for longer than its journal says"),
        }
    }
}

/// The first difference, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The difference.
    pub difference: Difference,
    /// How many records were taken before.
    pub records: u64,
    /// The function in which the machine stands, as its index in the module, and the offset in its image code, where
    /// known.
    pub place: Option<(u32, u32)>,
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} records", self.records)?;
        if let Some((function, offset)) = self.place {
            write!(f, ", in function {function} at offset {offset:#x}")?;
        }
        write!(f, ": {}", self.difference)
    }
}

impl core::error::Error for Diverged {}
