//! Tasks: calls to be run by a machine, in the order in which they came.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_wire::PublicKey;

use crate::calls::CallId;

/// The node's number for a call that it delivered from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One call, waiting for its turn or being run.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Who made the call; `None` is the device itself.
    pub(crate) caller: Option<PublicKey>,
    /// Which function is called.
    pub(crate) function: String,
    /// The parameter; `None` is null.
    pub(crate) parameter: Option<Vec<u8>>,
    /// Who waits for the result.
    pub(crate) reply_to: ReplyTo,
}

/// Who waits for a task's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyTo {
    /// Nobody: a start, or a callback.
    Nobody,
    /// A machine of this device.
    Call(CallId),
    /// Somebody outside; the node knows who.
    Outside(Ticket),
}
