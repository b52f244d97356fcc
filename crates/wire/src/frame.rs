//! The inside of what machines send one another: messages that only the two of them can read.
//!
//! A [`Message`] is what the sender has done with ([`Finished`], 16 bytes) and one [`Frame`]. Calls and replies are byte
//! strings, [`CallBody`] and [`ReplyBody`], that travel in one or more fragments. Integers are
//! little-endian.
//!
//! | kind | frame | fields after the kind |
//! |---|---|---|
//! | 0 | [`Frame::Acknowledge`] | – |
//! | 1 | [`Frame::Call`] | number 8 · fragment |
//! | 2 | [`Frame::Query`] | number 8 |
//! | 3 | [`Frame::Running`] | number 8 |
//! | 4 | [`Frame::Missing`] | number 8 · fragments that are missing 32 |
//! | 5 | [`Frame::Reply`] | number 8 · microseconds that the reply was held 4 · fragment |
//! | 6 | [`Frame::Want`] | number 8 · fragments at a time 1 · fragments that are wanted 32 |
//! | 7 | [`Frame::Later`] | number 8 |
//! | 8 | [`Frame::Prove`] | number 8 · cookie 16 |
//! | 9 | [`Frame::Proof`] | number 8 · cookie 16 |
//! | 10 | [`Frame::Asleep`] | number 8 · milliseconds until it wakes 4 |
//! | 11 | [`Frame::Call`] that says until when | number 8 · milliseconds of the receiver's clock 4 · fragment |
//! | 12 | [`Frame::Late`] | number 8 · milliseconds of the sender's clock 4 |
//!
//! A fragment is: length of the whole 4 · length of a fragment 2 · index 1 · last of a burst 1 ·
//! bytes. All fragments but the last have the same length.

mod body;
mod finished;
mod fragment;

use alloc::vec::Vec;
use core::fmt;

pub use body::{CallBody, ReplyBody};
pub use finished::{CallNumber, Finished};
pub use fragment::{FRAGMENT_OVERHEAD, FRAGMENTS_MAX, Fragment, FragmentSet};

use crate::datagram::Cookie;

/// The facts that each end tells the other in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The number that the sender drew when it started; call numbers are unique within it.
    pub incarnation: u64,
    /// For how long, in milliseconds, the sender has forgotten no call of the receiver's that it
    /// executed.
    pub remembers_ms: u64,
}

impl Greeting {
    /// How long a greeting is.
    pub const BYTES: usize = 16;

    /// The greeting as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[8..].copy_from_slice(&self.remembers_ms.to_le_bytes());
        bytes
    }

    /// Reads a greeting; gives also what follows it.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are too few.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let (incarnation, rest) = bytes.split_first_chunk().ok_or(FrameError)?;
        let (remembers_ms, rest) = rest.split_first_chunk().ok_or(FrameError)?;
        let greeting = Self {
            incarnation: u64::from_le_bytes(*incarnation),
            remembers_ms: u64::from_le_bytes(*remembers_ms),
        };
        Ok((greeting, rest))
    }
}

/// The content of one datagram of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The calls of the sender's that it has done with: it won't ask for them again.
    pub finished: Finished,
    /// The subject.
    pub frame: Frame<'a>,
}

impl<'a> Message<'a> {
    /// Appends the message to `to`.
    pub fn emit(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.finished.to_bytes());
        self.frame.emit(to);
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (finished, rest) = bytes.split_first_chunk().ok_or(FrameError)?;
        let finished = Finished::parse(finished).ok_or(FrameError)?;
        Ok(Self { finished, frame: Frame::parse(rest).ok_or(FrameError)? })
    }
}

/// The subject of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Nothing but what is finished.
    Acknowledge,
    /// From the caller: a part of a call.
    Call {
        /// Which call.
        number: CallNumber,
        /// Until when it is wanted, in milliseconds of the receiver's clock of this session; `None` if that isn't known, as in
        /// an initiation.
        until_ms: Option<u32>,
        /// The part.
        fragment: Fragment<'a>,
    },
    /// From the caller: what has become of the call?
    Query {
        /// Which call.
        number: CallNumber,
    },
    /// To the caller: the call is here and has no result yet.
    Running {
        /// Which call.
        number: CallNumber,
    },
    /// To the caller: these parts of the call aren't here yet.
    Missing {
        /// Which call.
        number: CallNumber,
        /// The fragments that are missing; all, if nothing is known of the call.
        fragments: FragmentSet,
    },
    /// To the caller: a part of the reply.
    Reply {
        /// Which call.
        number: CallNumber,
        /// How long passed between the message that this answers and this, in microseconds.
        held_us: u32,
        /// The part.
        fragment: Fragment<'a>,
    },
    /// From the caller: these parts of the reply aren't here yet.
    Want {
        /// Which call.
        number: CallNumber,
        /// How many fragments to send before waiting for the next such message.
        burst: u8,
        /// The fragments that are wanted.
        fragments: FragmentSet,
    },
    /// To the caller: there is no room for the call now, and nothing is known of it.
    Later {
        /// Which call.
        number: CallNumber,
    },
    /// To the caller: the reply is long; show first, by returning the cookie, that you receive
    /// where you seem to be.
    Prove {
        /// Which call.
        number: CallNumber,
        /// The result.
        cookie: Cookie,
    },
    /// From the caller: the cookie, returned.
    Proof {
        /// Which call.
        number: CallNumber,
        /// The fragments received.
        cookie: Cookie,
    },
    /// To the caller: the call is here and has no result yet, and the device sleeps now. It goes on
    /// with the call when it wakes.
    Asleep {
        /// Which call.
        number: CallNumber,
        /// When it wakes, in milliseconds from now.
        wakes_in_ms: u32,
    },
    /// To the caller: the call came later than it was wanted, and has not begun.
    Late {
        /// Which call.
        number: CallNumber,
        /// The sender's clock of this session, in milliseconds.
        clock_ms: u32,
    },
}

impl<'a> Frame<'a> {
    fn emit(&self, to: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Acknowledge => return to.push(0),
            Self::Call { number, until_ms: None, .. } => (1, number),
            Self::Call { number, until_ms: Some(_), .. } => (11, number),
            Self::Query { number } => (2, number),
            Self::Running { number } => (3, number),
            Self::Missing { number, .. } => (4, number),
            Self::Reply { number, .. } => (5, number),
            Self::Want { number, .. } => (6, number),
            Self::Later { number } => (7, number),
            Self::Prove { number, .. } => (8, number),
            Self::Proof { number, .. } => (9, number),
            Self::Asleep { number, .. } => (10, number),
            Self::Late { number, .. } => (12, number),
        };
        to.push(kind);
        to.extend_from_slice(&number.0.to_le_bytes());
        match self {
            Self::Acknowledge | Self::Query { .. } | Self::Running { .. } | Self::Later { .. } => {}
            Self::Call { until_ms, fragment, .. } => {
                if let Some(until_ms) = until_ms {
                    to.extend_from_slice(&until_ms.to_le_bytes());
                }
                fragment.emit(to);
            }
            Self::Prove { cookie, .. } | Self::Proof { cookie, .. } => {
                to.extend_from_slice(&cookie.0);
            }
            Self::Missing { fragments, .. } => to.extend_from_slice(&fragments.to_bytes()),
            Self::Reply { held_us, fragment, .. } => {
                to.extend_from_slice(&held_us.to_le_bytes());
                fragment.emit(to);
            }
            Self::Want { burst, fragments, .. } => {
                to.push(*burst);
                to.extend_from_slice(&fragments.to_bytes());
            }
            Self::Asleep { wakes_in_ms: ms, .. } | Self::Late { clock_ms: ms, .. } => {
                to.extend_from_slice(&ms.to_le_bytes());
            }
        }
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if *kind == 0 {
            return rest.is_empty().then_some(Self::Acknowledge);
        }
        let (number, rest) = rest.split_first_chunk()?;
        let number = CallNumber(u64::from_le_bytes(*number));
        match kind {
            1 => Some(Self::Call { number, until_ms: None, fragment: Fragment::parse(rest)? }),
            2 => rest.is_empty().then_some(Self::Query { number }),
            3 => rest.is_empty().then_some(Self::Running { number }),
            4 => Some(Self::Missing { number, fragments: FragmentSet::parse(rest)? }),
            5 => {
                let (held_us, rest) = rest.split_first_chunk()?;
                let held_us = u32::from_le_bytes(*held_us);
                Some(Self::Reply { number, held_us, fragment: Fragment::parse(rest)? })
            }
            6 => {
                let (burst, rest) = rest.split_first()?;
                let fragments = FragmentSet::parse(rest)?;
                Some(Self::Want { number, burst: *burst, fragments })
            }
            7 => rest.is_empty().then_some(Self::Later { number }),
            8 => Some(Self::Prove { number, cookie: Cookie(rest.try_into().ok()?) }),
            9 => Some(Self::Proof { number, cookie: Cookie(rest.try_into().ok()?) }),
            10 => {
                let wakes_in_ms = u32::from_le_bytes(rest.try_into().ok()?);
                Some(Self::Asleep { number, wakes_in_ms })
            }
            11 => {
                let (until_ms, rest) = rest.split_first_chunk()?;
                let until_ms = Some(u32::from_le_bytes(*until_ms));
                Some(Self::Call { number, until_ms, fragment: Fragment::parse(rest)? })
            }
            12 => {
                let clock_ms = u32::from_le_bytes(rest.try_into().ok()?);
                Some(Self::Late { number, clock_ms })
            }
            _ => None,
        }
    }
}

/// Bytes aren't what they should be; the peer is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError;

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer's message is malformed")
    }
}

impl core::error::Error for FrameError {}

#[cfg(test)]
mod tests;
