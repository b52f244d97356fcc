//! How rights name topics and machines.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Peer;
use crate::{Name, PublicKey};

/// The longest topic, in bytes.
pub const TOPIC_BYTES_MAX: usize = 64;

/// Whether `text` is a topic: parts with a dot between each two, of visible characters, `*` not
/// among them.
pub fn is_topic(text: &str) -> bool {
    text.len() <= TOPIC_BYTES_MAX && text.split('.').all(|part| is_part(part) && part != "*")
}

fn is_part(part: &str) -> bool {
    let visible = |character: char| !character.is_control() && !character.is_whitespace();
    part == "*" || !part.is_empty() && part.chars().all(|one| visible(one) && one != '*')
}

/// Topics: `door.front`, or with `*` for any one part, `door.*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicPattern(String);

impl TopicPattern {
    /// Whether `topic` is one of them.
    pub fn matches(&self, topic: &str) -> bool {
        is_topic(topic) && self.matches_parts(topic)
    }

    /// Whether all that `other` matches are among them.
    pub fn covers(&self, other: &Self) -> bool {
        self.matches_parts(&other.0)
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches_parts(&self, topic: &str) -> bool {
        let (mut own, mut other) = (self.0.split('.'), topic.split('.'));
        loop {
            match (own.next(), other.next()) {
                (None, None) => return true,
                (Some(own), Some(other)) if own == "*" || own == other => {}
                _ => return false,
            }
        }
    }
}

impl FromStr for TopicPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > TOPIC_BYTES_MAX || !text.split('.').all(is_part) {
            return Err(PatternError::Topic);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Machines.
///
/// | text | machines |
/// |---|---|
/// | `*` | any at all |
/// | `store` | the one of that name on the same device |
/// | `store@attic` | the one of that name on the device `attic` |
/// | `store@*` | those of that name on any device of the owner's |
/// | `*@attic` | all on the device `attic` |
/// | `*@*` | all on any device of the owner's |
/// | `#k7w3m-…` (62 characters) | the one with that public key |
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PeerPattern {
    /// Any machine at all.
    Any,
    /// The one of that name on the same device.
    Here(Name),
    /// By name and device; `None` is any.
    Named {
        /// The machine's name.
        machine: Option<Name>,
        /// Its device's name.
        device: Option<Name>,
    },
    /// The one with that key, wherever it is.
    Key(PublicKey),
}

impl PeerPattern {
    /// Whether `peer` is one of them.
    pub fn matches(&self, peer: &Peer<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Here(name) => peer.is_here && peer.machine == Some(name),
            Self::Named { machine, device } => {
                let machine_fits =
                    peer.machine.is_some_and(|one| machine.as_ref().is_none_or(|two| one == two));
                let device_fits = match device {
                    None => peer.is_here || peer.device.is_some(),
                    Some(device) => peer.device == Some(device),
                };
                machine_fits && device_fits
            }
            Self::Key(key) => peer.key == Some(key),
        }
    }

    /// Whether all that `other` matches are surely among them.
    pub fn covers(&self, other: &Self) -> bool {
        let fits = |wide: &Option<Name>, narrow: &Option<Name>| wide.is_none() || wide == narrow;
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Named { machine, device: None }, Self::Here(name)) => {
                machine.as_ref().is_none_or(|machine| machine == name)
            }
            (
                Self::Named { machine, device },
                Self::Named { machine: other_machine, device: other_device },
            ) => fits(machine, other_machine) && fits(device, other_device),
            (one, other) => one == other,
        }
    }
}

impl FromStr for PeerPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(key) = text.strip_prefix('#') {
            return key.parse().map(Self::Key).map_err(|_| PatternError::Key);
        }
        let part = |text: &str| match text {
            "*" => Ok(None),
            name => name.parse().map(Some).map_err(|_| PatternError::Peer),
        };
        match text.split_once('@') {
            Some((machine, device)) => {
                Ok(Self::Named { machine: part(machine)?, device: part(device)? })
            }
            None => text.parse().map(Self::Here).map_err(|_| PatternError::Peer),
        }
    }
}

impl fmt::Display for PeerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name: &Option<Name>| name.as_ref().map_or("*", Name::as_str).to_owned();
        match self {
            Self::Any => f.write_str("*"),
            Self::Here(name) => write!(f, "{name}"),
            Self::Named { machine, device } => write!(f, "{}@{}", part(machine), part(device)),
            Self::Key(key) => write!(f, "#{key}"),
        }
    }
}

macro_rules! text_conversions {
    ($($type:ty)*) => {$(
        impl TryFrom<String> for $type {
            type Error = PatternError;

            fn try_from(text: String) -> Result<Self, PatternError> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(pattern: $type) -> Self {
                pattern.to_string()
            }
        }
    )*};
}
text_conversions!(TopicPattern PeerPattern);

/// Why a text names no topics and no machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It names no topics.
    Topic,
    /// It names no machines.
    Peer,
    /// What follows `#` is no public key.
    Key,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic => write!(
                f,
                "a topic is 1 to {TOPIC_BYTES_MAX} visible characters in parts with dots between \
                 them, such as door.front; a part that may be any is *"
            ),
            Self::Peer => f.write_str(
                "machines are named NAME (on the same device), NAME@DEVICE, with * for any of \
                 either, #KEY, or * for any machine at all",
            ),
            Self::Key => f.write_str("what follows # is no public key"),
        }
    }
}

impl core::error::Error for PatternError {}
