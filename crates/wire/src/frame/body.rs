//! The bodies of a call and of its result, once their fragments are together.

use alloc::vec::Vec;
use core::time::Duration;

use super::FrameError;
use crate::NoResult;
use crate::limits::{FUNCTION_BYTES_MAX, WORDS_BYTES_MAX};

/// A call's function and parameter: milliseconds until the deadline 4 · length of the function's name 1 ·
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

/// A call's outcome: 0 and a result, or the code of a reason from 1 on. A result is 0 if it is null,
/// or 1 and its bytes. Reasons with a wait are followed by it, in milliseconds 4; those without one by the
/// machine's own words, if it says any. Later versions may append more to a wait, which is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyBody<'a>(pub Result<Option<&'a [u8]>, NoResult>);

impl<'a> ReplyBody<'a> {
    /// How many bytes a body has beyond those of the result.
    pub const OVERHEAD: usize = 2;

    /// The body as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.0 {
            Err(reason) => {
                let mut bytes = [reason.code()].to_vec();
                if let Some(wait) = reason.again_in() {
                    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
                    bytes.extend_from_slice(&wait_ms.to_le_bytes());
                }
                bytes
            }
            Ok(result) => {
                let mut bytes = Vec::with_capacity(Self::OVERHEAD + result.map_or(0, <[u8]>::len));
                bytes.push(0);
                emit_optional(result, &mut bytes);
                bytes
            }
        }
    }

    /// The body of a failure for `reason`, with the machine's own `words` on it if the reason has no wait.
    pub fn failure(reason: NoResult, words: &[u8]) -> Vec<u8> {
        let mut bytes = ReplyBody(Err(reason)).to_bytes();
        if reason.again_in().is_none() {
            bytes.extend_from_slice(words.get(..WORDS_BYTES_MAX).unwrap_or(words));
        }
        bytes
    }

    /// The machine's own words in the body of a failure; empty if there are none. They needn't be text.
    pub fn words(bytes: &[u8]) -> &[u8] {
        match bytes.split_first() {
            Some((code, words)) if *code > 0 => {
                let has_wait = NoResult::from_code(*code, Duration::ZERO).again_in().is_some();
                if has_wait { &[] } else { words.get(..WORDS_BYTES_MAX).unwrap_or(words) }
            }
            _ => &[],
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
        parse_reason(*code, rest).map(|reason| Self(Err(reason)))
    }
}

fn parse_reason(code: u8, rest: &[u8]) -> Result<NoResult, FrameError> {
    let reason = NoResult::from_code(code, Duration::ZERO);
    if reason.again_in().is_none() {
        return Ok(reason);
    }
    let wait_ms = u32::from_le_bytes(*rest.first_chunk().ok_or(FrameError)?);
    Ok(NoResult::from_code(code, Duration::from_millis(wait_ms.into())))
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
