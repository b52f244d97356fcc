//! Tasks: calls to be run by a machine, in the order in which they came.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_wire::{MachineId, Name, PublicKey};

use crate::calls::CallId;

/// The function that runs when a machine starts.
pub(crate) const ENTRY: &str = "entry";

/// The node's number for a call that it delivered from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// A call from outside this device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingCall {
    /// The machine that is called.
    pub to: MachineId,
    /// The caller; `None` is the device itself.
    pub caller: Option<PublicKey>,
    /// The facts about the caller beside its key.
    pub standing: Standing,
    /// Which function is called.
    pub function: String,
    /// The parameter; `None` is null.
    pub parameter: Option<Vec<u8>>,
    /// When the caller stops waiting.
    pub deadline: Instant,
}

/// The relation of a caller from outside to this device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The device's owner, who may call whatever is exported.
    Owner,
    /// A machine that the owner placed, by its names.
    Named {
        /// Its name.
        machine: Name,
        /// Its device's name.
        device: Name,
    },
    /// A caller known by its key alone.
    Stranger,
}

/// One call, waiting for its turn or being run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The caller; `None` is the device itself.
    pub(crate) caller: Option<PublicKey>,
    /// Which function is called.
    pub(crate) function: String,
    /// The parameter; `None` is null.
    pub(crate) parameter: Option<Vec<u8>>,
    /// The one that waits for the result.
    pub(crate) reply_to: ReplyTo,
    /// When nobody waits any more, if somebody does.
    #[serde(with = "crate::moment::optional")]
    pub(crate) deadline: Option<Instant>,
    /// Whether it handles an event, or stands in the queue for those that wait for their handlers;
    /// function and parameter are the event's.
    pub(crate) is_event: bool,
    /// The call whose callback it is.
    pub(crate) callback_of: Option<CallId>,
    /// Whether whoever waits for the result is told the machine's own words on a failure.
    pub(crate) is_told: bool,
}

impl Task {
    /// A task that the kernel itself gives a machine: a start, or a callback.
    pub(crate) fn of_kernel(function: String, parameter: Option<Vec<u8>>) -> Self {
        Self {
            caller: None,
            function,
            parameter,
            reply_to: ReplyTo::Nobody,
            deadline: None,
            is_event: false,
            callback_of: None,
            is_told: false,
        }
    }

    /// The entries of the queue for events that wait for their handlers.
    pub(crate) fn of_events() -> Self {
        Self { is_event: true, ..Self::of_kernel(String::new(), None) }
    }

    /// Whether it is the same call, for nobody's sake, as `other`.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        let for_nobody = matches!(self.reply_to, ReplyTo::Nobody) && self.callback_of.is_none();
        for_nobody && !self.is_event && self.function == other.function
    }

    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// The one that waits for a task's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReplyTo {
    /// Nobody: a start, or a callback.
    Nobody,
    /// A machine of this device.
    Call(CallId),
    /// A caller outside the kernel; the node knows which.
    Outside(Ticket),
}
