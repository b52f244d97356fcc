//! Names of machines and devices, and how a caller says whom it means.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::limits::NAME_BYTES_MAX;
use crate::serialized_as_text::serialized_as_text;
use crate::{MachineId, PublicKey};

/// The name of a machine or a device: 1 to 32 of `a`–`z`, `0`–`9`, `-` and `_`, the first a letter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if !text.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(NameError::FirstCharacter);
        }
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        match text.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(NameError::Character { at }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

serialized_as_text!(Name);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The receiver of a call, as a caller writes it.
///
/// | text | meaning |
/// |---|---|
/// | (empty) | the machine that calls |
/// | `store` | the machine of that name on the same device |
/// | `store@attic` | the machine of that name on the device `attic` |
/// | `#k7w3m-…` (23 characters) | the machine with that id |
/// | `#k7w3m-…` (62 characters) | the machine with that public key |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// The machine that calls.
    Own,
    /// A machine on the same device.
    Local(Name),
    /// A machine on another device, or on this one by its full name.
    Remote {
        /// The machine's name.
        machine: Name,
        /// The device's name.
        device: Name,
    },
    /// The machine with this id, wherever it is.
    Id(MachineId),
    /// The machine with this key, wherever it is.
    Key(PublicKey),
}

impl FromStr for Target {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Ok(Self::Own);
        }
        if let Some(id) = text.strip_prefix('#') {
            return id
                .parse()
                .map(Self::Id)
                .or_else(|_| id.parse().map(Self::Key))
                .map_err(|_| NameError::Id);
        }
        match text.split_once('@') {
            Some((machine, device)) => {
                Ok(Self::Remote { machine: machine.parse()?, device: device.parse()? })
            }
            None => text.parse().map(Self::Local),
        }
    }
}

serialized_as_text!(Target);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Local(machine) => write!(f, "{machine}"),
            Self::Remote { machine, device } => write!(f, "{machine}@{device}"),
            Self::Id(id) => write!(f, "#{id}"),
            Self::Key(key) => write!(f, "#{key}"),
        }
    }
}

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It has no characters.
    Empty,
    /// It is longer than a name may be.
    TooLong,
    /// It doesn't begin with a lower-case letter.
    FirstCharacter,
    /// The byte `at` is none of those allowed.
    Character {
        /// Where, in bytes from the start.
        at: usize,
    },
    /// The text after `#` is neither an id nor a key.
    Id,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name can't be empty"),
            Self::TooLong => write!(f, "a name has at most {NAME_BYTES_MAX} characters"),
            Self::FirstCharacter => f.write_str("a name begins with a letter a-z"),
            Self::Character { at } => {
                write!(f, "character {} is none of a-z, 0-9, - and _", at + 1)
            }
            Self::Id => f.write_str("what follows # is neither an id nor a public key"),
        }
    }
}

impl core::error::Error for NameError {}

#[cfg(test)]
mod tests;
