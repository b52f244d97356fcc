//! Records that every node comes to have: the directory of a mesh without a hub.
//!
//! Sources: anti-entropy (Demers et al., "Epidemic algorithms for replicated database maintenance",
//! PODC 1987) with summaries of versions, timed by Trickle (RFC 6206): a change spreads within
//! seconds, and where all agree hardly anything is said. What a record is, whether it is genuine and
//! which of two is newer, [`Records`] decides; so nothing spreads that its owner didn't sign.
//!
//! Per record:
//!
//! ```text
//!             a summary shows a newer version             it arrives, and is genuine
//!  up to date ───────────────────────────────► asked for ───────────────────────────► up to date
//!                                                 │  ▲      RecordArrived
//!                                                 └──┘ nothing came: the next summary's sender
//!
//!  A version that isn't genuine, or not in force, is refused, and not asked for again for a while.
//! ```
//!
//! A table has room for so many records. A full one asks for newer versions of its own records alone, and its
//! summaries don't claim to be whole, so that nobody takes a record for missing there.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Awaits, Context, Destination, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Reception,
};

use crate::interface::{DatagramArrived, LinkUp, Port, RecordArrived, RecordKey, SendLarge};
use crate::trickle::Trickle;

#[cfg(test)]
mod tests;

/// How many bytes a summary has per record: key, version.
const ENTRY_BYTES: usize = 16;
/// The longest interval of summaries when a neighbour is met. Where nodes move that is all the time; one that lacks something
/// says its own summary, and then all hurry.
const MET_INTERVAL: Duration = Duration::from_secs(4);
/// The most records that are asked for at the same time.
const ASKED_MAX: usize = 16;
/// How long a record that was asked for may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Within which time after a summary it is asked: others who hear it ask too, and may not hear each
/// other.
const ASK_SPREAD: Duration = Duration::from_millis(100);
/// The most refused records that are remembered, and the most that others seem to refuse.
const REFUSED_MAX: usize = 16;
/// The most of them that one neighbour's summaries fill, so that promises which aren't kept leave room for others.
const ASKED_OF_ONE_MAX: usize = ASKED_MAX / 2;
/// How often in one longest interval it is hurried for the same version that somebody lacks: it may be refused, or not
/// exist.
const HURRIES_MAX: u8 = 40;
/// The same for all versions together: names without end are no reason to hurry without end.
const HURRIES_IN_ALL_MAX: u8 = 120;

/// The set of records that replicates.
pub trait Records: Send + 'static {
    /// Calls `act` with the key and version of every record.
    fn each(&self, act: &mut dyn FnMut(RecordKey, u64));

    /// A record.
    fn record(&self, key: RecordKey) -> Option<Vec<u8>>;

    /// The version of a record that is here.
    fn version(&self, key: RecordKey) -> Option<u64>;

    /// How many records that aren't here would be taken.
    fn room(&self) -> usize;

    /// Whether there are so few records that every node has room for all: then they replicate. Otherwise nothing is
    /// said of them here, and only newer versions of those that are here are asked for.
    fn replicates(&self) -> bool {
        true
    }

    /// Takes a record if it is genuine and newer than what is here; says whether it did.
    fn accept(&mut self, key: RecordKey, record: &[u8]) -> bool;
}

/// No records, and none are taken.
impl Records for () {
    fn each(&self, _: &mut dyn FnMut(RecordKey, u64)) {}

    fn record(&self, _: RecordKey) -> Option<Vec<u8>> {
        None
    }

    fn version(&self, _: RecordKey) -> Option<u64> {
        None
    }

    fn room(&self) -> usize {
        0
    }

    fn accept(&mut self, _: RecordKey, _: &[u8]) -> bool {
        false
    }
}

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How soon after a change a summary comes.
    pub interval_min: Duration,
    /// How rare summaries become.
    pub interval_max: Duration,
    /// A node keeps its summary to itself if so many say the same.
    pub enough: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval_min: Duration::from_millis(250),
            interval_max: Duration::from_secs(60),
            enough: 2,
        }
    }
}

/// Records that every node comes to have.
#[derive(Debug)]
pub struct ReplicatedRecords<R> {
    records: R,
    trickle: Trickle,
    asked: Vec<Asked>,
    /// Versions that came and weren't taken, and when, oldest first.
    refused: Vec<(RecordKey, u64, Instant)>,
    /// Versions that others or this node lacked lately, since when, and how often that was a reason to hurry.
    lacked: Vec<(RecordKey, u64, Instant, u8)>,
    /// Since when hurries are counted, and how many there were.
    hurries: (Instant, u8),
    refusal_lasts: Duration,
    turn: usize,
}

/// A version that a neighbour was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    key: RecordKey,
    version: u64,
    at: Instant,
    neighbour: NodeId,
}

/// The sender's records: [`ENTRY_BYTES`] per record follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Whether these are all, and others would be taken.
    whole: bool,
}

/// The keys that follow are to be sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wanted;

/// It is time for a summary, unless enough say the same.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Say;
/// A Trickle interval is over.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IntervalOver;

tenure_mesh::protocol! {
    [R: Records] ReplicatedRecords<R> = 14, "replicated records";
    messages { Summary = 1, Wanted = 2 }
    timers { Say = 1, IntervalOver = 2 }
    asks { SendLarge }
    hears { DatagramArrived, LinkUp }
    tells { RecordArrived }
}

impl<R: Records> ReplicatedRecords<R> {
    /// Replicates `records`.
    pub fn new(config: Config, records: R) -> Self {
        let trickle = Trickle::new(config.interval_min, config.interval_max, config.enough);
        let refusal_lasts = config.interval_max;
        let (asked, refused, lacked) = (Vec::new(), Vec::new(), Vec::new());
        let hurries = (Instant::BOOT, 0);
        Self { records, trickle, asked, refused, lacked, hurries, refusal_lasts, turn: 0 }
    }

    /// The records that are here.
    pub fn records(&self) -> &R {
        &self.records
    }

    /// The records that are here, to be told something other than a record.
    pub fn records_mut(&mut self) -> &mut R {
        &mut self.records
    }

    /// Takes a record of this node's own, and spreads it if it is new.
    pub fn publish(&mut self, key: RecordKey, record: &[u8], context: &mut Context<'_, Self>) {
        if self.records.accept(key, record) {
            self.begin_anew(context);
        }
    }

    /// Says soon what there is: others may take it now.
    pub fn spread(&mut self, context: &mut Context<'_, Self>) {
        self.begin_anew(context);
    }

    fn begin_anew(&mut self, context: &mut Context<'_, Self>) {
        self.trickle.begin_anew((&Say, &IntervalOver), context);
    }

    /// Whether the lack of a version, here or elsewhere, is a reason to hurry once more.
    fn hurries_for(&mut self, key: RecordKey, version: u64, now: Instant) -> bool {
        if now.since(self.hurries.0) >= self.refusal_lasts {
            self.hurries = (now, 0);
        }
        self.hurries.1 = self.hurries.1.saturating_add(1);
        if self.hurries.1 > HURRIES_IN_ALL_MAX {
            return false;
        }
        self.lacked.retain(|(_, _, since, _)| now.since(*since) < self.refusal_lasts);
        let mut known = self.lacked.iter_mut();
        if let Some((.., times)) = known.find(|it| it.0 == key && it.1 == version) {
            *times = times.saturating_add(1);
            return *times <= HURRIES_MAX;
        }
        if self.lacked.len() >= REFUSED_MAX {
            self.lacked.remove(0);
        }
        self.lacked.push((key, version, now, 1));
        true
    }

    /// Asks `neighbour` for what of `theirs` is newer and has room; returns one of these versions.
    fn ask_for(
        &mut self,
        neighbour: NodeId,
        theirs: &[(RecordKey, u64)],
        context: &mut Context<'_, Self>,
    ) -> Option<(RecordKey, u64)> {
        let now = context.now();
        self.asked.retain(|asked| now.since(asked.at) < PATIENCE);
        self.refused.retain(|(.., at)| now.since(*at) < self.refusal_lasts);
        let is_new = |asked: &&Asked| self.records.version(asked.key).is_none();
        let mut room = self.records.room().saturating_sub(self.asked.iter().filter(is_new).count());
        let mut of_one = self.asked.iter().filter(|asked| asked.neighbour == neighbour).count();
        let mut body = Vec::new();
        let mut newer = None;
        for (key, version) in theirs {
            let ours = self.records.version(*key);
            let is_newer = ours.map_or(room > 0, |ours| ours < *version);
            if !is_newer || self.refused.iter().any(|it| it.0 == *key && it.1 == *version) {
                continue;
            }
            newer = newer.or(Some((*key, *version)));
            let is_asked = self.asked.iter().any(|asked| asked.key == *key);
            if !is_asked && self.asked.len() < ASKED_MAX && of_one < ASKED_OF_ONE_MAX {
                of_one += 1;
                room = room.saturating_sub(usize::from(ours.is_none()));
                self.asked.push(Asked { key: *key, version: *version, at: now, neighbour });
                body.extend_from_slice(&key.0);
            }
        }
        if !body.is_empty() {
            let to = Destination::One(neighbour);
            let patience = context.random().below_span(ASK_SPREAD);
            context.transmit(&Wanted, Outgoing { to, patience, body: &body });
        }
        newer
    }
}

impl<R: Records> Protocol for ReplicatedRecords<R> {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.begin_anew(context);
    }
}

impl<R: Records> Expires<Say> for ReplicatedRecords<R> {
    fn expire(&mut self, _: Say, context: &mut Context<'_, Self>) {
        if !self.trickle.has_something_to_say() || !self.records.replicates() {
            return;
        }
        let mut entries = Vec::new();
        self.records.each(&mut |key, version| entries.push((key, version)));
        let room = context.payload_bytes_max().saturating_sub(8) / ENTRY_BYTES;
        let is_whole = entries.len() <= room;
        let whole = is_whole && self.records.room() > 0;
        let count = entries.len().min(room);
        let mut body = Vec::with_capacity(count * ENTRY_BYTES);
        for at in 0..count {
            let (key, version) = entries[(self.turn + at) % entries.len()];
            body.extend_from_slice(&key.0);
            body.extend_from_slice(&version.to_le_bytes());
        }
        self.turn = if is_whole { 0 } else { (self.turn + count) % entries.len() };
        context.transmit(&Summary { whole }, Outgoing { body: &body, ..Outgoing::default() });
    }
}

impl<R: Records> Expires<IntervalOver> for ReplicatedRecords<R> {
    fn expire(&mut self, _: IntervalOver, context: &mut Context<'_, Self>) {
        self.trickle.go_on((&Say, &IntervalOver), context);
    }
}

impl<R: Records> Handles<Summary> for ReplicatedRecords<R> {
    fn handle(
        &mut self,
        summary: Summary,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (entries, _) = reception.body.as_chunks::<ENTRY_BYTES>();
        let entry = |entry: &[u8; ENTRY_BYTES]| {
            let [k0, k1, k2, k3, k4, k5, k6, k7, version @ ..] = *entry;
            (RecordKey([k0, k1, k2, k3, k4, k5, k6, k7]), u64::from_le_bytes(version))
        };
        // A heap sorts in a tenth of the flash that a slice's own sort takes.
        let theirs = entries.iter().map(entry).collect::<BinaryHeap<_>>().into_sorted_vec();
        let mut lacked = Vec::from_iter(self.ask_for(reception.from, &theirs, context));
        if !self.records.replicates() {
            return;
        }
        self.records.each(&mut |key, version| {
            let theirs = theirs.binary_search_by_key(&key, |it| it.0).map(|at| theirs[at].1);
            let they_lack = match theirs {
                Ok(their) => their < version,
                Err(_) => summary.whole,
            };
            if they_lack {
                lacked.push((key, version));
            }
        });
        let now = context.now();
        // One summary is one reason to hurry.
        if lacked.iter().any(|(key, version)| self.hurries_for(*key, *version, now)) {
            self.begin_anew(context);
        } else {
            self.trickle.heard_the_same();
        }
    }
}

impl<R: Records> Handles<Wanted> for ReplicatedRecords<R> {
    fn handle(&mut self, _: Wanted, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (keys, _) = reception.body.as_chunks::<8>();
        for key in keys.iter().take(ASKED_MAX) {
            if let Some(record) = self.records.record(RecordKey(*key)) {
                let mut body = key.to_vec();
                body.extend_from_slice(&record);
                let request = SendLarge { to: reception.from, port: Port::RECORDS };
                context.ask(&request, &body);
            }
        }
    }
}

impl<R: Records> Hears<DatagramArrived> for ReplicatedRecords<R> {
    fn hear(
        &mut self,
        DatagramArrived { port, .. }: DatagramArrived,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        let Some((key, record)) = body.split_first_chunk::<8>().filter(|_| port == Port::RECORDS)
        else {
            return;
        };
        let key = RecordKey(*key);
        let asked = self.asked.iter().position(|asked| asked.key == key);
        let asked = asked.map(|at| self.asked.swap_remove(at));
        if self.records.accept(key, record) {
            context.tell(&RecordArrived { key }, &[]);
            self.begin_anew(context);
        } else if let Some(Asked { version, .. }) = asked
            && self.records.version(key).is_none_or(|ours| ours < version)
        {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.remove(0);
            }
            self.refused.push((key, version, context.now()));
        }
    }
}

impl<R: Records> Hears<LinkUp> for ReplicatedRecords<R> {
    /// A new neighbour is to know before long what there is.
    fn hear(&mut self, _: LinkUp, _: &[u8], context: &mut Context<'_, Self>) {
        self.trickle.begin_within(MET_INTERVAL, (&Say, &IntervalOver), context);
    }
}

/// A record that isn't taken is asked for again.
impl<R: Records> Awaits<SendLarge> for ReplicatedRecords<R> {}
