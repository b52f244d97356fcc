//! How grave a line of a machine's log is.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// How grave a line of a log is, the gravest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// The kernel stopped the machine.
    Fault,
    /// The machine says: an error.
    Error,
    /// The machine says: a warning.
    Warning,
    /// The machine says: what it does.
    Info,
    /// The machine says: a detail.
    #[default]
    Debug,
}

impl LogLevel {
    /// All of them, the gravest first.
    pub const ALL: [Self; 5] = [Self::Fault, Self::Error, Self::Warning, Self::Info, Self::Debug];

    /// The level behind a host call's number; anything unknown is a detail.
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Error,
            1 => Self::Warning,
            2 => Self::Info,
            _ => Self::Debug,
        }
    }

    /// The level's name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text isn't a level's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLogLevel;

impl fmt::Display for NoLogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a level is fault, error, warning, info or debug")
    }
}

impl core::error::Error for NoLogLevel {}

impl FromStr for LogLevel {
    type Err = NoLogLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(NoLogLevel)
    }
}
