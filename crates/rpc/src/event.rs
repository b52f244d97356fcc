//! What goes into an endpoint and what comes out of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tenure_hal::{EntropyError, Instant};
use tenure_wire::datagram::Epoch;
use tenure_wire::frame::{CallNumber, Declined};
use tenure_wire::{MachineId, PublicKey};

use crate::ConfigError;

/// A call that a machine of this endpoint makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingCall {
    /// The function that is called.
    pub function: String,
    /// What it is called with.
    pub parameter: Option<Vec<u8>>,
    /// When the caller stops waiting.
    pub deadline: Instant,
    /// How often something is sent without any answer before the peer counts as unreachable; at
    /// least once.
    pub attempts: u8,
}

/// Names a call that was made, until its [`Event::CallDone`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct CallHandle(pub(crate) u64);

/// Names a call that came in, until it is replied to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct IncomingCallHandle {
    pub(crate) caller: u64,
    pub(crate) number: CallNumber,
}

/// Names a question for a device's identity, until its [`Event::Identified`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentifyHandle(pub(crate) u64);

/// What an endpoint has to say to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<A> {
    /// A call came in. It is handed out exactly once, however often it was sent, and is to be
    /// answered by `Endpoint::reply`.
    IncomingCall {
        /// By which to reply.
        handle: IncomingCallHandle,
        /// The machine that is called.
        to: MachineId,
        /// Who calls: the key is proven.
        peer: PublicKey,
        /// The function that is called.
        function: String,
        /// What it is called with.
        parameter: Option<Vec<u8>>,
        /// When the caller stops waiting.
        deadline: Instant,
        /// Where the call came from.
        from: A,
    },
    /// A call that was made is over. There is exactly one of these for each call that wasn't
    /// cancelled.
    CallDone {
        /// Which call.
        handle: CallHandle,
        /// What came of it.
        result: Result<Option<Vec<u8>>, Failure>,
    },
    /// A peer opened a session, or its datagrams come from another place than before.
    PeerSeen {
        /// The machine of this endpoint that it speaks to.
        machine: MachineId,
        /// Who it is: the key is proven.
        peer: PublicKey,
        /// Where it is. Somebody who relays its datagrams looks the same.
        from: A,
    },
    /// A question for a device's identity is over.
    Identified {
        /// Which question.
        handle: IdentifyHandle,
        /// What the device says of itself, or `None` if nobody answered. Anybody at that address,
        /// or on the way to it, can say this.
        identity: Option<Identity>,
    },
}

/// What a device says of itself to anybody. It proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The key of its own machine, if it has one.
    pub key: Option<PublicKey>,
    /// Its current epoch.
    pub epoch: Epoch,
}

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The function was started and failed; why is the called device's business alone.
    Execution,
    /// The machine has no such function.
    NoSuchFunction,
    /// Somebody at the device's address says, twice, that the machine isn't there, and nobody answers
    /// for it. That can't be authenticated: if the call was sent, it may have been executed.
    NoSuchMachine,
    /// The machine doesn't let this caller call that.
    Denied,
    /// The machine had no room for another call. It was not executed.
    Busy,
    /// The parameter is longer than the called side takes, or the result than the caller does. In
    /// the latter case the call was executed.
    TooLong,
    /// There was no answer of any kind. If the call was sent, it may have been executed, or yet be:
    /// whoever holds back its datagram can let it through for twice [`crate::Config::epoch_lifetime`].
    Unreachable,
    /// The deadline passed, on either side. The call may have been executed, or yet be.
    Deadline,
    /// The machine was stopped for a fault, and starts again too late for this call, which wasn't
    /// executed.
    Stopped {
        /// How long until it starts again, when the called device said so.
        restarts_in: Duration,
    },
    /// The machine failed too often and is stopped until its owner lifts that. The call wasn't
    /// executed.
    Banned,
    /// The call was stopped because it took more than the machine's budget has.
    Overspent,
    /// The called device sleeps beyond the deadline. If the call had begun, it goes on when that
    /// wakes.
    Asleep {
        /// How long until it wakes, when it said so.
        wakes_in: Duration,
    },
    /// The called device lost its memory, or had to drop the result, before the caller had it. The
    /// call may have been executed.
    OutcomeUnknown,
    /// The machine's lease is over.
    LeaseOver,
    /// The machine's owner has stopped it.
    Halted,
}

impl Failure {
    /// Whether the call may have been executed, in part at least, or may yet be, though it has no
    /// result. Whoever makes it again may have it done twice.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Execution
            | Self::NoSuchMachine
            | Self::TooLong
            | Self::Unreachable
            | Self::Deadline
            | Self::Overspent
            | Self::Asleep { .. }
            | Self::OutcomeUnknown
            | Self::LeaseOver
            | Self::Halted => true,
            Self::NoSuchFunction
            | Self::Denied
            | Self::Busy
            | Self::Stopped { .. }
            | Self::Banned => false,
        }
    }
}

impl From<Declined> for Failure {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::Execution => Self::Execution,
            Declined::NoSuchFunction => Self::NoSuchFunction,
            Declined::NoSuchMachine => Self::NoSuchMachine,
            Declined::Denied => Self::Denied,
            Declined::Busy => Self::Busy,
            Declined::TooLong => Self::TooLong,
            Declined::Forgotten => Self::OutcomeUnknown,
            Declined::Deadline => Self::Deadline,
            Declined::Stopped { restarts_in_ms } => {
                Self::Stopped { restarts_in: Duration::from_millis(restarts_in_ms.into()) }
            }
            Declined::Banned => Self::Banned,
            Declined::Overspent => Self::Overspent,
            Declined::LeaseOver => Self::LeaseOver,
            Declined::Halted => Self::Halted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped { restarts_in } => {
                let wait = restarts_in.as_secs_f32();
                return write!(
                    f,
                    "the machine was stopped for a fault; it starts again in {wait} s"
                );
            }
            Self::Asleep { wakes_in } => {
                return write!(f, "the device sleeps; it wakes in {} s", wakes_in.as_secs_f32());
            }
            Self::Banned => "the machine is banned for repeated faults",
            Self::Overspent => "the call took more than the machine's budget has",
            Self::Execution => "execution error",
            Self::NoSuchFunction => "the machine has no such function",
            Self::NoSuchMachine => {
                "somebody at the device's address says that the machine isn't there; if the call was \
                 sent, it may have run"
            }
            Self::Denied => "the machine doesn't allow that",
            Self::Busy => "the machine is busy",
            Self::TooLong => "the parameter or the result is too long",
            Self::Unreachable => {
                "the machine could not be reached; if the call was sent, it may have run, or may yet"
            }
            Self::Deadline => "the deadline passed",
            Self::OutcomeUnknown => "outcome unknown: the device lost track of the call",
            Self::LeaseOver => "the machine's lease is over",
            Self::Halted => "the machine's owner has stopped it",
        })
    }
}

impl core::error::Error for Failure {}

/// Why a call isn't even tried. The caller is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// This endpoint doesn't speak for that machine.
    UnknownMachine,
    /// The function's name is empty or too long.
    Function,
    /// The parameter is longer than the limit.
    TooLong,
    /// Too many calls are under way, or to too many peers.
    Busy,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownMachine => "the calling machine isn't on this device",
            Self::Function => "the function's name is empty or too long",
            Self::TooLong => "the parameter is too long",
            Self::Busy => "too many calls are under way",
        })
    }
}

impl core::error::Error for CallError {}

/// Why there is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// The caller's limits don't fit one another.
    Config(ConfigError),
    /// The hardware gave no randomness.
    Entropy(EntropyError),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Entropy(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for EndpointError {}

/// Why a machine wasn't added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMachines;

impl fmt::Display for TooManyMachines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the endpoint speaks for as many machines as it may")
    }
}

impl core::error::Error for TooManyMachines {}
