//! The ends that a connection comes to.

use alloc::string::String;
use core::fmt;

use crate::reason::Reason;

/// Why a connection is over: always the broker's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A packet can't be read (§4.13.1).
    Malformed(&'static str),
    /// A packet is none that a broker may send here (§4.13.1).
    Protocol(&'static str),
    /// A packet is longer than this client said that it takes (§3.1.2.11.4).
    TooLong,
    /// More messages are under way than this client said that it takes (§3.1.2.11.3).
    TooMany,
    /// A topic alias, of which this client takes none (§3.1.2.11.5).
    Alias,
    /// The broker refuses the connection (§3.2.2.2).
    Refused(Reason, String),
    /// The broker ends the connection (§3.14).
    Ended(Reason, String),
    /// The broker says nothing (§3.1.2.10).
    Silent,
}

impl Fault {
    /// The reason by which the broker is told, if it is.
    pub(crate) const fn told_as(&self) -> Option<Reason> {
        match self {
            Self::Malformed(_) => Some(Reason::MALFORMED),
            Self::Protocol(_) => Some(Reason::PROTOCOL),
            Self::TooLong => Some(Reason::TOO_LONG),
            Self::TooMany => Some(Reason::TOO_MANY),
            Self::Alias => Some(Reason::ALIAS),
            Self::Refused(..) | Self::Ended(..) | Self::Silent => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_words = |f: &mut fmt::Formatter<'_>, what: &str, reason: &Reason, words: &str| {
            write!(f, "the broker {what}: {reason}")?;
            if words.is_empty() { Ok(()) } else { write!(f, " ({words})") }
        };
        match self {
            Self::Malformed(what) => write!(f, "the broker sent a malformed packet: {what}"),
            Self::Protocol(what) => write!(f, "the broker broke the protocol: {what}"),
            Self::TooLong => f.write_str("the broker sent a packet longer than it was told to"),
            Self::TooMany => {
                f.write_str("the broker has more messages under way than it was told to")
            }
            Self::Alias => f.write_str("the broker used a topic alias, which it was told not to"),
            Self::Refused(reason, words) => with_words(f, "refuses the connection", reason, words),
            Self::Ended(reason, words) => with_words(f, "ended the connection", reason, words),
            Self::Silent => f.write_str("the broker doesn't answer"),
        }
    }
}

impl core::error::Error for Fault {}
