//! Messages that grow: a later version appends fields, and both versions go on reading each other's.
//!
//! A message is a struct in postcard's encoding, field after field. A reader ignores what follows the
//! fields that it knows. Fields that a message ends before are missing: a field with
//! `#[serde(default)]` then has its default, any other makes the message malformed. So a version that
//! appends a field marks it `#[serde(default)]`, and changes nothing else.
//!
//! A struct inside a message grows likewise if its field is marked `#[serde(with = "growing")]`,
//! [`growing::list`] or [`growing::option`]: it is preceded by its length in bytes there.

pub mod growing;
mod reading;

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// The bytes aren't the message that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message is malformed")
    }
}

impl core::error::Error for Malformed {}

/// Encodes a message. Values of this crate's types can always be encoded.
pub fn encode<T: Serialize + ?Sized>(message: &T) -> Vec<u8> {
    let bytes = postcard::to_allocvec(message);
    debug_assert!(bytes.is_ok(), "a value that can be built can be sent");
    bytes.unwrap_or_default()
}

/// Reads a message, and ignores what follows the fields that `T` has.
///
/// # Errors
/// [`Malformed`] if a field can't be read, or one without a default is missing.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    T::deserialize(reading::Message { bytes }).map_err(|_| Malformed)
}

/// A list as a message of its own; each item grows by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<T>(
    /// The items.
    #[serde(
        with = "growing::list",
        bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>")
    )]
    pub Vec<T>,
);

#[cfg(test)]
mod tests;
