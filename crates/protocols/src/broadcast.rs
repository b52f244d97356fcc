//! The common part of broadcasts over many hops: each node passes a body on at most once, after a random
//! wait in which it may find that it needn't.
//!
//! Source: Ni, Tseng, Chen and Sheu, "The broadcast storm problem in a mobile ad hoc network"
//! (MobiCom 1999). What a node makes of the copies it hears while it waits is a [`Policy`]:
//! [flooding](crate::flooding), [counters](crate::counter_broadcast),
//! [distance](crate::distance_broadcast), [coverage](crate::coverage_broadcast).
//!
//! Per body:
//!
//! ```text
//!            first copy                    time is over
//!  unknown ─────────────► waits ──────────────────────────────► passed on: known
//!                         │  ▲ │
//!                   copy: └──┘ │ the policy finds it redundant
//!                     counted  └──────────────────────────────► known
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question, Random, Reception,
    Serves,
};

use crate::interface::{LinkChanged, LinkDown, LinkUp, Port, Publish, Published, Taken};

#[cfg(test)]
mod tests;

/// How many hops a body makes at most.
const HOPS_MAX: u8 = 64;
/// A neighbour is left to others if so many come before this node: one of them may have missed the body.
const OTHERS_MIN: usize = 2;
/// So many nodes at most are known to have a body.
const COVERED_MAX: usize = 256;
/// Bytes of a frame's message that a copy's head and its record take.
const HEAD_BYTES_MAX: usize = 16;

/// When a node that heard a body passes it on.
pub trait Policy: Send + 'static {
    /// The number of the broadcast that follows this policy.
    const NUMBER: u8;
    /// Its name.
    const NAME: &'static str;

    /// How long to wait at most.
    fn wait_max(&self) -> Duration;

    /// If copies say whom their senders reach: from which quality of a link on, of 255, its neighbour
    /// is reached.
    fn reaches_from(&self) -> Option<u8> {
        None
    }

    /// Whether passing it on would reach nobody new, as far as can be told from what was heard.
    fn is_redundant(&self, heard: &Heard) -> bool;
}

/// The copies of a body that were heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// How many there were.
    pub copies: u32,
    /// How strong the strongest was, in dBm, if the link knows.
    pub strongest_dbm: Option<i8>,
    /// The neighbours that none of their senders reaches, if copies say so.
    pub left: Vec<Mark>,
}

/// A mark of a node where two that are mistaken for each other do little harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark([u8; 2]);

impl Mark {
    /// How many bytes it takes.
    const BYTES: usize = 2;

    /// The mark of `node`.
    pub fn of(node: NodeId) -> Self {
        let [a, b, c, d, e, f] = node.to_bytes();
        Self([a ^ c ^ e, b ^ d ^ f])
    }
}

/// Limits of what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many bodies are known again.
    pub remembered: usize,
    /// The most bytes of bodies that wait, and of what is known of them.
    pub waiting_bytes_max: usize,
    /// The most neighbours whose links are remembered.
    pub neighbours_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { remembered: 256, waiting_bytes_max: 8 * 1024, neighbours_max: 64 }
    }
}

/// A broadcast that follows the policy `P`.
#[derive(Debug)]
pub struct Broadcast<P> {
    policy: P,
    limits: Limits,
    names: Names,
    /// Neighbours whose links are up, and which share of frames arrives there, of 255.
    links: Vec<(NodeId, u8)>,
    /// The nodes that neighbours reach, by their last copies.
    reaches: Vec<(Mark, Vec<Mark>)>,
    waiting: Vec<Waiting>,
    armed: Option<Instant>,
    passed_on: u64,
}

/// One body in the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    pub(crate) source: NodeId,
    pub(crate) number: u32,
}

/// Names that were given, and those that are known again.
#[derive(Debug)]
pub(crate) struct Names {
    number: u32,
    known: VecDeque<Name>,
    remembered: usize,
}

impl Names {
    /// No names, of which `remembered` are known again.
    pub(crate) fn new(remembered: usize) -> Self {
        Self { number: 0, known: VecDeque::new(), remembered }
    }

    /// Another life begins at another number, so that its bodies aren't taken for known ones.
    pub(crate) fn begin(&mut self, random: &mut Random) {
        self.number = random.number() as u32;
    }

    /// The name of the next body that `source`, this node, sends.
    pub(crate) fn give(&mut self, source: NodeId) -> Name {
        self.number = self.number.wrapping_add(1);
        let name = Name { source, number: self.number };
        self.know(name);
        name
    }

    /// Whether `name` is heard for the first time on `node`, where it is known from now on.
    pub(crate) fn is_new(&mut self, name: Name, node: NodeId) -> bool {
        let is_new = !self.is_known(name, node);
        if is_new {
            self.know(name);
        }
        is_new
    }

    /// Whether `name` was heard before on `node`.
    pub(crate) fn is_known(&self, name: Name, node: NodeId) -> bool {
        name.source == node || self.known.contains(&name)
    }

    fn know(&mut self, name: Name) {
        if self.known.len() >= self.remembered {
            self.known.pop_front();
        }
        self.known.push_back(name);
    }
}

/// Whether a body to publish fits into a frame.
pub(crate) fn fits<P: Protocol>(body: &[u8], context: &Context<'_, P>) -> bool {
    body.len() + HEAD_BYTES_MAX <= context.payload_bytes_max()
}

/// A body, which follows, on one hop.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Copied {
    name: Name,
    port: Port,
    hops_left: u8,
    /// So many marks of nodes that the sender reaches stand before the body.
    reached: u8,
}

#[derive(Debug)]
struct Waiting {
    copy: Copied,
    /// The nodes that have it, as far as copies say.
    covered: Vec<Mark>,
    body: Vec<u8>,
    heard: Heard,
    due: Instant,
}

impl Waiting {
    /// Notes that `from` has the body, and whom it reaches.
    fn cover(&mut self, from: Mark, reached: &[Mark]) {
        for mark in [from].iter().chain(reached) {
            if self.covered.len() < COVERED_MAX && !self.covered.contains(mark) {
                self.covered.push(*mark);
            }
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.body.len() + self.covered.len() * Mark::BYTES
    }
}

/// A wait is over.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Relay;

tenure_mesh::protocol! {
    [P: Policy] Broadcast<P> = P::NUMBER, P::NAME;
    messages { Copied = 1 }
    carries { Copied }
    timers { Relay = 1 }
    serves { Publish }
    hears { LinkUp, LinkChanged, LinkDown }
    tells { Published }
}

impl<P: Policy> Broadcast<P> {
    /// A broadcast that follows `policy`.
    pub fn new(policy: P, limits: Limits) -> Self {
        let names = Names::new(limits.remembered);
        let (links, reaches, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Self { policy, limits, names, links, reaches, waiting, armed: None, passed_on: 0 }
    }

    /// How many bodies of others were passed on.
    pub fn passed_on(&self) -> u64 {
        self.passed_on
    }

    /// The neighbours that this node reaches, if copies are to say so.
    fn reached(&self) -> Vec<Mark> {
        let Some(quality_min) = self.policy.reaches_from() else { return Vec::new() };
        let reached = self.links.iter().filter(|(_, quality)| *quality >= quality_min);
        reached.map(|(neighbour, _)| Mark::of(*neighbour)).collect()
    }

    fn send(&self, mut copy: Copied, body: &[u8], context: &mut Context<'_, Self>) {
        let mut reached = self.reached();
        let room = context.payload_bytes_max().saturating_sub(HEAD_BYTES_MAX + body.len());
        reached.truncate(room / Mark::BYTES);
        reached.truncate(u8::MAX.into());
        copy.reached = reached.len() as u8;
        let mut bytes: Vec<u8> = reached.iter().flat_map(|Mark(mark)| *mark).collect();
        bytes.extend_from_slice(body);
        context.transmit(&copy, Outgoing { body: &bytes, ..Outgoing::default() });
    }

    /// How long a body waits: the longer the fewer it would still reach.
    fn wait(&self, heard: &Heard, context: &mut Context<'_, Self>) -> Duration {
        let wait_max = self.policy.wait_max();
        let reached = self.reached().len() as u32;
        if reached == 0 {
            return context.random().below_span(wait_max);
        }
        let covered = reached.saturating_sub(heard.left.len() as u32);
        wait_max * covered / reached * 3 / 4 + context.random().below_span(wait_max / 4)
    }

    /// Notes whom a neighbour reaches.
    fn note_reach(&mut self, neighbour: Mark, reached: &[Mark]) {
        if self.policy.reaches_from().is_none() {
            return;
        }
        let reached = reached.iter().take(self.limits.neighbours_max).copied().collect();
        match self.reaches.iter_mut().find(|(known, _)| *known == neighbour) {
            Some((_, known)) => *known = reached,
            None => {
                if self.reaches.len() >= self.limits.neighbours_max {
                    self.reaches.remove(0);
                }
                self.reaches.push((neighbour, reached));
            }
        }
    }

    /// Whether others who have the body, and may be out of this node's hearing, are to pass it on to
    /// `left`: of those who reach it, the first in an order that all of them know.
    fn is_others_to_reach(&self, left: Mark, waiting: &Waiting, own: Mark) -> bool {
        let Some((_, reach)) = self.reaches.iter().find(|(known, _)| *known == left) else {
            return false;
        };
        let source = Mark::of(waiting.copy.name.source);
        let rank = |mark: &Mark| [mark.0[0] ^ source.0[0], mark.0[1] ^ source.0[1]];
        let has = |mark: &&Mark| waiting.covered.contains(mark);
        reach.iter().filter(has).filter(|mark| rank(mark) < rank(&own)).count() >= OTHERS_MIN
    }

    fn note_link(&mut self, neighbour: NodeId, quality: u8) {
        let is_full = self.links.len() >= self.limits.neighbours_max;
        match self.links.iter_mut().find(|(known, _)| *known == neighbour) {
            Some((_, known)) => *known = quality,
            None if is_full => {}
            None => self.links.push((neighbour, quality)),
        }
    }

    fn arm(&mut self, context: &mut Context<'_, Self>) {
        let Some(first) = self.waiting.iter().map(|waiting| waiting.due).min() else { return };
        if self.armed.is_none_or(|armed| first < armed) {
            self.armed = Some(first);
            context.after(first.since(context.now()), &Relay);
        }
    }
}

impl<P: Policy> Protocol for Broadcast<P> {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.names.begin(context.random());
    }
}

impl<P: Policy> Serves<Publish> for Broadcast<P> {
    fn serve(
        &mut self,
        Publish { port }: Publish,
        question: &Question<'_, Publish>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        if !fits(question.body, context) {
            return Some(Taken::TooLong);
        }
        let name = self.names.give(context.node());
        self.send(Copied { name, port, hops_left: HOPS_MAX, reached: 0 }, question.body, context);
        Some(Taken::UnderWay)
    }
}

impl<P: Policy> Handles<Copied> for Broadcast<P> {
    fn handle(&mut self, copy: Copied, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let Copied { name, port, hops_left, reached } = copy;
        let marks_bytes = usize::from(reached) * Mark::BYTES;
        let Some((marks, body)) = reception.body.split_at_checked(marks_bytes) else { return };
        let (marks, _) = marks.as_chunks();
        let marks: Vec<_> = marks.iter().map(|mark| Mark(*mark)).collect();
        let from = Mark::of(reception.from);
        self.note_reach(from, &marks);
        let is_left = |mark: &Mark| *mark != from && !marks.contains(mark);
        if let Some(waiting) = self.waiting.iter_mut().find(|it| it.copy.name == name) {
            waiting.heard.copies += 1;
            waiting.heard.strongest_dbm = waiting.heard.strongest_dbm.max(reception.signal_dbm);
            waiting.heard.left.retain(is_left);
            waiting.cover(from, &marks);
            return;
        }
        if !self.names.is_new(name, context.node()) {
            return;
        }
        context.tell(&Published { from: name.source, port }, body);
        let held: usize = self.waiting.iter().map(Waiting::bytes).sum();
        if hops_left == 0 || held + body.len() > self.limits.waiting_bytes_max {
            return;
        }
        let copy = Copied { hops_left: hops_left.min(HOPS_MAX) - 1, ..copy };
        let mut left = self.reached();
        left.retain(|mark| is_left(mark) && *mark != Mark::of(name.source));
        let heard = Heard { copies: 1, strongest_dbm: reception.signal_dbm, left };
        let due = context.now() + self.wait(&heard, context);
        let covered = Vec::from([Mark::of(name.source)]);
        let mut waiting = Waiting { copy, covered, body: body.to_vec(), heard, due };
        waiting.cover(from, &marks);
        self.waiting.push(waiting);
        self.arm(context);
    }
}

impl<P: Policy> Expires<Relay> for Broadcast<P> {
    fn expire(&mut self, _: Relay, context: &mut Context<'_, Self>) {
        self.armed = None;
        let now = context.now();
        let due = self.waiting.extract_if(.., |it| it.due <= now).collect::<Vec<_>>();
        let own = Mark::of(context.node());
        for mut waiting in due {
            let mut left = core::mem::take(&mut waiting.heard.left);
            left.retain(|mark| !self.is_others_to_reach(*mark, &waiting, own));
            waiting.heard.left = left;
            if !self.policy.is_redundant(&waiting.heard) {
                self.passed_on += 1;
                self.send(waiting.copy, &waiting.body, context);
            }
        }
        self.arm(context);
    }
}

impl<P: Policy> Hears<LinkUp> for Broadcast<P> {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        self.note_link(up.neighbour, up.quality.from_us);
    }
}

impl<P: Policy> Hears<LinkChanged> for Broadcast<P> {
    fn hear(&mut self, changed: LinkChanged, _: &[u8], _: &mut Context<'_, Self>) {
        self.note_link(changed.neighbour, changed.quality.from_us);
    }
}

impl<P: Policy> Hears<LinkDown> for Broadcast<P> {
    fn hear(&mut self, down: LinkDown, _: &[u8], _: &mut Context<'_, Self>) {
        self.links.retain(|(neighbour, _)| *neighbour != down.neighbour);
        self.reaches.retain(|(mark, _)| *mark != Mark::of(down.neighbour));
    }
}
