//! Inputs and outputs of an endpoint.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tenure_hal::{EntropyError, Instant};
use tenure_wire::datagram::Epoch;
use tenure_wire::frame::CallNumber;
use tenure_wire::{MachineId, NoResult, PublicKey};

use crate::ConfigError;

/// A call that a machine of this endpoint makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingCall {
    /// The function that is called.
    pub function: String,
    /// The parameter.
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

impl IncomingCallHandle {
    /// A number by which its caller, one incarnation of one peer, is told from all others while it is remembered.
    pub fn caller(&self) -> u64 {
        self.caller
    }
}

/// How full a table of an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// Its name: that of the things in it.
    pub table: &'static str,
    /// How many there are.
    pub used: usize,
    /// How many there may be.
    pub most: usize,
    /// How often one made room for another, or got none, since the start.
    pub times_full: u64,
}

/// Names a question for a device's identity, until its [`Event::Identified`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentifyHandle(pub(crate) u64);

/// An endpoint's news for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<A> {
    /// A call came in. It is handed out exactly once, however often it was sent, and is to be
    /// answered by `Endpoint::reply`.
    IncomingCall {
        /// By which to reply.
        handle: IncomingCallHandle,
        /// The machine that is called.
        to: MachineId,
        /// The caller: the key is proven.
        peer: PublicKey,
        /// The function that is called.
        function: String,
        /// The parameter.
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
        /// The outcome.
        result: Result<Option<Vec<u8>>, NoResult>,
        /// The called machine's own words on a failure, as they came; empty if it says none.
        words: Vec<u8>,
    },
    /// A peer opened a session, or its datagrams come from another place than before.
    PeerSeen {
        /// The machine of this endpoint that it speaks to.
        machine: MachineId,
        /// The peer: the key is proven.
        peer: PublicKey,
        /// Where it is. Somebody who relays its datagrams looks the same.
        from: A,
    },
    /// A question for a device's identity is over.
    Identified {
        /// Which question.
        handle: IdentifyHandle,
        /// The device's description of itself, or `None` if nobody answered. Anybody at that address,
        /// or on the way to it, can say this.
        identity: Option<Identity>,
    },
}

/// A device's description of itself, for anybody. It proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The key of its own machine, if it has one.
    pub key: Option<PublicKey>,
    /// Its current epoch.
    pub epoch: Epoch,
}

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

impl From<CallError> for NoResult {
    fn from(error: CallError) -> Self {
        match error {
            CallError::UnknownMachine => Self::Device,
            CallError::Function => Self::Invalid,
            CallError::TooLong => Self::TooLong,
            CallError::Busy => Self::Busy,
        }
    }
}

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
