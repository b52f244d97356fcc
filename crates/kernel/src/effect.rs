//! The kernel's requests to the node around it.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_wire::{LogLevel, MachineId, Name, NoResult, Target, VerifyingKey};

use crate::calls::CallId;
use crate::task::Ticket;
#[cfg(feature = "reach")]
use crate::visit::OutgoingVisit;

/// Something that only the node can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Carry a call to a machine that isn't on this device; [`Kernel::complete`](crate::Kernel::complete) takes the answer.
    Call(OutgoingCall),
    /// Find the public key that `target` stands for; the answer is the key's 32 bytes.
    Resolve {
        /// Under which number to give the answer.
        id: CallId,
        /// The machine that is meant.
        target: Target,
    },
    /// Ask a server outside; the answer is a [`Visited`](crate::Visited).
    #[cfg(feature = "reach")]
    Visit(OutgoingVisit),
    /// Read a secret for a machine that has a right to it; the answer is its value.
    Secret {
        /// Under which number to give the answer.
        id: CallId,
        /// Whose secret it is.
        tenant: VerifyingKey,
        /// Which.
        name: Name,
    },
    /// Find the public keys of the machines known on other devices; the answer is the keys one
    /// after the other, 32 bytes each.
    Peers {
        /// Under which number to give the answer.
        id: CallId,
    },
    /// Answer a call that came from outside.
    Reply {
        /// As it was delivered.
        ticket: Ticket,
        /// The result (`None` is null), or why there is none.
        result: Result<Option<Vec<u8>>, NoResult>,
        /// The machine's own words on a failure, if its caller may know them; else empty.
        words: Vec<u8>,
    },
    /// A machine, or the kernel about a machine, has something to say.
    Log(LogEntry),
}

/// A call on its way off the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingCall {
    /// Under which number to give the answer.
    pub id: CallId,
    /// The machine that calls.
    pub from: MachineId,
    /// The machine that it calls.
    pub target: Target,
    /// Which function.
    pub function: String,
    /// The parameter; `None` is null.
    pub parameter: Option<Vec<u8>>,
    /// When the answer is of no use any more.
    pub deadline: Instant,
    /// How often the target may be tried, at least once.
    pub attempts: u8,
}

/// One line of a machine's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When, on the device's clock.
    pub at: Instant,
    /// Whose line it is.
    pub machine: Name,
    /// How grave.
    pub level: LogLevel,
    /// The text, cut to its limit; what isn't UTF-8 is replaced.
    pub message: String,
}
