//! Broadcast on a tree within a membership's overlay: bodies go along the tree, and their names beside it.
//!
//! Source: Leitão, Pereira and Rodrigues, "Epidemic broadcast trees" (SRDS 2007), Algorithms 1 and 2. The members are
//! those that [`MemberUp`] and [`MemberDown`] tell, as [HyParView](crate::hyparview) does.
//!
//! Per member, of which each is one of two:
//!
//! ```text
//!              a body came that is known, or a prune
//!      eager ─────────────────────────────────────────► lazy
//!  gets bodies ◄───────────────────────────────────── gets names
//!              a body came that is new, or a graft
//! ```
//!
//! Per body:
//!
//! ```text
//!            name                    waited in vain: a graft to who named it
//!  unknown ─────────► missing ─────────────────────────────────────────────┐
//!     │                 │  ▲───────────────────────────────────────────────┘
//!     └─────────────────┴────► known
//!            body
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Awaits, Context, Expires, Hears, NodeId, Protocol, Question, Serves, decode, encode,
};

use crate::broadcast::{Name, Names};
use crate::interface::{
    DatagramArrived, MemberDown, MemberUp, Port, Publish, Published, SendDatagram, Taken,
};

#[cfg(test)]
mod tests;

/// The bytes that a body's head takes of a datagram.
const HEAD_BYTES_MAX: usize = 24;
/// The bytes that a datagram's own head takes of a frame.
const DATAGRAM_BYTES_MAX: usize = 40;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a body whose name came may take to come along the tree.
    pub patience: Duration,
    /// How long one that was asked for may take, before the next who named it is asked.
    pub graft_patience: Duration,
    /// The most members that are remembered.
    pub members_max: usize,
    /// How many bodies are known again.
    pub remembered: usize,
    /// How many bodies are kept for those that miss them.
    pub kept: usize,
    /// The most names of missing bodies that one member may tell.
    pub named_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(1),
            graft_patience: Duration::from_millis(500),
            members_max: 16,
            remembered: 256,
            kept: 32,
            named_max: 16,
        }
    }
}

/// Broadcast on a tree within a membership's overlay.
#[derive(Debug)]
pub struct Plumtree {
    config: Config,
    names: Names,
    members: Vec<Member>,
    /// The last bodies, the newest last.
    kept: VecDeque<Kept>,
    /// Bodies that others have, with who said so, in the order of their words.
    missing: Vec<(Name, NodeId)>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    node: NodeId,
    is_eager: bool,
}

#[derive(Debug)]
struct Kept {
    name: Name,
    port: Port,
    body: Vec<u8>,
}

/// The messages of members to each other; the body follows the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Word {
    /// A body: the paper's GOSSIP.
    Body { name: Name, port: Port },
    /// Its name alone: IHAVE.
    Have { name: Name },
    /// Send no more bodies.
    Prune,
    /// Send bodies again, and this one at once.
    Graft { name: Name },
}

/// A missing body should have come.
#[derive(Debug, Serialize, Deserialize)]
struct Overdue {
    name: Name,
}

tenure_mesh::protocol! {
    Plumtree = 18, "plumtree";
    timers { Overdue = 1 }
    serves { Publish }
    asks { SendDatagram }
    hears { DatagramArrived, MemberUp, MemberDown }
    tells { Published }
}

impl Plumtree {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            names: Names::new(config.remembered),
            members: Vec::new(),
            kept: VecDeque::new(),
            missing: Vec::new(),
        }
    }

    fn say(to: NodeId, word: Word, body: &[u8], context: &mut Context<'_, Self>) {
        let mut bytes = Vec::new();
        encode(&word, &mut bytes);
        bytes.extend_from_slice(body);
        context.ask(&SendDatagram { to, port: Port::TREE }, &bytes);
    }

    /// Gives a body, or its name, to all members but `from`.
    fn push(&mut self, kept: Kept, from: Option<NodeId>, context: &mut Context<'_, Self>) {
        let Kept { name, port, .. } = kept;
        for member in self.members.iter().filter(|member| Some(member.node) != from) {
            match member.is_eager {
                true => Self::say(member.node, Word::Body { name, port }, &kept.body, context),
                false => Self::say(member.node, Word::Have { name }, &[], context),
            }
        }
        if self.kept.len() >= self.config.kept {
            self.kept.pop_front();
        }
        self.kept.push_back(kept);
    }

    /// Lets a member have bodies, or names alone. Who is no member is none of the tree.
    fn set_eager(&mut self, node: NodeId, is_eager: bool) {
        if let Some(member) = self.members.iter_mut().find(|member| member.node == node) {
            member.is_eager = is_eager;
        }
    }

    fn take_body(
        &mut self,
        from: NodeId,
        (name, port): (Name, Port),
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if !self.names.is_new(name, context.node()) {
            self.set_eager(from, false);
            return Self::say(from, Word::Prune, &[], context);
        }
        context.tell(&Published { from: name.source, port }, body);
        self.missing.retain(|(missing, _)| *missing != name);
        context.cancel(&Overdue { name });
        self.set_eager(from, true);
        self.push(Kept { name, port, body: body.to_vec() }, Some(from), context);
    }

    fn take_name(&mut self, from: NodeId, name: Name, context: &mut Context<'_, Self>) {
        let is_member = self.members.iter().any(|member| member.node == from);
        let named = self.missing.iter().filter(|(_, by)| *by == from).count();
        let is_known = self.names.is_known(name, context.node());
        if is_known || !is_member || named >= self.config.named_max {
            return;
        }
        let is_awaited = self.missing.iter().any(|(missing, _)| *missing == name);
        self.missing.push((name, from));
        if !is_awaited {
            context.after(self.config.patience, &Overdue { name });
        }
    }

    fn take_graft(&mut self, from: NodeId, name: Name, context: &mut Context<'_, Self>) {
        self.set_eager(from, true);
        if let Some(Kept { port, body, .. }) = self.kept.iter().find(|kept| kept.name == name) {
            Self::say(from, Word::Body { name, port: *port }, body, context);
        }
    }
}

impl Protocol for Plumtree {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.names.begin(context.random());
    }
}

impl Serves<Publish> for Plumtree {
    fn serve(
        &mut self,
        Publish { port }: Publish,
        question: &Question<'_, Publish>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        let room = context.payload_bytes_max().saturating_sub(HEAD_BYTES_MAX + DATAGRAM_BYTES_MAX);
        if question.body.len() > room {
            return Some(Taken::TooLong);
        }
        let name = self.names.give(context.node());
        self.push(Kept { name, port, body: question.body.to_vec() }, None, context);
        Some(Taken::UnderWay)
    }
}

impl Hears<DatagramArrived> for Plumtree {
    fn hear(
        &mut self,
        DatagramArrived { from, port }: DatagramArrived,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if port != Port::TREE || from == context.node() {
            return;
        }
        match decode::<Word>(body) {
            Some((Word::Body { name, port }, body)) => {
                self.take_body(from, (name, port), body, context);
            }
            Some((Word::Have { name }, _)) => self.take_name(from, name, context),
            Some((Word::Prune, _)) => self.set_eager(from, false),
            Some((Word::Graft { name }, _)) => self.take_graft(from, name, context),
            None => {}
        }
    }
}

impl Expires<Overdue> for Plumtree {
    fn expire(&mut self, Overdue { name }: Overdue, context: &mut Context<'_, Self>) {
        let Some(first) = self.missing.iter().position(|(missing, _)| *missing == name) else {
            return;
        };
        let (_, from) = self.missing.remove(first);
        self.set_eager(from, true);
        Self::say(from, Word::Graft { name }, &[], context);
        context.after(self.config.graft_patience, &Overdue { name });
    }
}

impl Hears<MemberUp> for Plumtree {
    fn hear(&mut self, up: MemberUp, _: &[u8], _: &mut Context<'_, Self>) {
        let is_known = self.members.iter().any(|member| member.node == up.member);
        if !is_known && self.members.len() < self.config.members_max {
            self.members.push(Member { node: up.member, is_eager: true });
        }
    }
}

impl Hears<MemberDown> for Plumtree {
    fn hear(&mut self, down: MemberDown, _: &[u8], _: &mut Context<'_, Self>) {
        self.members.retain(|member| member.node != down.member);
        self.missing.retain(|(_, from)| *from != down.member);
    }
}

impl Awaits<SendDatagram> for Plumtree {
    /// What a datagram lost, a name that comes another way brings back.
    fn answered(&mut self, _: SendDatagram, _: Option<Taken>, _: &mut Context<'_, Self>) {}
}
