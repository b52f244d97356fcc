//! Reliable broadcast: what a broadcast's hops lost is found missing and repaired by neighbours.
//!
//! Sources: Trickle (RFC 6206) for when to say what one has, with the doubling interval and the
//! suppression of those who would say nothing new; the digests and repairs of bimodal multicast
//! (Birman et al., TOCS 1999); repairs are spread and suppressed as in SRM (Floyd et al., ToN 1997).
//! It stands on whichever broadcast runs, and needs none: then everything is a repair.
//!
//! Per source:
//!
//! ```text
//!                 a digest shows a later number, or a gap
//!  complete ──────────────────────────────────────────────► lacks some
//!     ▲  a repair, or the broadcast itself, brings the last one  │
//!     └──────────────────────────────────────────────────────────┘  or it is too old to be had
//! ```
//!
//! A digest names, for each source, the highest number and which of the 32 below are there. Whoever
//! has something that the sender lacks gives it, after a random wait in which nobody else did. And who
//! learns by a digest that it lacks something, and doesn't get it within a moment, asks that digest's
//! sender by a digest of its own.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Awaits, Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question, Reception,
    Serves,
};

use crate::interface::{Port, Publish, PublishReliably, Published, PublishedReliably, Taken};
use crate::oldest::drop_oldest;
use crate::trickle::Trickle;

#[cfg(test)]
mod tests;

/// How many numbers below the highest are kept track of.
const WINDOW: u32 = 32;
/// So many numbers before the first one that is heard of a source are missed.
const LOOK_BACK: u32 = 3;
/// How many bytes a digest has per source: id, session, highest, window.
const ENTRY_BYTES: usize = 18;
/// How often a neighbour is asked for what it has.
const ASKED_MAX: u8 = 6;
/// The most repairs that one digest causes.
const REPAIRS_MAX: usize = 8;
/// The bytes that a body's header, head and record take of a frame's message, with the broadcast's own.
const HEAD_BYTES_MAX: usize = 48;
const HEADER_BYTES: usize = 9;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How soon the first digest comes after the start.
    pub interval_min: Duration,
    /// How soon one comes after something new, which most have got all the same.
    pub interval_new: Duration,
    /// How rare digests become while nothing is new.
    pub interval_max: Duration,
    /// A node keeps its digest to itself if it heard so many that say the same (RFC 6206's k).
    pub enough: u32,
    /// How long a body may be on its way before it is missed.
    pub settling: Duration,
    /// How long a repair waits for somebody else's.
    pub repair_wait: Duration,
    /// The most sources that are kept track of.
    pub sources_max: usize,
    /// The most bytes of bodies that are kept to repair from.
    pub kept_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval_min: Duration::from_secs(1),
            interval_new: Duration::from_millis(3000),
            interval_max: Duration::from_secs(60),
            enough: 1,
            repair_wait: Duration::from_millis(120),
            settling: Duration::from_millis(600),
            sources_max: 64,
            kept_bytes_max: 12 * 1024,
        }
    }
}

/// Reliable broadcast.
#[derive(Debug)]
pub struct ReliableBroadcast {
    config: Config,
    /// Tells this life of the node from others.
    session: u32,
    number: u32,
    sources: Vec<Source>,
    kept: VecDeque<Kept>,
    repairs: Vec<(Key, Instant)>,
    missing: Option<Missing>,
    trickle: Trickle,
    /// The source that digests begin with, so that all have their turn.
    turn: usize,
    repaired: u64,
}

/// A body in the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    source: NodeId,
    session: u32,
    number: u32,
}

/// Something that a neighbour has and this node lacks, which it is asked for.
#[derive(Clone, Copy, Debug)]
struct Missing {
    key: Key,
    neighbour: NodeId,
    /// How often it was asked.
    asked: u8,
}

/// The bodies of one life of a node.
#[derive(Clone, Copy, Debug)]
struct Source {
    id: NodeId,
    session: u32,
    highest: u32,
    /// Bit n: number `highest - n` came.
    window: u32,
    heard: Instant,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    port: Port,
    body: Vec<u8>,
    came: Instant,
}

/// The sender's bodies: [`ENTRY_BYTES`] per source follow.
#[derive(Debug, Serialize, Deserialize)]
struct Digest {
    /// The node that is to give the missing ones; `None` if anybody may.
    asked: Option<NodeId>,
}

/// A body that somebody lacks follows.
#[derive(Debug, Serialize, Deserialize)]
struct Repair {
    key: Key,
    port: Port,
}

/// It is time for a digest, unless enough say the same.
#[derive(Debug, Serialize, Deserialize)]
struct Say;
/// A Trickle interval is over.
#[derive(Debug, Serialize, Deserialize)]
struct IntervalOver;
/// A missing body has had its time to come.
#[derive(Debug, Serialize, Deserialize)]
struct Ask;
/// Repairs have waited.
#[derive(Debug, Serialize, Deserialize)]
struct Mend;

tenure_mesh::protocol! {
    ReliableBroadcast = 9, "reliable broadcast";
    messages { Digest = 1, Repair = 2 }
    carries { Repair }
    timers { Say = 1, IntervalOver = 2, Mend = 3, Ask = 4 }
    serves { PublishReliably }
    asks { Publish }
    hears { Published }
    tells { PublishedReliably }
}

impl ReliableBroadcast {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            session: 0,
            number: 0,
            sources: Vec::new(),
            kept: VecDeque::new(),
            repairs: Vec::new(),
            missing: None,
            trickle: Trickle::new(config.interval_min, config.interval_max, config.enough),
            turn: 0,
            repaired: 0,
        }
    }

    /// How many bodies were given to those who lacked them.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Takes a body that came by whatever way; tells it if it is new.
    fn take(&mut self, key: Key, port: Port, body: &[u8], context: &mut Context<'_, Self>) {
        self.repairs.retain(|(repair, _)| *repair != key);
        if !self.note(key, context.now()) {
            return;
        }
        if key.source != context.node() {
            context.tell(&PublishedReliably { from: key.source, port }, body);
        }
        let came = context.now();
        self.kept.push_back(Kept { key, port, body: body.to_vec(), came });
        while self.kept.iter().map(|it| it.body.len() + 32).sum::<usize>()
            > self.config.kept_bytes_max
        {
            self.kept.pop_front();
        }
        // Those beyond may lack it.
        self.expect_digests(context);
    }

    /// There is something that not everybody has: digests come soon again.
    fn expect_digests(&mut self, context: &mut Context<'_, Self>) {
        self.trickle.begin_within(self.config.interval_new, (&Say, &IntervalOver), context);
    }

    /// Notes that a body came; `false` if it had come, or can't be told from one that had.
    fn note(&mut self, key: Key, now: Instant) -> bool {
        let known = |it: &&mut Source| it.id == key.source && it.session == key.session;
        if let Some(source) = self.sources.iter_mut().find(known) {
            source.heard = now;
            return source.note(key.number);
        }
        drop_oldest(&mut self.sources, self.config.sources_max, |it| it.heard);
        let Key { source: id, session, number } = key;
        // Bodies that were sent long before this node first heard of the source aren't missed.
        let missed =
            (1..=LOOK_BACK).filter(|back| *back < number).map(|back| 1 << back).sum::<u32>();
        self.sources.push(Source { id, session, highest: number, window: !missed, heard: now });
        true
    }

    fn digest(&mut self, room: usize) -> Vec<u8> {
        let count = self.sources.len().min(room / ENTRY_BYTES);
        let mut body = Vec::with_capacity(count * ENTRY_BYTES);
        for at in 0..count {
            let source = &self.sources[(self.turn + at) % self.sources.len()];
            body.extend_from_slice(&source.id.to_bytes());
            body.extend_from_slice(&source.session.to_le_bytes());
            body.extend_from_slice(&source.highest.to_le_bytes());
            body.extend_from_slice(&source.window.to_le_bytes());
        }
        if count < self.sources.len() {
            self.turn = (self.turn + count) % self.sources.len();
        }
        body
    }

    /// Plans to give what `theirs` lacks, and says whether it lacks anything.
    fn plan_repairs(&mut self, theirs: &[Source], context: &mut Context<'_, Self>) -> bool {
        let (mut lacks, now) = (false, context.now());
        let settling = self.config.settling;
        for kept in self.kept.iter().filter(|kept| now.since(kept.came) >= settling) {
            let key = kept.key;
            let same = |it: &&Source| it.id == key.source && it.session == key.session;
            let lacking = match theirs.iter().find(same) {
                Some(source) => source.lacks(key.number),
                // A digest that doesn't list a source at all may just have no room for it.
                None => theirs.len() < room_for(context) / ENTRY_BYTES,
            };
            if !lacking {
                continue;
            }
            lacks = true;
            let planned = self.repairs.iter().any(|(repair, _)| *repair == key);
            if !planned && self.repairs.len() < REPAIRS_MAX {
                let wait = context.random().below_span(self.config.repair_wait);
                self.repairs.push((key, context.now() + wait));
            }
        }
        self.arm_mend(context);
        lacks
    }

    fn arm_mend(&mut self, context: &mut Context<'_, Self>) {
        if let Some(first) = self.repairs.iter().map(|(_, at)| *at).min() {
            context.after(first.since(context.now()), &Mend);
        }
    }

    /// Something that isn't here and that `theirs` shows to be had.
    fn lacking_of(&self, theirs: &[Source]) -> Option<Key> {
        theirs.iter().find_map(|their| {
            let same = |it: &&Source| it.id == their.id && it.session == their.session;
            let Some(ours) = self.sources.iter().find(same) else {
                let has_room = self.sources.len() < self.config.sources_max;
                return has_room.then(|| their.key(their.highest));
            };
            let had = (0..WINDOW).filter(|back| their.window >> back & 1 == 1);
            let mut had = had.filter_map(|back| their.highest.checked_sub(back));
            had.find(|number| ours.lacks(*number)).map(|number| their.key(number))
        })
    }

    /// Whether a body hasn't come yet.
    fn still_lacks(&self, key: Key) -> bool {
        let same = |it: &&Source| it.id == key.source && it.session == key.session;
        self.sources.iter().find(same).is_none_or(|source| source.lacks(key.number))
    }

    fn say(&mut self, asked: Option<NodeId>, context: &mut Context<'_, Self>) {
        let body = self.digest(room_for(context));
        context.transmit(&Digest { asked }, Outgoing { body: &body, ..Outgoing::default() });
    }
}

impl Source {
    fn key(&self, number: u32) -> Key {
        Key { source: self.id, session: self.session, number }
    }

    fn note(&mut self, number: u32) -> bool {
        match number.checked_sub(self.highest) {
            Some(0) => false,
            Some(ahead) => {
                self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = number;
                true
            }
            None => {
                let back = self.highest - number;
                let new = back < WINDOW && self.window >> back & 1 == 0;
                if new {
                    self.window |= 1 << back;
                }
                new
            }
        }
    }

    /// Whether `number` hasn't come and isn't too old.
    fn lacks(&self, number: u32) -> bool {
        match self.highest.checked_sub(number) {
            None => true,
            Some(back) => back < WINDOW && self.window >> back & 1 == 0,
        }
    }

    fn parse(bytes: &[u8; ENTRY_BYTES], heard: Instant) -> Self {
        let [i0, i1, i2, i3, i4, i5, s0, s1, s2, s3, h0, h1, h2, h3, w0, w1, w2, w3] = *bytes;
        Self {
            id: NodeId::from_bytes([i0, i1, i2, i3, i4, i5]),
            session: u32::from_le_bytes([s0, s1, s2, s3]),
            highest: u32::from_le_bytes([h0, h1, h2, h3]),
            window: u32::from_le_bytes([w0, w1, w2, w3]),
            heard,
        }
    }
}

fn room_for(context: &Context<'_, ReliableBroadcast>) -> usize {
    context.payload_bytes_max().saturating_sub(8)
}

impl Protocol for ReliableBroadcast {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.session = context.random().number() as u32;
        self.trickle.begin_anew((&Say, &IntervalOver), context);
    }
}

impl Serves<PublishReliably> for ReliableBroadcast {
    fn serve(
        &mut self,
        PublishReliably { port }: PublishReliably,
        question: &Question<'_, PublishReliably>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        if question.body.len() + HEAD_BYTES_MAX > context.payload_bytes_max() {
            return Some(Taken::TooLong);
        }
        self.number += 1;
        let key = Key { source: context.node(), session: self.session, number: self.number };
        self.take(key, port, question.body, context);
        let mut body = Vec::with_capacity(HEADER_BYTES + question.body.len());
        body.push(port.0);
        body.extend_from_slice(&key.session.to_le_bytes());
        body.extend_from_slice(&key.number.to_le_bytes());
        body.extend_from_slice(question.body);
        context.ask(&Publish { port: Port::REPAIRED }, &body);
        Some(Taken::UnderWay)
    }
}

/// A body that the broadcast doesn't take is repaired like one that it loses.
impl Awaits<Publish> for ReliableBroadcast {}

impl Hears<Published> for ReliableBroadcast {
    fn hear(
        &mut self,
        Published { from, port }: Published,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if port != Port::REPAIRED {
            return;
        }
        let Some(([port, s0, s1, s2, s3, n0, n1, n2, n3], body)) = body.split_first_chunk() else {
            return;
        };
        let session = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
        let number = u32::from_le_bytes([*n0, *n1, *n2, *n3]);
        self.take(Key { source: from, session, number }, Port(*port), body, context);
    }
}

impl Handles<Repair> for ReliableBroadcast {
    fn handle(
        &mut self,
        Repair { key, port }: Repair,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        if key.source == context.node() {
            return;
        }
        self.take(key, port, reception.body, context);
    }
}

impl Handles<Digest> for ReliableBroadcast {
    fn handle(
        &mut self,
        Digest { asked }: Digest,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (entries, _) = reception.body.as_chunks::<ENTRY_BYTES>();
        let theirs: Vec<_> =
            entries.iter().map(|entry| Source::parse(entry, context.now())).collect();
        let is_asked = asked.is_none_or(|asked| asked == context.node());
        let they_lack = is_asked && self.plan_repairs(&theirs, context);
        let lacking = self.lacking_of(&theirs);
        if let (Some(key), None) = (lacking, self.missing) {
            // It may be on its way.
            self.missing = Some(Missing { key, neighbour: reception.from, asked: 0 });
            context.after_about(self.config.settling, &Ask);
        }
        if they_lack {
            self.expect_digests(context);
        } else if lacking.is_none() {
            self.trickle.heard_the_same();
        }
    }
}

impl Expires<Say> for ReliableBroadcast {
    fn expire(&mut self, _: Say, context: &mut Context<'_, Self>) {
        if self.trickle.has_something_to_say() {
            self.say(None, context);
        }
    }
}

impl Expires<Ask> for ReliableBroadcast {
    fn expire(&mut self, _: Ask, context: &mut Context<'_, Self>) {
        let missing = self.missing.take().filter(|missing| self.still_lacks(missing.key));
        let Some(Missing { key, neighbour, asked }) = missing else { return };
        self.say(Some(neighbour), context);
        if asked + 1 < ASKED_MAX {
            // The question may be lost, or the answer.
            self.missing = Some(Missing { key, neighbour, asked: asked + 1 });
            context.after_about(self.config.settling * (1 + u32::from(asked)), &Ask);
        }
    }
}

impl Expires<IntervalOver> for ReliableBroadcast {
    fn expire(&mut self, _: IntervalOver, context: &mut Context<'_, Self>) {
        self.trickle.go_on((&Say, &IntervalOver), context);
    }
}

impl Expires<Mend> for ReliableBroadcast {
    fn expire(&mut self, _: Mend, context: &mut Context<'_, Self>) {
        let now = context.now();
        let Self { repairs, kept, repaired, .. } = self;
        repairs.retain(|(key, at)| {
            if *at > now {
                return true;
            }
            if let Some(kept) = kept.iter().find(|it| it.key == *key) {
                *repaired += 1;
                let repair = Repair { key: *key, port: kept.port };
                context.transmit(&repair, Outgoing { body: &kept.body, ..Outgoing::default() });
            }
            false
        });
        self.arm_mend(context);
    }
}
