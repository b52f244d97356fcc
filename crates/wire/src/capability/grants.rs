//! The rights that a machine holds, and how often it has used each.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Capabilities, PeerPattern, ReachPattern, Right, Visit};
use crate::{Name, PublicKey, Topic, TopicPattern};

/// A machine at the other end of a call, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer<'a> {
    /// Its name.
    pub machine: Option<&'a Name>,
    /// The name of its device, which the owner has enrolled.
    pub device: Option<&'a Name>,
    /// Whether it is on the same device.
    pub is_here: bool,
    /// Its key.
    pub key: Option<&'a PublicKey>,
}

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.machine, self.device, self.key) {
            (Some(machine), Some(device), _) if !self.is_here => write!(f, "{machine}@{device}"),
            (Some(machine), _, _) => write!(f, "{machine}"),
            (None, _, Some(key)) => write!(f, "#{key}"),
            (None, _, None) => f.write_str("a machine that isn't known by name"),
        }
    }
}

/// The rights of a machine. Each question that is answered by yes counts as a use.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    publish: Vec<Held<TopicPattern>>,
    subscribe: Vec<Held<TopicPattern>>,
    calls: Vec<Held<PeerPattern>>,
    callers: Vec<Held<PeerPattern>>,
    peripherals: Vec<Held<Name>>,
    secrets: Vec<Held<Name>>,
    reach: Vec<Held<ReachPattern>>,
    denied: u64,
}

/// A right, and how often it was used.
#[derive(Clone, Debug)]
struct Held<P> {
    pattern: P,
    used: u64,
}

/// How often a right was used since the machine took its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUse {
    /// The kind of right.
    pub right: Right,
    /// The object of the right, as the lease names it.
    pub to: String,
    /// How often it was used.
    pub used: u64,
}

impl Grants {
    /// The rights that `capabilities` grant, none of them used yet.
    pub fn new(capabilities: &Capabilities) -> Self {
        Self {
            publish: hold(&capabilities.publish),
            subscribe: hold(&capabilities.subscribe),
            calls: hold(&capabilities.calls),
            callers: hold(&capabilities.callers),
            peripherals: hold(&capabilities.peripherals),
            secrets: hold(&capabilities.secrets),
            reach: hold(&capabilities.reach),
            denied: 0,
        }
    }

    /// Whether the machine may publish to `topic`.
    ///
    /// # Errors
    /// [`NotGranted`] if not; it is counted. So do all the methods below.
    pub fn publish(&mut self, topic: &Topic) -> Result<(), NotGranted> {
        let used = find(&mut self.publish, |pattern| pattern.matches(topic));
        self.settle(used, Right::Publish, topic)
    }

    /// Whether the machine may subscribe to all of `topics`.
    pub fn subscribe(&mut self, topics: &TopicPattern) -> Result<(), NotGranted> {
        let used = find(&mut self.subscribe, |pattern| pattern.covers(topics));
        self.settle(used, Right::Subscribe, topics)
    }

    /// Whether the machine may call `callee`.
    pub fn call(&mut self, callee: &Peer<'_>) -> Result<(), NotGranted> {
        let used = find(&mut self.calls, |pattern| pattern.matches(callee));
        self.settle(used, Right::Call, callee)
    }

    /// Whether `caller` may call the machine.
    pub fn admit(&mut self, caller: &Peer<'_>) -> Result<(), NotGranted> {
        let used = find(&mut self.callers, |pattern| pattern.matches(caller));
        self.settle(used, Right::Caller, caller)
    }

    /// Whether the answer to [`Grants::admit`] may depend on the name of a caller elsewhere, of
    /// whom only the key is known.
    pub fn depends_on_name(&self, caller: &PublicKey) -> bool {
        let by_key = Peer { key: Some(caller), ..Peer::default() };
        let named = |held: &Held<PeerPattern>| matches!(held.pattern, PeerPattern::Named { .. });
        self.callers.iter().any(named)
            && !self.callers.iter().any(|held| held.pattern.matches(&by_key))
    }

    /// Whether the machine may use the peripheral of that name.
    pub fn use_peripheral(&mut self, name: &str) -> Result<(), NotGranted> {
        let used = find(&mut self.peripherals, |held| held.as_str() == name);
        self.settle(used, Right::Peripheral, &name)
    }

    /// Whether the machine may read its tenant's secret of that name.
    pub fn read_secret(&mut self, name: &str) -> Result<(), NotGranted> {
        let used = find(&mut self.secrets, |held| held.as_str() == name);
        self.settle(used, Right::Secret, &name)
    }

    /// Whether the machine may send that request to a server outside.
    pub fn reach(&mut self, visit: &Visit<'_>) -> Result<(), NotGranted> {
        let used = find(&mut self.reach, |pattern| pattern.matches(visit));
        self.settle(used, Right::Reach, visit)
    }

    /// Whether the machine may publish to `topic`, without that being counted.
    pub fn has_topic(&self, topic: &Topic) -> bool {
        self.publish.iter().any(|held| held.pattern.matches(topic))
    }

    /// Whether the machine may use the peripheral of that name, without that being counted.
    pub fn has_peripheral(&self, name: &str) -> bool {
        self.peripherals.iter().any(|held| held.pattern.as_str() == name)
    }

    /// The requests that the machine may send to servers outside.
    pub fn reached(&self) -> impl Iterator<Item = &ReachPattern> {
        self.reach.iter().map(|held| &held.pattern)
    }

    /// How often each right was used.
    pub fn uses(&self) -> Vec<GrantUse> {
        let topics = [(Right::Publish, &self.publish), (Right::Subscribe, &self.subscribe)];
        let peers = [(Right::Call, &self.calls), (Right::Caller, &self.callers)];
        let names = [(Right::Peripheral, &self.peripherals), (Right::Secret, &self.secrets)];
        let topics = topics.into_iter().flat_map(|(right, list)| report(right, list));
        let peers = peers.into_iter().flat_map(|(right, list)| report(right, list));
        let names = names.into_iter().flat_map(|(right, list)| report(right, list));
        topics.chain(peers).chain(names).chain(report(Right::Reach, &self.reach)).collect()
    }

    /// How often the machine has published something.
    pub fn published(&self) -> u64 {
        self.publish.iter().map(|held| held.used).fold(0, u64::saturating_add)
    }

    /// How often something was denied.
    pub fn denied(&self) -> u64 {
        self.denied
    }

    fn settle(
        &mut self,
        used: bool,
        right: Right,
        to: &dyn fmt::Display,
    ) -> Result<(), NotGranted> {
        if used {
            return Ok(());
        }
        self.denied = self.denied.saturating_add(1);
        Err(NotGranted { right, to: to.to_string() })
    }
}

fn hold<P: Clone>(patterns: &[P]) -> Vec<Held<P>> {
    patterns.iter().map(|pattern| Held { pattern: pattern.clone(), used: 0 }).collect()
}

/// Counts a use of the first right that fits; `false` if none does.
fn find<P>(list: &mut [Held<P>], fits: impl Fn(&P) -> bool) -> bool {
    let found = list.iter_mut().find(|held| fits(&held.pattern));
    found.map(|held| held.used = held.used.saturating_add(1)).is_some()
}

fn report<P: fmt::Display>(right: Right, list: &[Held<P>]) -> impl Iterator<Item = GrantUse> {
    list.iter().map(move |held| GrantUse { right, to: held.pattern.to_string(), used: held.used })
}

/// The machine holds no right to what it tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotGranted {
    /// The kind of right that it would take.
    pub right: Right,
    /// To what.
    pub to: String,
}

impl fmt::Display for NotGranted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not granted: {} {}", self.right, self.to)
    }
}

impl core::error::Error for NotGranted {}
