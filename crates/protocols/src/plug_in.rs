//! Plug-ins: protocols that hosts start by their names, those in here and anybody's.
//!
//! A protocol becomes one by [`PlugIn`], which makes it from a [`Start`] and returns its figures. An [`Entry`] is
//! the type behind a name, and a [`Registry`] is the list of names that a host accepts: the simulator in a
//! scenario, a device in an order of an experiment. Protocols in here are entries like all others ([`OWN`]).

use core::any::Any;
use core::fmt;
use core::time::Duration;

use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_mesh::{
    Description, Dispatcher, NodeId, Prepared, Protocol, ProtocolNumber, Queues, Stack, Timers,
};

use crate::aggregation::{self, Aggregation, Method};
use crate::flow_updating::FlowUpdating;
use crate::gap::{self, Gap};
use crate::interface::Summary;
use crate::limosense::LimoSense;
use crate::membership::Membership;
use crate::push_sum::PushSum;

#[cfg(test)]
mod tests;

/// The least number of a protocol in another crate.
pub const FREE_FROM: u8 = 128;

/// The protocols in here that hosts start by name.
pub const OWN: &[Entry] = &[
    Entry::of::<Gap>(),
    Entry::of::<FlowUpdating>(),
    Entry::of::<LimoSense>(),
    Entry::of::<PushSum>(),
    Entry::of::<Membership>(),
];

/// A protocol that hosts start by its name, which [`tenure_mesh::protocol!`] declares.
pub trait PlugIn: Protocol {
    /// Makes the protocol for one node.
    ///
    /// # Errors
    /// [`BadSettings`] if `start.settings` means nothing to the protocol.
    fn make(start: &Start<'_>) -> Result<Self, BadSettings>;

    /// Tells `figure` what the protocol has come to by `now`: names, and numbers with them. Hosts log them and
    /// compare them with what a scenario expects.
    fn figures(&self, node: NodeId, now: Instant, figure: &mut dyn FnMut(&'static str, f64)) {
        let _ = (node, now, figure);
    }
}

/// The circumstances in which a protocol starts on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start<'a> {
    /// The node.
    pub node: NodeId,
    /// Which life of the node this is, where the host knows; 0 otherwise.
    pub life: u32,
    /// The time between two rounds.
    pub interval: Duration,
    /// The node's own value.
    pub value: f64,
    /// Whether this node is the one by which those protocols count that need one for it.
    pub has_unit: bool,
    /// The protocol's own settings, in a form that it chooses; empty if none were given.
    pub settings: &'a str,
}

/// The settings of a protocol mean nothing to it. The person who wrote them is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSettings {
    /// The form that the protocol takes, in words.
    pub takes: &'static str,
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the protocol takes {}", self.takes)
    }
}

impl core::error::Error for BadSettings {}

/// Tells of a protocol's figures, by name and value.
type Figures = fn(&dyn Any, NodeId, Instant, &mut dyn FnMut(&'static str, f64));

/// A type of protocol behind its name.
#[derive(Clone, Copy)]
pub struct Entry {
    description: &'static Description,
    make: fn(&Start<'_>) -> Result<Prepared, BadSettings>,
    figures: Figures,
}

impl Entry {
    /// The entry of the protocol `P`.
    pub const fn of<P: PlugIn>() -> Self {
        Self {
            description: P::DESCRIPTION,
            make: |start| P::make(start).map(Prepared::new),
            figures: |protocol, node, now, figure| {
                if let Some(protocol) = protocol.downcast_ref::<P>() {
                    protocol.figures(node, now, figure);
                }
            },
        }
    }

    /// The protocol's name.
    pub fn name(&self) -> &'static str {
        self.description.name
    }

    /// The protocol's number.
    pub fn number(&self) -> ProtocolNumber {
        self.description.number
    }

    /// The protocol's interface.
    pub fn description(&self) -> &'static Description {
        self.description
    }

    /// Makes the protocol.
    ///
    /// # Errors
    /// [`BadSettings`] if its settings mean nothing to it.
    pub fn make(&self, start: &Start<'_>) -> Result<Prepared, BadSettings> {
        (self.make)(start)
    }

    /// Tells `figure` what the protocol has come to in `stack`; nothing if it doesn't run there.
    pub fn figures<D: Dispatcher, Q: Queues, T: Timers>(
        &self,
        stack: &Stack<D, Q, T>,
        now: Instant,
        figure: &mut dyn FnMut(&'static str, f64),
    ) {
        if let Some(protocol) = stack.protocol_any(self.number()) {
            (self.figures)(protocol, stack.node(), now, figure);
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

/// The protocols that a host starts by name: [`OWN`], and those of another crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registry {
    foreign: &'static [Entry],
}

impl Registry {
    /// The protocols in here alone.
    pub const OWN: Self = Self { foreign: &[] };

    /// The protocols in here, and those in `foreign`.
    ///
    /// # Errors
    /// [`RegistryError`] if two have the same name or number, or the number of a foreign one isn't free.
    pub fn new(foreign: &'static [Entry]) -> Result<Self, RegistryError> {
        for (index, entry) in foreign.iter().enumerate() {
            let (name, number) = (entry.name(), entry.number());
            if number.0 < FREE_FROM {
                return Err(RegistryError::Reserved { name, number });
            }
            let mut before = OWN.iter().chain(&foreign[..index]);
            if before.any(|other| other.name() == name) {
                return Err(RegistryError::NameTwice { name });
            }
            if let Some(other) = foreign[..index].iter().find(|other| other.number() == number) {
                return Err(RegistryError::NumberTwice { number, names: [other.name(), name] });
            }
        }
        Ok(Self { foreign })
    }

    /// All protocols.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> + use<> {
        OWN.iter().chain(self.foreign)
    }

    /// The protocol with this name.
    ///
    /// # Errors
    /// [`UnknownProtocol`], which lists those that there are.
    pub fn named<'a>(&self, name: &'a str) -> Result<&'static Entry, UnknownProtocol<'a>> {
        let found = self.entries().find(|entry| entry.name() == name);
        found.ok_or(UnknownProtocol { name, registry: *self })
    }

    /// The protocol with this number.
    pub fn numbered(&self, number: ProtocolNumber) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.number() == number)
    }

    /// The names of all protocols.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries().map(Entry::name).collect()
    }
}

/// A registry can't be. The author of a foreign protocol is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// The number isn't one of those that are free for other crates.
    Reserved {
        /// The protocol's name.
        name: &'static str,
        /// Its number.
        number: ProtocolNumber,
    },
    /// Two protocols have one name.
    NameTwice {
        /// The name.
        name: &'static str,
    },
    /// Two protocols have one number.
    NumberTwice {
        /// The number.
        number: ProtocolNumber,
        /// The names of the protocols.
        names: [&'static str; 2],
    },
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved { name, number } => write!(
                f,
                "the protocol `{name}` has the number {}; those from {FREE_FROM} on are free",
                number.0
            ),
            Self::NameTwice { name } => write!(f, "two protocols have the name `{name}`"),
            Self::NumberTwice { number, names: [one, other] } => {
                write!(f, "the protocols `{one}` and `{other}` have the same number, {}", number.0)
            }
        }
    }
}

impl core::error::Error for RegistryError {}

/// No protocol has that name.
#[derive(Clone, Copy, Debug)]
pub struct UnknownProtocol<'a> {
    /// The name.
    pub name: &'a str,
    registry: Registry,
}

impl fmt::Display for UnknownProtocol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.registry.names().join(", ");
        write!(f, "no protocol has the name `{}`; there is {names}", self.name)
    }
}

impl core::error::Error for UnknownProtocol<'_> {}

/// Tells `figure` what an aggregation has come to; nothing while too little is known.
fn summarised(summary: Option<Summary>, figure: &mut dyn FnMut(&'static str, f64)) {
    if let Some(summary) = summary {
        figure("count", summary.count);
        figure("average", summary.average());
        figure("min", summary.min);
        figure("max", summary.max);
    }
}

/// Refuses settings: most protocols in here have none of their own.
fn without_settings(start: &Start<'_>) -> Result<(), BadSettings> {
    match start.settings {
        "" => Ok(()),
        _ => Err(BadSettings { takes: "an interval and a value, and no other settings" }),
    }
}

impl PlugIn for Gap {
    fn make(start: &Start<'_>) -> Result<Self, BadSettings> {
        without_settings(start)?;
        let Start { value, life, interval, .. } = *start;
        Ok(Self::new(gap::Config { value, life, interval, ..gap::Config::default() }))
    }

    fn figures(&self, _: NodeId, _: Instant, figure: &mut dyn FnMut(&'static str, f64)) {
        summarised(self.summary(), figure);
    }
}

impl<M: Method> PlugIn for Aggregation<M> {
    fn make(start: &Start<'_>) -> Result<Self, BadSettings> {
        without_settings(start)?;
        let Start { value, has_unit, interval, .. } = *start;
        let config = aggregation::Config { value, has_unit, interval, ..Default::default() };
        Ok(Self::new(config))
    }

    fn figures(&self, _: NodeId, _: Instant, figure: &mut dyn FnMut(&'static str, f64)) {
        summarised(self.summary(), figure);
    }
}

impl PlugIn for Membership {
    fn make(start: &Start<'_>) -> Result<Self, BadSettings> {
        without_settings(start)?;
        Ok(Self::new(start.interval))
    }

    fn figures(&self, _: NodeId, _: Instant, figure: &mut dyn FnMut(&'static str, f64)) {
        figure("members", self.members() as f64);
    }
}
