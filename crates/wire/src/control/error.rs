//! Why a device didn't do what was asked.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Name;

/// The answer to every control function: its result, or why there is none.
pub type Answer<T> = Result<T, ControlError>;

/// Why a device didn't do what was asked. On the wire it is a code and a text; codes of later versions
/// are kept as [`ControlError::Other`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlError {
    /// The request can't be read: the two sides are of different versions.
    Malformed,
    /// The caller isn't the owner.
    NotOwner,
    /// There is no such function.
    NoSuchFunction,
    /// No machine of that name.
    NoSuchMachine(Name),
    /// No transfer was begun, or a part is missing or out of order.
    Transfer,
    /// The package or its placement was refused; the text says why.
    Refused(String),
    /// The device has no room; the text says for what.
    Full(String),
    /// The device failed; the text says how.
    Device(String),
    /// The answer can't be read. No device sends this.
    Unreadable,
    /// Others are served first; the text says with what. Nothing was done: ask again in a while.
    Busy(String),
    /// An error of a later version.
    Other {
        /// Its code.
        code: u8,
        /// The device's words.
        text: String,
    },
}

/// An error on the wire.
#[derive(Serialize, Deserialize)]
struct Encoded<'a> {
    code: u8,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// How a [`ControlError::Busy`] says when to ask again: what stands before the milliseconds, and behind them.
const AGAIN_IN: [&str; 2] = ["; try again in ", " milliseconds"];

impl ControlError {
    /// [`Self::Busy`] for so long, for a reason.
    pub fn busy_for(wait: Duration, reason: &str) -> Self {
        let [before, behind] = AGAIN_IN;
        Self::Busy(alloc::format!("{reason}{before}{}{behind}", wait.as_millis()))
    }

    /// When to ask again, if it says so. Nothing was done.
    pub fn again_in(&self) -> Option<Duration> {
        let Self::Busy(text) = self else { return None };
        let (_, milliseconds) = text.rsplit_once(AGAIN_IN[0])?;
        milliseconds.strip_suffix(AGAIN_IN[1])?.parse().ok().map(Duration::from_millis)
    }

    /// Its code on the wire.
    pub fn code(&self) -> u8 {
        match self {
            Self::Malformed => 0,
            Self::NotOwner => 1,
            Self::NoSuchFunction => 2,
            Self::NoSuchMachine(_) => 3,
            Self::Transfer => 4,
            Self::Refused(_) => 5,
            Self::Full(_) => 6,
            Self::Device(_) => 7,
            Self::Unreadable => 8,
            Self::Busy(_) => 9,
            Self::Other { code, .. } => *code,
        }
    }

    /// The error with that code and text.
    fn from_code(code: u8, text: &str) -> Self {
        match (code, text.parse()) {
            (0, _) => Self::Malformed,
            (1, _) => Self::NotOwner,
            (2, _) => Self::NoSuchFunction,
            (3, Ok(name)) => Self::NoSuchMachine(name),
            (4, _) => Self::Transfer,
            (5, _) => Self::Refused(text.to_string()),
            (6, _) => Self::Full(text.to_string()),
            (7, _) => Self::Device(text.to_string()),
            (8, _) => Self::Unreadable,
            (9, _) => Self::Busy(text.to_string()),
            (code, _) => Self::Other { code, text: text.to_string() },
        }
    }
}

impl Serialize for ControlError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            Self::NoSuchMachine(name) => name.as_str(),
            Self::Refused(text)
            | Self::Full(text)
            | Self::Device(text)
            | Self::Busy(text)
            | Self::Other { text, .. } => text,
            _ => "",
        };
        Encoded { code: self.code(), text: text.into() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ControlError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Encoded { code, text } = Encoded::deserialize(deserializer)?;
        Ok(Self::from_code(code, &text))
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("the device can't read the request: it runs another version")
            }
            Self::NotOwner => f.write_str("the device belongs to another owner"),
            Self::NoSuchFunction => f.write_str("the device doesn't know this request"),
            Self::NoSuchMachine(name) => write!(f, "there is no machine `{name}` on the device"),
            Self::Transfer => f.write_str("the transfer of the package was interrupted"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Full(what) => write!(f, "the device is full: {what}"),
            Self::Device(what) => write!(f, "the device failed: {what}"),
            Self::Unreadable => {
                f.write_str("the device's answer can't be read: it runs another version")
            }
            Self::Busy(with) => write!(f, "the device is busy: {with}"),
            Self::Other { code, text } => {
                write!(f, "the device, of a later version, answers with error {code}: {text}")
            }
        }
    }
}

impl core::error::Error for ControlError {}
