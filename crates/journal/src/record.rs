//! The records: one for each thing that a machine can't compute, and marks to hold a replay against.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::{Digest, PublicKey};

/// One record of a journal.
///
/// Some happen at a point of the task under way that the machine doesn't choose. They say it as the fuel that the task had
/// used, what it still owed of it included, and without what its turns cost beside; 0 if no task was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A task begins.
    Task(Task),
    /// The host call that the machine waits in is answered.
    Woken(Woken),
    /// A host call is answered at once, with something that only the device knows.
    Given(Given),
    /// The time since boot, as the machine asked for it, in microseconds.
    Uptime(u64),
    /// The wall clock as the machine asked for it, in seconds since 1970 UTC, or -1.
    Unix(i64),
    /// The random bytes of one host call, or of one piece of it.
    Random(Vec<u8>),
    /// The device failed a host call that follows from the machine's state otherwise.
    Refused {
        /// How many such calls there were since the last record, this one included.
        calls: u32,
        /// The error, as the machine saw it: below zero.
        error: i32,
    },
    /// The machine's owner changed its tree.
    Amended {
        /// The fuel that the task under way had used.
        fuel: u64,
        /// Where.
        path: String,
        /// Whether it is a text, and its bytes; `None` if the path and all below it was deleted.
        value: Option<(bool, Vec<u8>)>,
    },
    /// The machine was billed for bytes that the device wrote to flash for it, outside of host calls.
    Charged {
        /// The fuel that the task under way had used.
        fuel: u64,
        /// How many.
        flash_bytes: u64,
    },
    /// The machine's running state was suspended, and taken up again before it ran on: what the stack held above the frame
    /// in use is gone.
    Suspended {
        /// The fuel that the task under way had used.
        fuel: u64,
    },
    /// The machine was stopped: memory, stack and globals are gone.
    Stopped {
        /// The fuel that the task under way had used.
        fuel: u64,
        /// The reason.
        why: Why,
    },
    /// A point at which a replay is held against what the device counted.
    Mark(Mark),
}

impl Record {
    /// Its kind in a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Task(_) => "task",
            Self::Woken(_) => "answer",
            Self::Given(_) => "result",
            Self::Uptime(_) => "uptime",
            Self::Unix(_) => "time of day",
            Self::Random(_) => "random bytes",
            Self::Refused { .. } => "refusal",
            Self::Amended { .. } => "amendment",
            Self::Charged { .. } => "charge",
            Self::Suspended { .. } => "suspension",
            Self::Stopped { .. } => "stop",
            Self::Mark(_) => "mark",
        }
    }
}

/// A task as it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// When, in milliseconds since boot, rounded down.
    pub at_ms: u64,
    /// The function.
    pub function: String,
    /// The caller; `None` is the device itself.
    pub caller: Option<PublicKey>,
    /// The parameter; `None` is null. That of an event is its payload, and isn't here.
    pub parameter: Option<Vec<u8>>,
    /// The number of the call whose callback it is.
    pub callback_of: Option<u32>,
    /// The event that it handles.
    pub event: Option<Event>,
}

/// An event as a machine gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its topic.
    pub topic: String,
    /// Its payload.
    pub payload: Vec<u8>,
    /// How many events its subscription dropped before it.
    pub dropped: u64,
}

/// The answer to a host call that waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// When the machine went on, in milliseconds since boot, rounded down.
    pub at_ms: u64,
    /// The status that the call returns, if it returns one.
    pub status: Option<i32>,
    /// The result of a call, or the bytes that are copied to the machine's memory.
    pub bytes: Option<Vec<u8>>,
    /// The event that it waited for.
    pub event: Option<Event>,
}

/// The answer to a host call that didn't wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The status that the call returns; 0 if there is more to come.
    pub value: i32,
    /// The event that it took.
    pub event: Option<Event>,
    /// Whether it is one piece of a call that isn't done.
    pub more: bool,
    /// Fuel that it took beyond the price of every such call.
    pub fuel: u64,
    /// Bytes that it wrote to flash.
    pub flash_bytes: u64,
}

/// A point at which a replay is held against what the device counted since the journal's last [`Start`](crate::Start).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The fuel that the task under way had used.
    pub fuel: u64,
    /// Turns that the machine had.
    pub turns: u64,
    /// Fuel that it used, that of its turns and what it still owes included.
    pub total: u64,
    /// Fuel of that which isn't billed: what it still owes, and what it owed when it was stopped.
    pub unpaid: u64,
    /// The digest of the machine's state, if the device took it.
    pub state: Option<Digest>,
    /// The number of the receipt whose period ends here.
    pub receipt: Option<u64>,
}

/// The reasons for which a machine is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It passed a pointer outside its memory to a host call.
    BadPointer,
    /// It called `abort`.
    Aborted,
    /// One task used more fuel than the budget has for it.
    TaskFuel,
    /// There was no memory for it.
    Memory,
    /// Its code in flash is damaged.
    Image,
    /// Its running state in flash is damaged.
    Suspended,
    /// Its place in memory was taken.
    Place,
    /// It has no such function.
    Function,
    /// The watchdog bit.
    Watchdog,
    /// The board's memory protection stopped it.
    Breach,
    /// Its owner or its lease ended what it did.
    Ended,
    /// It trapped: the vm's number of the kind.
    Trap(u8),
}

/// The number from which on reasons are traps.
const TRAPS: u8 = 16;
const REASONS: [Why; 11] = [
    Why::BadPointer,
    Why::Aborted,
    Why::TaskFuel,
    Why::Memory,
    Why::Image,
    Why::Suspended,
    Why::Place,
    Why::Function,
    Why::Watchdog,
    Why::Breach,
    Why::Ended,
];

impl Why {
    /// Its number in a journal.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Trap(kind) => TRAPS.saturating_add(kind),
            // It stands in the list.
            _ => REASONS.iter().position(|one| *one == self).unwrap_or_default() as u8,
        }
    }

    /// The reason of that number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        match number.checked_sub(TRAPS) {
            Some(kind) => Some(Self::Trap(kind)),
            None => REASONS.get(usize::from(number)).copied(),
        }
    }

    /// Whether it follows from the machine's state and code.
    pub const fn is_computed(self) -> bool {
        matches!(self, Self::BadPointer | Self::Aborted | Self::Function | Self::Trap(_))
    }
}
