//! Records that are looked up by name, where a mesh has more devices than one of them has room for.
//!
//! By rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 6(1),
//! 1998) every node ranks the nodes that its router knows by a hash of the name and the node. The first [`KEEPERS`]
//! keep the record of the device with that name, and are asked for it, one after the other. B.A.T.M.A.N.'s
//! distributed ARP table places addresses on three nodes so.
//!
//! ```text
//!  device                      keepers of its name                      caller
//!     │ Keep, and its record          │                                    │
//!     ├──────────────────────────────►│◄───────────────────────── Sought ──┤
//!     │ again when it is renewed,     ├─ the record, or Absent ───────────►│ takes it, or asks the next keeper
//!     │ or another node is a keeper   │                                    │
//! ```
//!
//! Invariants:
//! - A record counts as any other: its owner and its device signed it, so a keeper can withhold it, and not forge it.
//! - A node keeps records for others that rank it among their keepers, by what it knows itself.
//! - Words of one source and of all are answered within a [`Toll`]; a word is passed on once at most.
//! - A name is asked for [`PATIENCE`] long, by one word in [`ANSWER_WITHIN`] at most, and [`SOUGHT_MAX`] names at a time.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::sha256;
use tenure_hal::Instant;
use tenure_mesh::{NodeId, decode, encode};
use tenure_protocols::babel::Babel;
use tenure_protocols::babel::table::Table;
use tenure_protocols::interface::{Port, RecordKey, SendLarge};
use tenure_protocols::replicated_records::Records;
use tenure_wire::Name;

use crate::membership::{MeshStack, Replica, claims_of, node_of};
use crate::toll::{Limit, Toll};

#[cfg(test)]
mod tests;

/// How many nodes keep a record.
const KEEPERS: usize = 3;
/// Up to so many nodes every device has room for all records, so that none has to be kept for others.
const NODES_WITH_ROOM: usize = 8;
/// How often a device looks whether its record has to be given to a keeper. A node is one once it was found twice.
const PLACE_EVERY: Duration = Duration::from_secs(4);
/// For each node of the mesh, a device waits up to so much longer, as its id says: devices that started at the same time
/// share the air.
const PLACE_LATER_MS_PER_NODE: u64 = 40;
/// A mesh that hasn't grown for so long is steady: in one that grows, what goes far has to look for its way.
const STEADY_AFTER: Duration = Duration::from_secs(2);
/// How long a record waits for that.
const UNSTEADY_MAX: Duration = Duration::from_secs(20);
/// How long before its end a look-up waits for that no more.
const ASK_AT_LAST: Duration = Duration::from_millis(1600);
/// The shortest time between two versions for the same keeper.
const PLACE_AGAIN: Duration = Duration::from_secs(10);
/// The most keepers that are remembered to have the record.
const PLACED_MAX: usize = 2 * KEEPERS;
/// How long a name is asked for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a keeper has time before the next one is asked, and the pause when all were.
const ANSWER_WITHIN: Duration = Duration::from_millis(800);
const ROUND_PAUSE: Duration = Duration::from_millis(1500);
/// The most names that are asked for at a time.
const SOUGHT_MAX: usize = 16;
/// How long a name that no keeper knew isn't asked for again, and how many are remembered.
const ABSENT_LASTS: Duration = Duration::from_secs(3);
const ABSENT_MAX: usize = 16;
/// The words of one source that are answered, and those of all: 2 a second, and 12.
const WORDS_OF_ONE: Limit = Limit { at_once: 8, one_each: Duration::from_millis(500) };
const WORDS_OF_ALL: Limit = Limit { at_once: 48, one_each: Duration::from_micros(83_334) };
/// The most sources whose words are counted one by one.
const SOURCES_MAX: usize = 16;

/// The version of the record of a name: the number of the enrolment that gave the name to a device, and the record's own.
pub(crate) type Version = (u64, u64);

/// The start of a hash of a device's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark of a name.
    pub(crate) fn of(name: &Name) -> Self {
        let [a, b, c, d, e, f, g, h, ..] =
            sha256(&[b"tenure mesh name", name.as_str().as_bytes()]).0;
        Self(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }

    /// The rank of a node among the keepers of a name: the highest are its keepers. The mixing is SplitMix64's
    /// (Steele, Lea and Flood, OOPSLA 2014).
    fn weight(self, node: NodeId) -> u64 {
        let mut mixed = self.0 ^ node.number().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The first `count` of `nodes` for this name, the first one first.
    fn first(self, nodes: impl Iterator<Item = NodeId>, count: usize) -> Vec<NodeId> {
        let mut first: Vec<(u64, NodeId)> = Vec::with_capacity(count + 1);
        for node in nodes {
            let weight = self.weight(node);
            let at = first.iter().position(|(other, _)| *other < weight).unwrap_or(first.len());
            if at < count {
                first.insert(at, (weight, node));
                first.truncate(count);
            }
        }
        first.into_iter().map(|(_, node)| node).collect()
    }
}

/// The messages of devices to each other about records that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Word {
    /// Keep the record that follows, its key first. A node that is no keeper of it passes it on so often, to the keeper
    /// of that `turn`.
    Keep { passes: u8, turn: u8 },
    /// Send `asker` the record of that name.
    Sought(Question),
    /// The record of that name isn't here, nor a newer version than the asker has.
    Absent { mark: Mark },
}

/// A question for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    mark: Mark,
    /// The version that the asker has; zeros if none.
    newer_than: Version,
    asker: NodeId,
    /// How often a node that is no keeper passes the question on, and to which of the keepers.
    passes: u8,
    turn: u8,
}

/// A keeper that was given the record of this device.
#[derive(Clone, Copy, Debug)]
struct Placed {
    keeper: NodeId,
    /// In which of its lives: a later one has no memory of it.
    life: u32,
    version: Version,
    at: Instant,
}

/// A name that is asked for.
#[derive(Clone, Copy, Debug)]
struct Sought {
    mark: Mark,
    newer_than: Version,
    next_at: Instant,
    until: Instant,
    /// How many keepers were asked, and the last one.
    asked: u8,
    last: Option<NodeId>,
    /// How many said that they have nothing.
    absent: u8,
}

/// A device's part in looking records up.
pub(crate) struct Lookup {
    placed: Vec<Placed>,
    /// The keepers of the own record when it was last looked.
    ranked: Vec<NodeId>,
    /// The most nodes that there were so far, and since when.
    nodes: usize,
    grown_at: Instant,
    /// Since when the record waits for the mesh to stop growing.
    unsteady_since: Option<Instant>,
    place_at: Instant,
    sought: Vec<Sought>,
    /// Names that nobody knew, and until when they aren't asked for.
    absent: Vec<(Mark, Instant)>,
    /// The words of others that are answered, of each source and of all.
    fence: Toll<NodeId>,
    /// Each look-up begins with another keeper, so that one who withholds a record isn't always the first.
    turn: u8,
}

impl Lookup {
    /// That of a device which comes into a mesh.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            placed: Vec::new(),
            ranked: Vec::new(),
            nodes: 0,
            grown_at: now,
            unsteady_since: None,
            place_at: now + PLACE_EVERY,
            sought: Vec::new(),
            absent: Vec::new(),
            fence: fence(now),
            turn: 0,
        }
    }

    /// Asks for the record of the name with that mark, in a version newer than is known.
    pub(crate) fn seek(&mut self, now: Instant, mark: Mark, newer_than: Option<Version>) {
        let until = now + PATIENCE;
        if let Some(sought) = self.sought.iter_mut().find(|sought| sought.mark == mark) {
            sought.until = until;
            return;
        }
        // More names than that wait for a record to come by itself.
        if self.sought.len() >= SOUGHT_MAX {
            return;
        }
        let paused = self.absent.iter().find(|(absent, _)| *absent == mark);
        let next_at = paused.map_or(now, |(_, until)| *until).max(now);
        let newer_than = newer_than.unwrap_or_default();
        self.sought.push(Sought {
            mark,
            newer_than,
            next_at,
            until,
            asked: 0,
            last: None,
            absent: 0,
        });
    }

    /// Whether no keeper knew a newer record of that name a moment ago.
    pub(crate) fn was_absent(&self, now: Instant, mark: Mark) -> bool {
        self.absent.iter().any(|(absent, until)| *absent == mark && *until > now)
    }

    /// A record of that name has come.
    pub(crate) fn found(&mut self, mark: Mark) {
        self.sought.retain(|sought| sought.mark != mark);
        self.absent.retain(|(absent, _)| *absent != mark);
    }

    /// The next name of which this device has the newest record that keepers know of.
    pub(crate) fn concluded(&mut self, now: Instant) -> Option<Mark> {
        let is_over = |sought: &Sought| {
            sought.newer_than > Version::default() && usize::from(sought.absent) >= KEEPERS
        };
        let at = self.sought.iter().position(is_over)?;
        let Sought { mark, .. } = self.sought.swap_remove(at);
        self.remember_absent(now, mark);
        Some(mark)
    }

    /// Gives the own record to its keepers, and asks for those that are sought. Tells the table of records how large
    /// the mesh is: in one that has more than a few nodes, and grows, it isn't known yet whether they all have room.
    pub(crate) fn attend(&mut self, stack: &mut MeshStack, now: Instant) {
        let nodes = nodes_of(stack);
        if nodes > self.nodes {
            (self.nodes, self.grown_at) = (nodes, now);
        }
        let may_have_room = nodes <= NODES_WITH_ROOM || now >= self.grown_at + STEADY_AFTER;
        stack.act::<Replica, _>(now, |replica, context| {
            if replica.records_mut().tell_nodes(nodes, may_have_room) {
                replica.spread(context);
            }
        });
        if self.place_at <= now {
            self.place_at = now + PLACE_EVERY;
            if cfg!(feature = "crowds") {
                let later_ms = stack.node().number() % (1 + PLACE_LATER_MS_PER_NODE * nodes as u64);
                self.place_at = self.place_at + Duration::from_millis(later_ms);
            }
            self.place(stack, now);
        }
        for at in 0..self.sought.len() {
            if self.sought[at].next_at <= now && now < self.sought[at].until {
                self.ask(stack, now, at);
            }
        }
        while let Some(at) = self.sought.iter().position(|sought| sought.until <= now) {
            let Sought { mark, .. } = self.sought.swap_remove(at);
            self.remember_absent(now, mark);
        }
    }

    /// When there is something to do by itself.
    pub(crate) fn wakes_at(&self) -> Instant {
        let sought = self.sought.iter().map(|sought| sought.next_at.min(sought.until));
        sought.fold(self.place_at, Instant::min)
    }

    /// Takes another device's word.
    pub(crate) fn hear(&mut self, stack: &mut MeshStack, now: Instant, from: NodeId, word: &[u8]) {
        match decode::<Word>(word) {
            Some((Word::Absent { mark }, [])) => self.hear_absent(now, from, mark),
            Some((Word::Sought(question), [])) if self.fence.pay(now, &from, 1).is_ok() => {
                answer(stack, now, from, question);
            }
            Some((Word::Keep { passes, turn }, record))
                if self.fence.pay(now, &from, 1).is_ok() =>
            {
                keep(stack, now, (passes, turn), record);
            }
            // A word of another version of this, or a source that says too much.
            _ => {}
        }
    }

    fn hear_absent(&mut self, now: Instant, from: NodeId, mark: Mark) {
        let is_meant = |it: &&mut Sought| it.mark == mark && it.last == Some(from);
        if let Some(sought) = self.sought.iter_mut().find(is_meant) {
            sought.last = None;
            sought.absent = sought.absent.saturating_add(1);
            if usize::from(sought.asked) % KEEPERS != 0 {
                sought.next_at = now;
            }
        }
    }

    fn remember_absent(&mut self, now: Instant, mark: Mark) {
        self.absent.retain(|(absent, until)| *absent != mark && *until > now);
        if self.absent.len() >= ABSENT_MAX {
            self.absent.remove(0);
        }
        self.absent.push((mark, now + ABSENT_LASTS));
    }

    fn place(&mut self, stack: &mut MeshStack, now: Instant) {
        let own = stack.node();
        if nodes_of(stack) <= NODES_WITH_ROOM {
            return self.ranked.clear();
        }
        let replica = stack.protocol::<Replica>();
        // A device without a name has no record.
        let Some((key, mark, version)) = replica.and_then(|it| it.records().own_record()) else {
            return;
        };
        let ranked = keepers(stack, mark);
        // While nodes come, so do better keepers.
        if now < self.grown_at + STEADY_AFTER {
            let since = *self.unsteady_since.get_or_insert(now);
            if now < since + UNSTEADY_MAX {
                self.ranked = ranked;
                return;
            }
        }
        self.unsteady_since = None;
        for (turn, keeper) in ranked.iter().enumerate() {
            let life = life_of(stack, *keeper);
            let has_it = |it: &Placed| {
                let is_new = it.version != version && now >= it.at + PLACE_AGAIN;
                it.keeper == *keeper && it.life == life && !is_new
            };
            let is_steady = *keeper != own && self.ranked.contains(keeper);
            if !is_steady || self.placed.iter().any(has_it) {
                continue;
            }
            self.placed.retain(|placed| placed.keeper != *keeper);
            if self.placed.len() >= PLACED_MAX {
                self.placed.remove(0);
            }
            self.placed.push(Placed { keeper: *keeper, life, version, at: now });
            if let Some(record) = record_with_key(stack, key) {
                tell(stack, *keeper, Word::Keep { passes: 1, turn: turn as u8 }, &record);
            }
            // The next one is told the next time: all devices may have started at once.
            break;
        }
        self.ranked = ranked;
    }

    fn ask(&mut self, stack: &mut MeshStack, now: Instant, at: usize) {
        let asker = stack.node();
        let Sought { mark, newer_than, asked, until, .. } = self.sought[at];
        let steady_at = (self.grown_at + STEADY_AFTER).min(until - ASK_AT_LAST);
        if now < steady_at {
            self.sought[at].next_at = steady_at;
            return;
        }
        if asked == 0 {
            self.turn = self.turn.wrapping_add(1);
        }
        let turn = self.turn.wrapping_add(asked);
        let others = reachable(stack).filter(|node| *node != asker);
        let keepers = mark.first(others, KEEPERS);
        let sought = &mut self.sought[at];
        if keepers.is_empty() {
            sought.next_at = now + ANSWER_WITHIN;
            return;
        }
        let keeper = keepers[usize::from(turn) % keepers.len()];
        sought.asked = asked.saturating_add(1);
        sought.last = Some(keeper);
        let is_round_over = usize::from(sought.asked) % KEEPERS == 0;
        sought.next_at = now + if is_round_over { ROUND_PAUSE } else { ANSWER_WITHIN };
        let question = Question { mark, newer_than, asker, passes: 1, turn };
        tell(stack, keeper, Word::Sought(question), &[]);
    }
}

/// Answers a question, or passes it on.
fn answer(stack: &mut MeshStack, now: Instant, from: NodeId, question: Question) {
    let Question { mark, newer_than, asker, passes, turn } = question;
    let replica = stack.protocol::<Replica>();
    let known = replica.and_then(|replica| replica.records().record_of(mark));
    if let Some((key, _)) = known.filter(|(_, version)| *version > newer_than)
        && let Some(record) = record_with_key(stack, key)
    {
        stack.request(&SendLarge { to: asker, port: Port::RECORDS }, &record);
        stack.act::<Replica, _>(now, |replica, _| replica.records_mut().touch(key));
        return;
    }
    let keepers = keepers(stack, mark);
    let next = keepers[usize::from(turn) % keepers.len()];
    if passes > 0 && !keepers.contains(&stack.node()) && next != asker && next != from {
        let question = Question { passes: passes - 1, ..question };
        return tell(stack, next, Word::Sought(question), &[]);
    }
    tell(stack, asker, Word::Absent { mark }, &[]);
}

/// Keeps a record that another device gives, or passes it on to its keepers.
fn keep(stack: &mut MeshStack, now: Instant, (passes, turn): (u8, u8), body: &[u8]) {
    let Some((key, record)) = body.split_first_chunk::<8>() else { return };
    let Some(claims) = claims_of(record) else { return };
    let (own, keepers) = (stack.node(), keepers(stack, Mark::of(&claims.enrolment.device)));
    if keepers.contains(&own) {
        let key = RecordKey(*key);
        stack.act::<Replica, _>(now, |replica, _| replica.records_mut().keep(key, record));
    } else if passes > 0 {
        let keeper = keepers[usize::from(turn) % keepers.len()];
        if keeper != node_of(&claims) {
            tell(stack, keeper, Word::Keep { passes: passes - 1, turn }, body);
        }
    }
}

fn tell(stack: &mut MeshStack, to: NodeId, word: Word, rest: &[u8]) {
    let mut body = Vec::new();
    encode(&word, &mut body);
    body.extend_from_slice(rest);
    stack.request(&SendLarge { to, port: Port::LOOKUP }, &body);
}

/// A record as it is sent: its key first.
fn record_with_key(stack: &MeshStack, key: RecordKey) -> Option<Vec<u8>> {
    let record = stack.protocol::<Replica>()?.records().record(key)?;
    let mut body = key.0.to_vec();
    body.extend_from_slice(&record);
    Some(body)
}

/// The keepers of the name with that mark, as far as this node knows: it may be one.
fn keepers(stack: &MeshStack, mark: Mark) -> Vec<NodeId> {
    mark.first(reachable(stack).chain([stack.node()]), KEEPERS)
}

/// The other nodes to which there is a way.
fn reachable(stack: &MeshStack) -> impl Iterator<Item = NodeId> + '_ {
    let table = stack.protocol::<Babel>().map(Babel::table);
    let known =
        table.into_iter().flat_map(|table| table.destinations().zip(core::iter::repeat(table)));
    let own = stack.node();
    let is_reachable =
        move |(node, table): &(NodeId, &Table)| *node != own && table.route(*node).is_some();
    known.filter(is_reachable).map(|(node, _)| node)
}

/// How many nodes the mesh has, as far as the router knows.
pub(crate) fn nodes_of(stack: &MeshStack) -> usize {
    stack.protocol::<Babel>().map_or(0, |router| router.table().count()) + 1
}

/// Which life a node is in, as far as the router knows.
fn life_of(stack: &MeshStack, node: NodeId) -> u32 {
    let route = stack.protocol::<Babel>().and_then(|router| router.table().route(node));
    route.map_or(0, |(_, distance)| distance.seqno.boot)
}

fn fence(now: Instant) -> Toll<NodeId> {
    Toll::new(WORDS_OF_ONE, Some(WORDS_OF_ALL), SOURCES_MAX, now)
}
