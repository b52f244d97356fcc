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
//!
//! A fragment is: length of the whole 4 · length of a fragment 2 · index 1 · last of a burst 1 ·
//! bytes. All fragments but the last have the same length.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::datagram::Cookie;
use crate::limits::FUNCTION_BYTES_MAX;

/// The most fragments that a call or a reply is split into.
pub const FRAGMENTS_MAX: usize = 256;
/// How many bytes of a message with a fragment aren't the fragment's own, at most.
pub const FRAGMENT_OVERHEAD: usize = Finished::BYTES + 1 + 8 + 4 + FRAGMENT_HEADER_BYTES;

const FRAGMENT_HEADER_BYTES: usize = 4 + 2 + 1 + 1;

/// The number of a call: unique among the calls of one incarnation, and growing by one from call to
/// call of the same pair of machines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CallNumber(pub u64);

/// The calls that their caller has done with: all below a floor, and some of the [`Self::WINDOW`]
/// that follow it. They may be forgotten, and are never executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    floor: CallNumber,
    /// Bit `i`: the call `floor` + 1 + `i`.
    beyond: u64,
}

impl Finished {
    /// By how much the number of a call may exceed that of the oldest unfinished one.
    pub const WINDOW: u64 = 64;
    /// How long it is on the wire.
    pub const BYTES: usize = 16;

    /// All calls below `floor`, and no other.
    pub const fn below(floor: CallNumber) -> Self {
        Self { floor, beyond: 0 }
    }

    /// The lowest number that isn't finished.
    pub const fn floor(&self) -> CallNumber {
        self.floor
    }

    /// Whether the caller has done with that call.
    pub const fn contains(&self, number: CallNumber) -> bool {
        match number.0.checked_sub(self.floor.0) {
            None => true,
            Some(ahead) => 1 <= ahead && ahead <= 64 && self.beyond >> (ahead - 1) & 1 == 1,
        }
    }

    /// Adds a call; one beyond the window is ignored.
    pub fn insert(&mut self, number: CallNumber) {
        match number.0.checked_sub(self.floor.0) {
            None => {}
            Some(0) => self.raise(CallNumber(self.floor.0.saturating_add(1))),
            Some(ahead @ 1..=64) => self.beyond |= 1 << (ahead - 1),
            Some(_) => {}
        }
    }

    /// Adds all calls that are in `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut other = *other;
        // Raising one moves on over what is finished in it, and may pass the other in its turn.
        while self.floor != other.floor {
            let floor = self.floor.max(other.floor);
            self.raise(floor);
            other.raise(floor);
        }
        self.beyond |= other.beyond;
    }

    /// Adds all calls below `floor`, then moves on over those that were finished before.
    fn raise(&mut self, floor: CallNumber) {
        let Some(step) = floor.0.checked_sub(self.floor.0).filter(|step| *step > 0) else { return };
        let at_floor = 1..=Self::WINDOW;
        let floor_finished = at_floor.contains(&step) && self.beyond >> (step - 1) & 1 == 1;
        self.beyond =
            u32::try_from(step).ok().and_then(|step| self.beyond.checked_shr(step)).unwrap_or(0);
        self.floor = floor;
        if floor_finished {
            self.raise(CallNumber(floor.0.saturating_add(1)));
        }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.floor.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.beyond.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (floor, rest) = bytes.split_first_chunk()?;
        let floor = CallNumber(u64::from_le_bytes(*floor));
        Some(Self { floor, beyond: u64::from_le_bytes(*rest.first_chunk()?) })
    }
}

/// What each end tells the other in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// What the sender drew when it started; call numbers are unique within it.
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

/// What one datagram of a session says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The calls of the sender's that it has done with: it won't ask for them again.
    pub finished: Finished,
    /// What it is about.
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

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Nothing but what is finished.
    Acknowledge,
    /// From the caller: a part of a call.
    Call {
        /// Which call.
        number: CallNumber,
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
        /// What to return.
        cookie: Cookie,
    },
    /// From the caller: the cookie, returned.
    Proof {
        /// Which call.
        number: CallNumber,
        /// What came.
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
}

impl<'a> Frame<'a> {
    fn emit(&self, to: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Acknowledge => return to.push(0),
            Self::Call { number, .. } => (1, number),
            Self::Query { number } => (2, number),
            Self::Running { number } => (3, number),
            Self::Missing { number, .. } => (4, number),
            Self::Reply { number, .. } => (5, number),
            Self::Want { number, .. } => (6, number),
            Self::Later { number } => (7, number),
            Self::Prove { number, .. } => (8, number),
            Self::Proof { number, .. } => (9, number),
            Self::Asleep { number, .. } => (10, number),
        };
        to.push(kind);
        to.extend_from_slice(&number.0.to_le_bytes());
        match self {
            Self::Acknowledge | Self::Query { .. } | Self::Running { .. } | Self::Later { .. } => {}
            Self::Call { fragment, .. } => fragment.emit(to),
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
            Self::Asleep { wakes_in_ms, .. } => to.extend_from_slice(&wakes_in_ms.to_le_bytes()),
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
            1 => Some(Self::Call { number, fragment: Fragment::parse(rest)? }),
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
            _ => None,
        }
    }
}

/// A part of a longer byte string. One that exists is consistent: its index and the length of its
/// bytes fit the lengths it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    length: u32,
    fragment_bytes: u16,
    index: u8,
    last_of_burst: bool,
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The part number `index` of `whole`, when parts are `fragment_bytes` long; `None` if there
    /// is no such part, or if `whole` would have too many.
    pub fn of(
        whole: &'a [u8],
        fragment_bytes: u16,
        index: usize,
        last_of_burst: bool,
    ) -> Option<Self> {
        let length = u32::try_from(whole.len()).ok()?;
        if index >= fragment_count(length, fragment_bytes)? {
            return None;
        }
        let start = index * usize::from(fragment_bytes);
        let end = whole.len().min(start + usize::from(fragment_bytes));
        let index = u8::try_from(index).ok()?;
        let bytes = whole.get(start..end)?;
        Some(Self { length, fragment_bytes, index, last_of_burst, bytes })
    }

    /// The length of the whole, in bytes; never zero.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The length of all parts but the last, in bytes; never zero.
    pub fn fragment_bytes(&self) -> u16 {
        self.fragment_bytes
    }

    /// Which part this is, from 0.
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.length().div_ceil(usize::from(self.fragment_bytes))
    }

    /// Where in the whole this part begins.
    pub fn offset(&self) -> usize {
        self.index() * usize::from(self.fragment_bytes)
    }

    /// Whether the sender waits now to be told what is missing.
    pub fn last_of_burst(&self) -> bool {
        self.last_of_burst
    }

    /// The part itself.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn emit(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.length.to_le_bytes());
        to.extend_from_slice(&self.fragment_bytes.to_le_bytes());
        to.push(self.index);
        to.push(self.last_of_burst.into());
        to.extend_from_slice(self.bytes);
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (fragment_bytes, rest) = rest.split_first_chunk()?;
        let ([index, last_of_burst], bytes) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        let fragment_bytes = u16::from_le_bytes(*fragment_bytes);
        let last_of_burst = match last_of_burst {
            0 => false,
            1 => true,
            _ => return None,
        };
        if usize::from(*index) >= fragment_count(length, fragment_bytes)? {
            return None;
        }
        let fragment = Self { length, fragment_bytes, index: *index, last_of_burst, bytes };
        let expected =
            usize::from(fragment_bytes).min(fragment.length().checked_sub(fragment.offset())?);
        (bytes.len() == expected).then_some(fragment)
    }
}

/// How many fragments `length` bytes take; `None` if none or too many.
fn fragment_count(length: u32, fragment_bytes: u16) -> Option<usize> {
    if fragment_bytes == 0 {
        return None;
    }
    let count = (length as usize).div_ceil(usize::from(fragment_bytes));
    (1..=FRAGMENTS_MAX).contains(&count).then_some(count)
}

/// A set of fragments of one byte string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentSet([u64; FRAGMENTS_MAX / 64]);

impl FragmentSet {
    /// No fragment.
    pub const EMPTY: Self = Self([0; FRAGMENTS_MAX / 64]);
    /// Every fragment that there can be.
    pub const ALL: Self = Self([u64::MAX; FRAGMENTS_MAX / 64]);

    /// The fragments 0 to `count` - 1.
    pub fn first(count: usize) -> Self {
        let mut set = Self::EMPTY;
        (0..count).for_each(|index| set.insert(index));
        set
    }

    /// Adds a fragment; one that can't exist is ignored.
    pub fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Takes a fragment out.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// Whether a fragment is in the set.
    pub fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// How many fragments are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no fragment is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The fragments that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    /// The fragments in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..FRAGMENTS_MAX).filter(|index| self.contains(*index))
    }

    fn to_bytes(self) -> [u8; FRAGMENTS_MAX / 8] {
        let mut bytes = [0; FRAGMENTS_MAX / 8];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; FRAGMENTS_MAX / 8] = bytes.try_into().ok()?;
        let mut set = Self::EMPTY;
        for (word, place) in set.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(*place.first_chunk()?);
        }
        Some(set)
    }
}

/// What is called, with what: milliseconds until the deadline 4 · length of the function's name 1 ·
/// the name · 0 for a null parameter, 1 for one of bytes · the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallBody<'a> {
    /// How much time there was for the call when it was made, in milliseconds.
    pub remaining_ms: u32,
    /// The function's name.
    pub function: &'a str,
    /// The parameter, if it isn't null.
    pub parameter: Option<&'a [u8]>,
}

impl<'a> CallBody<'a> {
    /// How many bytes a body has beyond those of the function's name and the parameter.
    pub const OVERHEAD: usize = 4 + 1 + 1;

    /// The body as bytes.
    ///
    /// # Errors
    /// [`FrameError`] if the function's name is empty or longer than it may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameError> {
        if !(1..=FUNCTION_BYTES_MAX).contains(&self.function.len()) {
            return Err(FrameError);
        }
        let length = Self::OVERHEAD + self.function.len() + self.parameter.map_or(0, <[u8]>::len);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self.remaining_ms.to_le_bytes());
        bytes.push(self.function.len() as u8);
        bytes.extend_from_slice(self.function.as_bytes());
        emit_optional(self.parameter, &mut bytes);
        Ok(bytes)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (remaining_ms, rest) = bytes.split_first_chunk().ok_or(FrameError)?;
        let (length, rest) = rest.split_first().ok_or(FrameError)?;
        let (function, rest) = rest.split_at_checked((*length).into()).ok_or(FrameError)?;
        if !(1..=FUNCTION_BYTES_MAX).contains(&function.len()) {
            return Err(FrameError);
        }
        Ok(Self {
            remaining_ms: u32::from_le_bytes(*remaining_ms),
            function: core::str::from_utf8(function).map_err(|_| FrameError)?,
            parameter: parse_optional(rest)?,
        })
    }
}

const _: () = assert!(FUNCTION_BYTES_MAX <= u8::MAX as usize);

/// What came of a call: 0 and a result, or a reason from 1 on. A result is 0 if it is null, or 1
/// and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyBody<'a>(pub Result<Option<&'a [u8]>, Declined>);

impl<'a> ReplyBody<'a> {
    /// How many bytes a body has beyond those of the result.
    pub const OVERHEAD: usize = 2;

    /// The body as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.0 {
            Err(declined) => declined.to_bytes(),
            Ok(result) => {
                let mut bytes = Vec::with_capacity(Self::OVERHEAD + result.map_or(0, <[u8]>::len));
                bytes.push(0);
                emit_optional(result, &mut bytes);
                bytes
            }
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (code, rest) = bytes.split_first().ok_or(FrameError)?;
        if *code == 0 {
            return parse_optional(rest).map(|result| Self(Ok(result)));
        }
        Declined::parse(*code, rest).map(|declined| Self(Err(declined)))
    }
}

fn emit_optional(value: Option<&[u8]>, to: &mut Vec<u8>) {
    to.push(value.is_some().into());
    to.extend_from_slice(value.unwrap_or_default());
}

fn parse_optional(bytes: &[u8]) -> Result<Option<&[u8]>, FrameError> {
    match bytes.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, value)) => Ok(Some(value)),
        _ => Err(FrameError),
    }
}

/// Why the called side gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// The function was started and failed; why is the called device's business alone.
    Execution,
    /// The machine has no such function.
    NoSuchFunction,
    /// The machine is gone.
    NoSuchMachine,
    /// The caller may not call that.
    Denied,
    /// The machine has no room for another call now. It was not executed.
    Busy,
    /// The parameter, or the result, is longer than the called side takes.
    TooLong,
    /// The call was executed, but its result had to be dropped before the caller had it.
    Forgotten,
    /// The time that the caller gave passed before there was a result. If it was begun, it may yet go
    /// on.
    Deadline,
    /// The machine was stopped for a fault of its own, and starts again too late for this call. It was
    /// not executed.
    Stopped {
        /// When it starts again, in milliseconds from now.
        restarts_in_ms: u32,
    },
    /// The machine was stopped for good, until its owner lifts that. The call was not executed.
    Banned,
    /// The call was begun, and stopped because it took more than the machine's budget has.
    Overspent,
    /// The machine's lease is over. It was not executed, or stopped in the middle.
    LeaseOver,
}

impl Declined {
    fn code(self) -> u8 {
        match self {
            Self::Execution => 1,
            Self::NoSuchFunction => 2,
            Self::NoSuchMachine => 3,
            Self::Denied => 4,
            Self::Busy => 5,
            Self::TooLong => 6,
            Self::Forgotten => 7,
            Self::Deadline => 8,
            Self::Stopped { .. } => 9,
            Self::Banned => 10,
            Self::Overspent => 11,
            Self::LeaseOver => 12,
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = [self.code()].to_vec();
        if let Self::Stopped { restarts_in_ms } = self {
            bytes.extend(restarts_in_ms.to_le_bytes());
        }
        bytes
    }

    fn parse(code: u8, rest: &[u8]) -> Result<Self, FrameError> {
        if code == 9 {
            let restarts_in_ms = u32::from_le_bytes(rest.try_into().map_err(|_| FrameError)?);
            return Ok(Self::Stopped { restarts_in_ms });
        }
        if !rest.is_empty() {
            return Err(FrameError);
        }
        Ok(match code {
            1 => Self::Execution,
            2 => Self::NoSuchFunction,
            3 => Self::NoSuchMachine,
            4 => Self::Denied,
            5 => Self::Busy,
            6 => Self::TooLong,
            7 => Self::Forgotten,
            8 => Self::Deadline,
            10 => Self::Banned,
            11 => Self::Overspent,
            12 => Self::LeaseOver,
            _ => return Err(FrameError),
        })
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
