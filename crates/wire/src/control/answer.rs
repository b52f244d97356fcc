//! An answer as bytes: 0 and the result, or 1 and a [`ControlError`].

use alloc::vec::Vec;

use serde::Serialize;
use serde::de::Deserialize;

use super::{Answer, ControlError};
use crate::message;

/// Encodes an answer.
pub fn encode_answer<T: Serialize>(answer: &Answer<T>) -> Vec<u8> {
    message::encode(answer)
}

/// Reads an answer.
///
/// # Errors
/// The device's error; [`ControlError::Unreadable`] if the bytes are no answer.
pub fn decode_answer<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Answer<T> {
    match answer.split_first() {
        Some((0, result)) => message::decode(result).map_err(|_| ControlError::Unreadable),
        Some((1, error)) => Err(message::decode(error).unwrap_or(ControlError::Unreadable)),
        _ => Err(ControlError::Unreadable),
    }
}
