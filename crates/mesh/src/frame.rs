//! Frames: what neighbours exchange.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 1 | version in the upper four bits; 1: for one neighbour, 2: sealed, 4: begins with introductions |
//! | 1 | 6 | the sender |
//! | 7 | 4 | the sender's epoch, which grows with each of its lives |
//! | 11 | 4 | how many frames it sent in this one before |
//! | 15 | 8 | the salt of that life, if it is sealed |
//! | | 6 | the neighbour that it is for, if it is for one |
//! | | | introductions, if it says so: their number in one byte, and so many times 23 bytes |
//! | | | records to the end: protocol (1 byte), length (1 byte below 128, else 2), a message |
//! | | 16 | the seal of all that stands before, if it is sealed |
//!
//! Numbers are little-endian. A frame is taken whole or not at all.

use alloc::vec::Vec;

use crate::NodeId;
use crate::event::{Destination, ProtocolNumber};
use crate::room::{append, make_room};
use crate::seal::{FrameNumber, Salt};

/// The version of this format.
pub const VERSION: u8 = 2;
/// The longest header.
pub const HEADER_BYTES_MAX: usize = 29;
/// The longest message that a record can carry.
pub const RECORD_BYTES_MAX: usize = 0x7FFF;

const TO_ONE: u8 = 1;
const SEALED: u8 = 2;
const INTRODUCES: u8 = 4;
const SHORT_HEADER_BYTES: usize = 15;
pub(crate) const INTRODUCTION_BYTES: usize = 23;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The frame's number, with its sender.
    pub number: FrameNumber,
    /// The receiver.
    pub to: Destination,
    /// Whether the rest is sealed.
    pub sealed: bool,
    /// Whether it begins with introductions.
    pub introduces: bool,
}

/// One message in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The protocol whose message it is.
    pub protocol: ProtocolNumber,
    /// The message: kind, head, body.
    pub message: &'a [u8],
}

/// A sender's word to a neighbour that doesn't know it yet, or that it doesn't know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// The neighbour.
    pub(crate) of: NodeId,
    /// Which of its lives is meant.
    pub(crate) epoch: u32,
    pub(crate) salt: Salt,
    /// The highest number of its frames in it that was heard.
    pub(crate) heard: u32,
    /// Whether the neighbour is asked for the same.
    pub(crate) asks: bool,
}

impl Header {
    /// Appends the header to `frame`.
    pub fn emit(&self, frame: &mut Vec<u8>) {
        let one = matches!(self.to, Destination::One(_));
        let flags = [(one, TO_ONE), (self.sealed, SEALED), (self.introduces, INTRODUCES)];
        let flags = flags.iter().fold(0, |all, (set, flag)| if *set { all | flag } else { all });
        frame.push(VERSION << 4 | flags);
        frame.extend_from_slice(&self.number.sender.to_bytes());
        frame.extend_from_slice(&self.number.epoch.to_le_bytes());
        frame.extend_from_slice(&self.number.sequence.to_le_bytes());
        if self.sealed {
            frame.extend_from_slice(&self.number.salt);
        }
        if let Destination::One(to) = self.to {
            frame.extend_from_slice(&to.to_bytes());
        }
    }

    /// The header of `frame`, and how long it is.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn parse(frame: &[u8]) -> Result<(Self, usize), FrameError> {
        let (header, rest) =
            frame.split_first_chunk::<SHORT_HEADER_BYTES>().ok_or(FrameError::Length)?;
        let [first, s0, s1, s2, s3, s4, s5, e0, e1, e2, e3, n0, n1, n2, n3] = *header;
        if first >> 4 != VERSION || first & 0x08 != 0 {
            return Err(FrameError::Version);
        }
        let (sealed, introduces) = (first & SEALED != 0, first & INTRODUCES != 0);
        let mut bytes = SHORT_HEADER_BYTES;
        let (salt, rest) = match rest.split_first_chunk() {
            _ if !sealed => (Salt::default(), rest),
            Some((salt, rest)) => (*salt, rest),
            None => return Err(FrameError::Length),
        };
        bytes += if sealed { salt.len() } else { 0 };
        let to = if first & TO_ONE == 0 {
            Destination::All
        } else {
            let (to, _) = rest.split_first_chunk().ok_or(FrameError::Length)?;
            bytes += to.len();
            Destination::One(NodeId::from_bytes(*to))
        };
        let number = FrameNumber {
            sender: NodeId::from_bytes([s0, s1, s2, s3, s4, s5]),
            epoch: u32::from_le_bytes([e0, e1, e2, e3]),
            salt,
            sequence: u32::from_le_bytes([n0, n1, n2, n3]),
        };
        Ok((Self { number, to, sealed, introduces }, bytes))
    }
}

/// How many bytes a record takes whose message has `message_bytes`.
pub(crate) const fn record_bytes(message_bytes: usize) -> usize {
    2 + (message_bytes >= 0x80) as usize + message_bytes
}

/// Appends a record to `frame`, whose message is no longer than [`RECORD_BYTES_MAX`]; `false` if the heap has no room, and
/// nothing was appended then.
#[must_use]
pub(crate) fn emit_record(protocol: ProtocolNumber, message: &[u8], frame: &mut Vec<u8>) -> bool {
    let length = message.len();
    let long = [protocol.0, 0x80 | (length >> 8) as u8, length as u8];
    let short = [protocol.0, length as u8];
    let head = if length < 0x80 { &short[..] } else { &long[..] };
    make_room(frame, head.len() + length) && append(frame, head) && append(frame, message)
}

/// The first record of `payload`, and what follows it.
///
/// # Errors
/// [`FrameError::Length`] if it ends too soon or is empty.
pub fn split_record(payload: &[u8]) -> Result<(Record<'_>, &[u8]), FrameError> {
    let (length, rest) = match payload {
        [_, length, rest @ ..] if *length < 0x80 => (usize::from(*length), rest),
        [_, high, low, rest @ ..] => (usize::from(high & 0x7F) << 8 | usize::from(*low), rest),
        _ => return Err(FrameError::Length),
    };
    match rest.split_at_checked(length) {
        Some((message, rest)) if !message.is_empty() => {
            Ok((Record { protocol: ProtocolNumber(payload[0]), message }, rest))
        }
        _ => Err(FrameError::Length),
    }
}

impl Introduction {
    pub(crate) fn emit(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.of.to_bytes());
        frame.extend_from_slice(&self.epoch.to_le_bytes());
        frame.extend_from_slice(&self.salt);
        frame.extend_from_slice(&self.heard.to_le_bytes());
        frame.push(u8::from(self.asks));
    }

    fn parse(bytes: &[u8; INTRODUCTION_BYTES]) -> Self {
        let [o0, o1, o2, o3, o4, o5, life @ .., h0, h1, h2, h3, asks] = *bytes;
        let [e0, e1, e2, e3, salt @ ..] = life;
        Self {
            of: NodeId::from_bytes([o0, o1, o2, o3, o4, o5]),
            epoch: u32::from_le_bytes([e0, e1, e2, e3]),
            salt,
            heard: u32::from_le_bytes([h0, h1, h2, h3]),
            asks: asks != 0,
        }
    }
}

/// The introductions at the start of `payload`, and what follows them.
pub(crate) fn split_introductions(
    payload: &[u8],
) -> Result<(impl Iterator<Item = Introduction>, &[u8]), FrameError> {
    let (count, rest) = payload.split_first().ok_or(FrameError::Length)?;
    let (introductions, rest) = rest
        .split_at_checked(usize::from(*count) * INTRODUCTION_BYTES)
        .ok_or(FrameError::Length)?;
    let (introductions, _) = introductions.as_chunks::<INTRODUCTION_BYTES>();
    Ok((introductions.iter().map(Introduction::parse), rest))
}

/// The records in what a frame carries beside its header, once that is open.
///
/// # Errors
/// [`FrameError`].
pub fn records_of<'a>(header: &Header, opened: &'a [u8]) -> Result<&'a [u8], FrameError> {
    if header.introduces { Ok(split_introductions(opened)?.1) } else { Ok(opened) }
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It ends too soon, or a length in it lies.
    Length,
    /// It is of another version.
    Version,
}

#[cfg(test)]
mod tests;
