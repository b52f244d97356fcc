//! Topics: what events are published under, and how a subscriber or a grant says which it means.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::limits::TOPIC_BYTES_MAX;
use crate::serialized_as_text::serialized_as_text;

/// A topic: 1 to 64 bytes, names of `a`–`z`, `0`–`9`, `-` and `_` with dots between them, such as
/// `device.temperature`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic(String);

impl Topic {
    /// The topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this topic is below `parent`: `a.b` and `a.b.c` are below `a`, and `a` isn't.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_prefix(parent.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        if text.len() > TOPIC_BYTES_MAX {
            return Err(TopicError::TooLong);
        }
        if text.split('.').any(str::is_empty) {
            return Err(TopicError::EmptyName);
        }
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        match text.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(TopicError::Character { at }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

/// Which topics are meant: one (`door.front`), all below one (`door.*`), or all (`*`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TopicPattern {
    /// That topic alone.
    One(Topic),
    /// Every topic below that one, and not it itself.
    Below(Topic),
    /// Every topic.
    All,
}

impl TopicPattern {
    /// Whether `topic` is meant.
    pub fn matches(&self, topic: &Topic) -> bool {
        match self {
            Self::One(one) => one == topic,
            Self::Below(parent) => topic.is_below(parent),
            Self::All => true,
        }
    }

    /// Whether everything that `other` means is meant.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (_, Self::One(topic)) => self.matches(topic),
            (Self::Below(parent), Self::Below(other)) => parent == other || other.is_below(parent),
            _ => false,
        }
    }

    /// The fewest of `patterns` that mean all that they mean together, so that each event comes once.
    pub fn fewest<'a>(patterns: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut fewest: Vec<Self> = Vec::new();
        for pattern in patterns {
            if !fewest.iter().any(|known| known.covers(pattern)) {
                fewest.retain(|known| !pattern.covers(known));
                fewest.push(pattern.clone());
            }
        }
        fewest
    }
}

impl FromStr for TopicPattern {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        match text.strip_suffix('*') {
            Some("") => Ok(Self::All),
            Some(parent) => match parent.strip_suffix('.') {
                Some(parent) => parent.parse().map(Self::Below),
                None => Err(TopicError::Character { at: parent.len() }),
            },
            None => text.parse().map(Self::One),
        }
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(topic) => write!(f, "{topic}"),
            Self::Below(parent) => write!(f, "{parent}.*"),
            Self::All => f.write_str("*"),
        }
    }
}

impl fmt::Debug for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

serialized_as_text!(Topic);

serialized_as_text!(TopicPattern);

/// Why a text is no topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicError {
    /// It is longer than a topic may be.
    TooLong,
    /// Two dots stand side by side, or a dot first or last, or nothing is there at all.
    EmptyName,
    /// The byte `at` is none of those allowed.
    Character {
        /// Where, in bytes from the start.
        at: usize,
    },
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a topic has at most {TOPIC_BYTES_MAX} characters"),
            Self::EmptyName => f.write_str("a topic is names with single dots between them"),
            Self::Character { at } => {
                write!(f, "character {} is none of a-z, 0-9, -, _ and the dot", at + 1)
            }
        }
    }
}

impl core::error::Error for TopicError {}

#[cfg(test)]
mod tests;
