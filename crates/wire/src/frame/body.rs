//! What a call says and what it comes to, once their fragments are together.

use alloc::vec::Vec;

use super::FrameError;
use crate::limits::FUNCTION_BYTES_MAX;

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
    /// The machine's owner stopped it. The call was not executed, or stopped in the middle.
    Halted,
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
            Self::Halted => 13,
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = [self.code()].to_vec();
        if let Self::Stopped { restarts_in_ms } = self {
            bytes.extend(restarts_in_ms.to_le_bytes());
        }
        bytes
    }

    pub(super) fn parse(code: u8, rest: &[u8]) -> Result<Self, FrameError> {
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
            13 => Self::Halted,
            _ => return Err(FrameError),
        })
    }
}
