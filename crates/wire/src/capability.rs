//! Rights of a machine beyond its own memory and tree: asked for in its package, granted by the
//! owner in its lease, checked by the kernel at each use.
//!
//! Invariants:
//! - Everything that isn't named is denied; an empty list grants nothing.
//! - [`Capabilities`] is the list as it is written and signed. [`Grants`] is what a machine holds:
//!   it is made once, when the machine takes its place, and asking it is the only way to learn that
//!   something is allowed, so that each use is counted.

mod encoding;
mod grants;
mod pattern;
mod reach;

pub use grants::{GrantUse, Grants, NotGranted, Peer};
pub use pattern::{PatternError, PeerPattern};
pub use reach::{Method, ReachError, ReachPattern, Visit};

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Name, TopicPattern};

/// The most rights of one kind.
pub const CAPABILITIES_MAX: usize = 16;

/// Rights of a machine, as its package asks for them and its lease grants them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Topics that it publishes to.
    pub publish: Vec<TopicPattern>,
    /// Topics that it subscribes to.
    pub subscribe: Vec<TopicPattern>,
    /// Machines that it calls.
    pub calls: Vec<PeerPattern>,
    /// Machines that may call it. The owner always may.
    pub callers: Vec<PeerPattern>,
    /// Peripherals of the device that it uses.
    pub peripherals: Vec<Name>,
    /// Secrets of its tenant that it reads.
    pub secrets: Vec<Name>,
    /// Servers outside that it sends requests to.
    pub reach: Vec<ReachPattern>,
}

/// The kinds of right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Right {
    /// To publish to a topic.
    Publish,
    /// To subscribe to a topic.
    Subscribe,
    /// To call a machine.
    Call,
    /// To be called by a machine.
    Caller,
    /// To use a peripheral.
    Peripheral,
    /// To read a secret.
    Secret,
    /// To send requests to a server outside.
    Reach,
}

impl Right {
    /// Every kind, in the order of the lists in [`Capabilities`].
    pub const ALL: [Self; 7] = [
        Self::Publish,
        Self::Subscribe,
        Self::Call,
        Self::Caller,
        Self::Peripheral,
        Self::Secret,
        Self::Reach,
    ];

    /// The name of the list that it stands in.
    pub const fn list(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Call => "calls",
            Self::Caller => "callers",
            Self::Peripheral => "peripherals",
            Self::Secret => "secrets",
            Self::Reach => "reach",
        }
    }
}

impl fmt::Display for Right {
    /// The machine's acts by that right, in words that go on with the right's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "publish to",
            Self::Subscribe => "subscribe to",
            Self::Call => "call",
            Self::Caller => "be called by",
            Self::Peripheral => "use peripheral",
            Self::Secret => "read secret",
            Self::Reach => "reach",
        })
    }
}

impl Capabilities {
    /// Checks everything that the types don't.
    ///
    /// # Errors
    /// The first list that is too long or names something twice.
    pub fn check(&self) -> Result<(), Right> {
        let checks = [
            (Right::Publish, is_short_set(&self.publish)),
            (Right::Subscribe, is_short_set(&self.subscribe)),
            (Right::Call, is_short_set(&self.calls)),
            (Right::Caller, is_short_set(&self.callers)),
            (Right::Peripheral, is_short_set(&self.peripherals)),
            (Right::Secret, is_short_set(&self.secrets)),
            (Right::Reach, is_short_set(&self.reach)),
        ];
        checks.into_iter().find(|(_, good)| !good).map_or(Ok(()), |(right, _)| Err(right))
    }

    /// The part of these that `asked` covers: so nobody holds a right that the package doesn't ask for.
    #[must_use]
    pub fn within(&self, asked: &Self) -> Self {
        let topics = |granted: &[TopicPattern], asked: &[TopicPattern]| {
            keep(granted, |one| asked.iter().any(|wish| wish.covers(one)))
        };
        let peers = |granted: &[PeerPattern], asked: &[PeerPattern]| {
            keep(granted, |one| asked.iter().any(|wish| wish.covers(one)))
        };
        Self {
            publish: topics(&self.publish, &asked.publish),
            subscribe: topics(&self.subscribe, &asked.subscribe),
            calls: peers(&self.calls, &asked.calls),
            callers: peers(&self.callers, &asked.callers),
            peripherals: keep(&self.peripherals, |name| asked.peripherals.contains(name)),
            secrets: keep(&self.secrets, |name| asked.secrets.contains(name)),
            reach: keep(&self.reach, |one| asked.reach.iter().any(|wish| wish.covers(one))),
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn keep<T: Clone>(list: &[T], wanted: impl Fn(&T) -> bool) -> Vec<T> {
    list.iter().filter(|one| wanted(one)).cloned().collect()
}

fn is_short_set<T: PartialEq>(list: &[T]) -> bool {
    list.len() <= CAPABILITIES_MAX
        && (1..list.len()).all(|position| !list[..position].contains(&list[position]))
}

#[cfg(test)]
mod tests;
