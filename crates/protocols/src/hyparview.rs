//! Membership for large networks: each node knows a few others well, and some more by name.
//!
//! Source: Leitão, Pereira and Rodrigues, "HyParView: a membership protocol for reliable gossip-based
//! broadcast" (DSN 2007), whose Algorithm 1 and §4 this follows. Where the paper uses TCP, its
//! messages go by [`SendReliably`], and what isn't acknowledged counts as a failure.
//!
//! Per other node:
//!
//! ```text
//!          shuffle, join that passes by          neighbour accepted, join, forwarded join: MemberUp
//!  unknown ─────────────────────────────► passive ──────────────────────────────────────► active
//!     ▲                                     │  ▲                                             │
//!     └─────────────────────────────────────┘  └─────────────────────────────────────────────┘
//!            room is needed, unreachable           disconnected, room is needed: MemberDown
//!     ▲                                                                                      │
//!     └──────────────────────────────────────────────────────────────────────────────────────┘
//!                                      unreachable: MemberDown
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Awaits, Context, Expires, Hears, NodeId, Protocol, Question, Random, Serves, decode, encode,
};

use crate::interface::{
    Acknowledged, DatagramArrived, LinkUp, MemberDown, MemberUp, Members, Port, SendReliably,
};

#[cfg(test)]
mod tests;

/// The configuration; the defaults are the paper's, §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The node to join by; `None`: the first neighbours, as many as are known well.
    pub contact: Option<NodeId>,
    /// How many nodes are known well.
    pub active_max: usize,
    /// How many are known by name.
    pub passive_max: usize,
    /// How far a join goes (ARWL), and at which distance it is noted by name (PRWL).
    pub active_walk: u8,
    /// See [`Config::active_walk`].
    pub passive_walk: u8,
    /// How many nodes of each view a shuffle carries (k_a, k_p).
    pub shuffled_active: usize,
    /// See [`Config::shuffled_active`].
    pub shuffled_passive: usize,
    /// How often views are shuffled.
    pub period: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            contact: None,
            active_max: 5,
            passive_max: 30,
            active_walk: 6,
            passive_walk: 3,
            shuffled_active: 3,
            shuffled_passive: 4,
            period: Duration::from_secs(10),
        }
    }
}

/// Membership for large networks.
#[derive(Debug)]
pub struct HyParView {
    config: Config,
    active: Vec<NodeId>,
    passive: Vec<NodeId>,
    /// The node that was asked to become a neighbour and hasn't answered.
    asked: Option<NodeId>,
    /// The last neighbour of the network below.
    nearby: Option<NodeId>,
    /// By so many more of these it joins, where no contact was chosen: when all nodes begin at once, each joins by another,
    /// and what forms apart becomes one so.
    joins_left: usize,
}

/// The messages of members to each other. The nodes of a shuffle follow, six bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Word {
    Join,
    ForwardJoin {
        new: NodeId,
        walk: u8,
    },
    Disconnect,
    /// With priority, it can't be declined.
    Neighbour {
        priority: bool,
    },
    NeighbourAnswer {
        accepted: bool,
    },
    Shuffle {
        origin: NodeId,
        walk: u8,
    },
    ShuffleAnswer,
}

/// It is time to shuffle, and to look whether there are neighbours enough.
#[derive(Debug, Serialize, Deserialize)]
struct Beat;

tenure_mesh::protocol! {
    HyParView = 13, "hyparview";
    timers { Beat = 1 }
    serves { Members }
    asks { SendReliably }
    hears { DatagramArrived, LinkUp }
    tells { MemberUp, MemberDown }
}

impl HyParView {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            active: Vec::new(),
            passive: Vec::new(),
            asked: None,
            nearby: None,
            joins_left: config.active_max,
        }
    }

    /// The nodes that are known well; they know this one.
    pub fn active(&self) -> &[NodeId] {
        &self.active
    }

    fn say(&self, to: NodeId, word: Word, nodes: &[NodeId], context: &mut Context<'_, Self>) {
        let mut body = Vec::new();
        encode(&word, &mut body);
        nodes.iter().for_each(|node| body.extend_from_slice(&node.to_bytes()));
        context.ask(&SendReliably { to, port: Port::VIEWS }, &body);
    }

    fn add_active(&mut self, node: NodeId, context: &mut Context<'_, Self>) {
        if node == context.node() || self.active.contains(&node) {
            return;
        }
        if self.active.len() >= self.config.active_max {
            let dropped = pick(&self.active, context.random());
            if let Some(dropped) = dropped {
                self.say(dropped, Word::Disconnect, &[], context);
                self.remove_active(dropped, true, context);
            }
        }
        self.passive.retain(|it| *it != node);
        self.active.push(node);
        context.tell(&MemberUp { member: node }, &[]);
    }

    fn add_passive(&mut self, node: NodeId, context: &mut Context<'_, Self>) {
        let known = self.active.contains(&node) || self.passive.contains(&node);
        if node == context.node() || known {
            return;
        }
        if self.passive.len() >= self.config.passive_max
            && let Some(dropped) = pick(&self.passive, context.random())
        {
            self.passive.retain(|it| *it != dropped);
        }
        self.passive.push(node);
    }

    fn remove_active(&mut self, node: NodeId, alive: bool, context: &mut Context<'_, Self>) {
        let before = self.active.len();
        self.active.retain(|it| *it != node);
        if self.active.len() < before {
            context.tell(&MemberDown { member: node }, &[]);
        }
        if alive {
            self.add_passive(node, context);
        }
    }

    /// Asks somebody known by name to become a neighbour, if there is room for one.
    fn promote(&mut self, context: &mut Context<'_, Self>) {
        if self.asked.is_some() || self.active.len() >= self.config.active_max {
            return;
        }
        if let Some(candidate) = pick(&self.passive, context.random()) {
            self.asked = Some(candidate);
            let priority = self.active.is_empty();
            self.say(candidate, Word::Neighbour { priority }, &[], context);
        } else if let Some(contact) = self.config.contact.or(self.nearby)
            && self.active.is_empty()
        {
            self.say(contact, Word::Join, &[], context);
        }
    }

    fn join(&mut self, from: NodeId, context: &mut Context<'_, Self>) {
        self.add_active(from, context);
        let walk = self.config.active_walk;
        let word = Word::ForwardJoin { new: from, walk };
        for other in self.active.clone().into_iter().filter(|it| *it != from) {
            self.say(other, word, &[], context);
        }
        // The paper's newcomer takes its contact for a neighbour by having a connection to it.
        self.say(from, Word::NeighbourAnswer { accepted: true }, &[], context);
    }

    fn forward_join(
        &mut self,
        from: NodeId,
        new: NodeId,
        walk: u8,
        context: &mut Context<'_, Self>,
    ) {
        let walk = walk.min(self.config.active_walk);
        let others: Vec<_> =
            self.active.iter().copied().filter(|it| *it != from && *it != new).collect();
        if walk == self.config.passive_walk {
            self.add_passive(new, context);
        }
        match pick(&others, context.random()) {
            Some(next) if walk > 0 => {
                let word = Word::ForwardJoin { new, walk: walk - 1 };
                self.say(next, word, &[], context);
            }
            _ if new != context.node() && !self.active.contains(&new) => {
                self.add_active(new, context);
                self.say(new, Word::NeighbourAnswer { accepted: true }, &[], context);
            }
            _ => {}
        }
    }

    fn shuffle(
        &mut self,
        from: NodeId,
        origin: NodeId,
        walk: u8,
        nodes: &[NodeId],
        context: &mut Context<'_, Self>,
    ) {
        let others: Vec<_> =
            self.active.iter().copied().filter(|it| *it != from && *it != origin).collect();
        if let Some(next) = pick(&others, context.random())
            && walk > 0
        {
            let walk = walk.min(self.config.active_walk) - 1;
            return self.say(next, Word::Shuffle { origin, walk }, nodes, context);
        }
        if origin != context.node() {
            let ours = sample(&self.passive, nodes.len(), context.random());
            self.say(origin, Word::ShuffleAnswer, &ours, context);
            nodes.iter().for_each(|node| self.add_passive(*node, context));
        }
    }

    fn take(
        &mut self,
        from: NodeId,
        word: Word,
        nodes: &[NodeId],
        context: &mut Context<'_, Self>,
    ) {
        match word {
            Word::Join => self.join(from, context),
            Word::ForwardJoin { new, walk } => self.forward_join(from, new, walk, context),
            Word::Disconnect => {
                self.remove_active(from, true, context);
                self.promote(context);
            }
            Word::Neighbour { priority } => {
                let accepted = priority || self.active.len() < self.config.active_max;
                if accepted {
                    self.add_active(from, context);
                }
                self.say(from, Word::NeighbourAnswer { accepted }, &[], context);
            }
            Word::NeighbourAnswer { accepted } => {
                if self.asked == Some(from) {
                    self.asked = None;
                }
                if accepted {
                    self.add_active(from, context);
                }
            }
            Word::Shuffle { origin, walk } => self.shuffle(from, origin, walk, nodes, context),
            Word::ShuffleAnswer => nodes.iter().for_each(|node| self.add_passive(*node, context)),
        }
    }
}

/// One of `nodes`.
fn pick(nodes: &[NodeId], random: &mut Random) -> Option<NodeId> {
    nodes.get(random.below(nodes.len() as u64) as usize).copied()
}

/// At most `count` of `nodes`.
fn sample(nodes: &[NodeId], count: usize, random: &mut Random) -> Vec<NodeId> {
    let mut rest = nodes.to_vec();
    let mut sample = Vec::new();
    while sample.len() < count && !rest.is_empty() {
        sample.push(rest.swap_remove(random.below(rest.len() as u64) as usize));
    }
    sample
}

impl Protocol for HyParView {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.after(Duration::ZERO, &Beat);
    }
}

impl Expires<Beat> for HyParView {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        self.asked = None;
        self.promote(context);
        if let Some(to) = pick(&self.active, context.random()) {
            let mut nodes = sample(&self.active, self.config.shuffled_active, context.random());
            nodes.extend(sample(&self.passive, self.config.shuffled_passive, context.random()));
            nodes.push(context.node());
            let word = Word::Shuffle { origin: context.node(), walk: self.config.active_walk };
            self.say(to, word, &nodes, context);
        }
        context.after_about(self.config.period, &Beat);
    }
}

impl Hears<DatagramArrived> for HyParView {
    fn hear(
        &mut self,
        DatagramArrived { from, port }: DatagramArrived,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if port != Port::VIEWS || from == context.node() {
            return;
        }
        let Some((word, nodes)) = decode::<Word>(body) else { return };
        let most = self.config.shuffled_active + self.config.shuffled_passive + 1;
        let (nodes, _) = nodes.as_chunks::<{ NodeId::BYTES }>();
        let nodes: Vec<_> = nodes.iter().take(most).map(|it| NodeId::from_bytes(*it)).collect();
        self.take(from, word, &nodes, context);
    }
}

impl Awaits<SendReliably> for HyParView {
    fn answered(
        &mut self,
        SendReliably { to, .. }: SendReliably,
        reply: Option<Acknowledged>,
        context: &mut Context<'_, Self>,
    ) {
        if reply != Some(Acknowledged::No) {
            return;
        }
        if self.asked == Some(to) {
            self.asked = None;
        }
        self.passive.retain(|it| *it != to);
        self.remove_active(to, false, context);
        self.promote(context);
    }
}

impl Hears<LinkUp> for HyParView {
    fn hear(&mut self, up: LinkUp, _: &[u8], context: &mut Context<'_, Self>) {
        self.nearby = Some(up.neighbour);
        let is_known = self.active.iter().chain(&self.passive).any(|it| *it == up.neighbour);
        if self.config.contact.is_none() && self.joins_left > 0 && !is_known {
            self.joins_left -= 1;
            self.say(up.neighbour, Word::Join, &[], context);
        }
    }
}

impl Serves<Members> for HyParView {
    fn serve(
        &mut self,
        _: Members,
        _: &Question<'_, Members>,
        _: &mut Context<'_, Self>,
    ) -> Option<Vec<NodeId>> {
        Some(self.active.iter().chain(&self.passive).copied().collect())
    }
}
