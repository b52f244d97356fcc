//! The usual dispatcher: messages share frames, frames are numbered and sealed, and a neighbour is
//! believed once it has proved that it lives now.
//!
//! ```text
//!                 frame of a node unknown so far, or of a new life of a known one
//!                                          │
//!                                          ▼
//!             ┌──────────── unproven: what it says is dropped, it is introduced ◄──┐
//!             │                                                                    │ another life, or
//!             │ it names a frame of ours that was sent after we first heard it     │ forgotten
//!             ▼                                                                    │
//!           proven: its frames count, each once, within a window of 64 ────────────┘
//! ```
//!
//! A recorded frame can name only frames that were sent before it was recorded, so none proves
//! anything to a node that hears it for the first time, has restarted, or has forgotten; and once the
//! neighbour has proved that it lives, no frame older than the latest counts.
//!
//! A neighbour's life is its epoch and salt. The proven one counts until another one of the same
//! neighbour has proved itself. A later epoch may do that at once; any other life only when the proven
//! one has been silent for [`SILENCE`], so that a recording displaces nobody, and so that neither flash
//! that was put back nor a member that lied about a high epoch shuts a node out for longer. So may the proven
//! life itself with numbers that it seems to have passed: a member that used a high one in its name shuts it
//! out no longer either.
//! Without a seal everybody is believed at once, and a neighbour with another epoch lives anew.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;

use crate::air::{Account, Air, Budget, LINK_HEADER_BYTES, Traffic};
use crate::dispatcher::{Dispatcher, Received, Rejected, SendError};
use crate::event::{Destination, ProtocolNumber};
use crate::frame::{
    FrameError, HEADER_BYTES_MAX, Header, INTRODUCTION_BYTES, Introduction, RECORD_BYTES_MAX,
    emit_record, record_bytes, split_introductions, split_record,
};
use crate::room::append;
use crate::seal::{FrameNumber, Salt, Seal};
use crate::{NodeId, Random};

#[cfg(test)]
mod tests;

/// The most introductions in one frame.
const INTRODUCTIONS_MAX: usize = 4;
/// How soon a node that has to introduce others does, at the latest.
const GREETING_SPREAD: Duration = Duration::from_millis(10);
/// How much later it does if there is no air for it.
const GREETS_LATER: Duration = Duration::from_millis(250);
/// How long a node waits for proof before it asks again; it doubles each time.
const ASK_AGAIN: Duration = Duration::from_millis(250);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(16);
/// How long a proven life must have been silent before one that isn't later may take its place.
const SILENCE: Duration = Duration::from_secs(10);
/// How long an unproven life must have been silent before one that isn't later may take its place.
const NEWCOMER_SILENCE: Duration = Duration::from_secs(1);
/// The most neighbours for which messages are gathered at the same time.
const GATHERED_MAX: usize = 16;
/// For each neighbour, a frame takes the air of so many bytes more: the more contend for it, the longer are the pauses
/// before frames (IEEE 802.11-2020 §10.3.4), and the more frames spoil each other.
const FRAME_AIR_BYTES: usize = 2;
/// How long after it was heard a neighbour counts as one that shares the air, and how often they are counted.
const IN_REACH_FOR: Duration = Duration::from_secs(10);
const SHARED_EVERY: Duration = Duration::from_millis(500);

/// The configuration of a [`Framer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramerConfig {
    /// The node that it speaks for.
    pub node: NodeId,
    /// Which of the node's lives this is: greater than in any life before, so that neighbours know
    /// at once which is the later.
    pub epoch: u32,
    /// Drawn at random for this life: what keeps a frame's number from being used twice.
    pub salt: Salt,
    /// The longest frame that every link carries.
    pub frame_bytes_max: usize,
    /// The most neighbours that are remembered.
    pub neighbours_max: usize,
    /// The most bytes that wait to be sent.
    pub waiting_bytes_max: usize,
    /// The link's capacity, and the share of it for control traffic.
    pub air: Air,
    /// The seed of chance.
    pub seed: u64,
}

impl FramerConfig {
    /// For `node` in its life `epoch` with the random `salt`, with the limits of the smallest class of
    /// device.
    pub const fn new(node: NodeId, epoch: u32, salt: Salt) -> Self {
        Self {
            node,
            epoch,
            salt,
            frame_bytes_max: 1232,
            neighbours_max: 128,
            waiting_bytes_max: 16 * 1024,
            air: Air::RADIO,
            seed: node.number() ^ (epoch as u64) << 48,
        }
    }
}

/// The usual dispatcher.
#[derive(Debug)]
pub struct Framer<S> {
    config: FramerConfig,
    seal: S,
    sequence: u32,
    /// By id; of each at most one life that is proven, and before it one that isn't.
    neighbours: Vec<Neighbour>,
    /// Messages that wait for a frame of their own or with others.
    gathered: Vec<Gathered>,
    /// Frames' contents that are complete.
    complete: VecDeque<(Destination, Vec<u8>)>,
    waiting_bytes: usize,
    /// When a frame is due for the sake of its introductions.
    greet_at: Option<Instant>,
    opened: Vec<u8>,
    /// Memory for what is gathered next, which was used before.
    spare: Vec<u8>,
    random: Random,
    budget: Budget,
    /// When neighbours were last counted, to share the air with them.
    shared_at: Option<Instant>,
    /// How many there were.
    near: usize,
}

/// Messages for the same destination, until one of them is out of patience.
#[derive(Debug)]
struct Gathered {
    to: Destination,
    records: Vec<u8>,
    due: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    id: NodeId,
    epoch: u32,
    salt: Salt,
    /// The highest frame number that was heard.
    highest: u32,
    /// Which of the 64 below it and itself were; bit 0 is itself.
    window: u64,
    heard: Instant,
    /// It is believed if this is `None`, else once it names a frame of ours from that number on.
    proof_from: Option<u32>,
    /// It asked to be introduced.
    asks: bool,
    ask_at: Instant,
    ask_again: Duration,
}

impl<S: Seal> Framer<S> {
    /// A framer that seals with `seal`.
    pub fn new(config: FramerConfig, seal: S) -> Self {
        Self {
            config,
            seal,
            sequence: 0,
            neighbours: Vec::new(),
            gathered: Vec::new(),
            complete: VecDeque::new(),
            waiting_bytes: 0,
            greet_at: None,
            opened: Vec::new(),
            spare: Vec::new(),
            random: Random::new(config.seed),
            budget: Budget::new(config.air, config.frame_bytes_max),
            shared_at: None,
            near: 0,
        }
    }

    /// Whether `neighbour` is believed.
    pub fn believes(&self, neighbour: NodeId) -> bool {
        self.find(neighbour, true).is_ok()
    }

    /// Starts another life, with a number that no life had before and a random salt, when the frames of
    /// this one are used up: see [`Self::is_exhausted`].
    pub fn renew(&mut self, epoch: u32, salt: Salt) {
        if epoch > self.config.epoch {
            self.config.epoch = epoch;
            self.config.salt = salt;
            self.sequence = 0;
            self.neighbours.clear();
        }
    }

    /// Whether 2³² frames were sent, and no more can be without a number used twice.
    pub fn is_exhausted(&self) -> bool {
        self.sequence == u32::MAX
    }

    const fn overhead_bytes() -> usize {
        let introductions = if S::SEALS { 1 + INTRODUCTIONS_MAX * INTRODUCTION_BYTES } else { 0 };
        HEADER_BYTES_MAX + introductions + S::OVERHEAD_BYTES
    }

    /// Returns the bytes of a frame beside its records and introductions.
    const fn headers_bytes(to: Destination) -> usize {
        let unsealed = HEADER_BYTES_MAX - size_of::<Salt>();
        let header = if S::SEALS { HEADER_BYTES_MAX } else { unsealed };
        let address = if matches!(to, Destination::All) { NodeId::BYTES } else { 0 };
        LINK_HEADER_BYTES + header - address + S::OVERHEAD_BYTES
    }

    /// Shares the budget of air with the neighbours that were heard lately.
    fn share_air(&mut self, now: Instant) {
        if self.shared_at.is_some_and(|at| now.since(at) < SHARED_EVERY) {
            return;
        }
        self.shared_at = Some(now);
        let is_near = |known: &&Neighbour| now.since(known.heard) < IN_REACH_FOR;
        self.near = self.neighbours.iter().filter(is_near).count();
        self.budget.share(self.near);
    }

    fn records_bytes_max(&self) -> usize {
        self.config.frame_bytes_max.saturating_sub(Self::overhead_bytes())
    }

    /// Where `id`'s life stands that is proven, or that isn't; or where it would.
    fn find(&self, id: NodeId, is_proven: bool) -> Result<usize, usize> {
        let key = |neighbour: &Neighbour| (neighbour.id, neighbour.proof_from.is_none());
        self.neighbours.binary_search_by_key(&(id, is_proven), key)
    }

    /// Gives up `at`'s place in the gathering: its content is complete.
    fn complete(&mut self, at: usize) {
        let Gathered { to, records, .. } = self.gathered.swap_remove(at);
        self.complete.push_back((to, records));
    }

    /// Keeps the memory of what was sent for whoever is written to next.
    fn spare_again(&mut self, mut records: Vec<u8>) {
        records.clear();
        self.spare = records;
    }

    /// Whether the frame `number` counts for nothing, before its seal is looked at: it came before, or is of
    /// a life that mustn't displace the one that is known.
    fn is_replayed(&self, now: Instant, number: &FrameNumber) -> bool {
        let (mut is_known, mut is_kept_out) = (false, false);
        for (is_proven, silence) in [(true, SILENCE), (false, NEWCOMER_SILENCE)] {
            let Ok(at) = self.find(number.sender, is_proven) else { continue };
            let known = &self.neighbours[at];
            let is_silent = now.since(known.heard) >= silence;
            if !known.is_life_of(number) {
                is_kept_out |= S::SEALS && number.epoch <= known.epoch && !is_silent;
                continue;
            }
            is_known = true;
            if known.has_heard(number.sequence) && !(is_silent && is_proven) {
                return true;
            }
        }
        is_kept_out && !is_known
    }

    /// Notes that an authentic frame came which isn't [replayed](Self::is_replayed); returns where the life
    /// of its sender stands, and whether that took another's place; `None` if there is no room for one more neighbour.
    fn note(&mut self, now: Instant, number: &FrameNumber) -> Option<(usize, bool)> {
        let places = [true, false].map(|is_proven| self.find(number.sender, is_proven));
        for at in places.into_iter().flatten() {
            let known = &mut self.neighbours[at];
            if known.is_life_of(number) && !known.has_heard(number.sequence) {
                known.hear(now, number.sequence);
                return Some((at, false));
            }
        }
        let fresh = Neighbour {
            id: number.sender,
            epoch: number.epoch,
            salt: number.salt,
            highest: number.sequence,
            window: 1,
            heard: now,
            proof_from: S::SEALS.then_some(self.sequence),
            asks: false,
            ask_at: now,
            ask_again: ASK_AGAIN,
        };
        match places[usize::from(S::SEALS)] {
            Ok(at) => {
                self.neighbours[at] = fresh;
                Some((at, !S::SEALS))
            }
            Err(_) => {
                if self.neighbours.len() >= self.config.neighbours_max {
                    self.forget_one(now)?;
                }
                let at = self.find(number.sender, !S::SEALS).unwrap_or_else(|at| at);
                self.neighbours.insert(at, fresh);
                Some((at, false))
            }
        }
    }

    /// Believes the life at `at`, which has proved itself, and forgets the one that was believed before;
    /// returns where it stands now, and whether there was one.
    fn believe(&mut self, at: usize) -> (usize, bool) {
        let id = self.neighbours[at].id;
        let earlier = self.find(id, true);
        let newcomer = &mut self.neighbours[at];
        newcomer.proof_from = None;
        // A frame that this node took in an earlier life, or before it forgot, may be recorded.
        newcomer.window = u64::MAX;
        if let Ok(earlier) = earlier {
            self.neighbours.remove(earlier);
        }
        (self.find(id, true).unwrap_or(at), earlier.is_ok())
    }

    /// Forgets the neighbour not heard for longest, one that isn't believed first. One that is, and was heard lately,
    /// stays: where there are more than have room, they would displace each other for ever.
    fn forget_one(&mut self, now: Instant) -> Option<()> {
        let neighbours = self.neighbours.iter().enumerate();
        let (at, least) = neighbours
            .min_by_key(|(_, neighbour)| (neighbour.proof_from.is_none(), neighbour.heard))?;
        let may_go = least.proof_from.is_some() || now.since(least.heard) >= SILENCE;
        may_go.then(|| _ = self.neighbours.remove(at))
    }

    /// Takes what the life at `at` says of this node, and sees to it that it is answered; returns where it
    /// stands, and whether it took a believed one's place.
    fn be_introduced(
        &mut self,
        now: Instant,
        at: usize,
        introduction: Option<Introduction>,
    ) -> (usize, bool) {
        let (mut at, mut restarted) = (at, false);
        if let Some(introduction) = introduction {
            let FramerConfig { epoch, salt, .. } = self.config;
            let this_life = (introduction.epoch, introduction.salt) == (epoch, salt);
            let proves = |from| introduction.heard >= from;
            if this_life && self.neighbours[at].proof_from.is_some_and(proves) {
                (at, restarted) = self.believe(at);
            }
            self.neighbours[at].asks |= introduction.asks;
        }
        let neighbour = &self.neighbours[at];
        let due = match (neighbour.asks, neighbour.proof_from) {
            (true, _) => now,
            (false, Some(_)) => now.max(neighbour.ask_at),
            (false, None) => return (at, restarted),
        };
        let due = due + self.random.below_span(GREETING_SPREAD);
        self.greet_at = Some(self.greet_at.map_or(due, |at| at.min(due)));
        (at, restarted)
    }

    /// The introductions that the next frame to everybody carries.
    fn introductions(&mut self, now: Instant) -> Vec<Introduction> {
        let mut introductions = Vec::new();
        for neighbour in &mut self.neighbours {
            let asks = neighbour.wants_proof(now);
            if introductions.len() == INTRODUCTIONS_MAX || !(asks || neighbour.asks) {
                continue;
            }
            neighbour.asks = false;
            if asks {
                neighbour.ask_at = now + neighbour.ask_again;
                neighbour.ask_again = (neighbour.ask_again * 2).min(ASK_AGAIN_MAX);
            }
            introductions.push(Introduction {
                of: neighbour.id,
                epoch: neighbour.epoch,
                salt: neighbour.salt,
                heard: neighbour.highest,
                asks: neighbour.proof_from.is_some(),
            });
        }
        introductions
    }

    /// Builds the frame that carries `records`.
    fn build(&mut self, now: Instant, to: Destination, records: &[u8], frame: &mut Vec<u8>) {
        let introductions = match to {
            Destination::All if S::SEALS => self.introductions(now),
            _ => Vec::new(),
        };
        let number = FrameNumber {
            sender: self.config.node,
            epoch: self.config.epoch,
            salt: if S::SEALS { self.config.salt } else { Salt::default() },
            sequence: self.sequence,
        };
        self.sequence += 1;
        frame.clear();
        let introduces = !introductions.is_empty();
        Header { number, to, sealed: S::SEALS, introduces }.emit(frame);
        let header_bytes = frame.len();
        if introduces {
            frame.push(introductions.len() as u8);
            introductions.iter().for_each(|introduction| introduction.emit(frame));
        }
        // With what the seal appends: memory that doubles would take a small heap's largest pieces.
        frame.reserve_exact(records.len() + Self::overhead_bytes());
        frame.extend_from_slice(records);
        if S::SEALS {
            self.seal.seal(&number, header_bytes, frame);
        }
    }
}

impl Neighbour {
    fn is_life_of(&self, number: &FrameNumber) -> bool {
        (self.epoch, self.salt) == (number.epoch, number.salt)
    }

    fn has_heard(&self, sequence: u32) -> bool {
        let Some(behind) = self.highest.checked_sub(sequence) else { return false };
        behind >= u64::BITS || self.window & 1 << behind != 0
    }

    /// Notes a frame that [hasn't been heard](Self::has_heard).
    fn hear(&mut self, now: Instant, sequence: u32) {
        self.heard = now;
        match sequence.checked_sub(self.highest) {
            Some(ahead) => {
                self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = sequence;
            }
            None => self.window |= 1 << (self.highest - sequence),
        }
    }

    /// Whether it is to be asked for proof now.
    fn wants_proof(&self, now: Instant) -> bool {
        self.proof_from.is_some() && self.ask_at <= now && now.since(self.heard) < ASK_AGAIN_MAX
    }
}

impl<S: Seal> Dispatcher for Framer<S> {
    fn node(&self) -> NodeId {
        self.config.node
    }

    fn message_bytes_max(&self) -> usize {
        self.records_bytes_max().saturating_sub(3).min(RECORD_BYTES_MAX)
    }

    fn send(
        &mut self,
        now: Instant,
        protocol: ProtocolNumber,
        to: Destination,
        patience: Duration,
        message: &[u8],
    ) -> Result<(), SendError> {
        let (bytes, most) = (record_bytes(message.len()), self.records_bytes_max());
        if bytes > most || message.len() > RECORD_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        if self.waiting_bytes + bytes > self.config.waiting_bytes_max {
            return Err(SendError::Full);
        }
        let mut place = self.gathered.iter().position(|gathered| gathered.to == to);
        let fits = |gathered: &Gathered| gathered.records.len() + bytes <= most;
        if let Some(at) = place
            && !self.gathered.get(at).is_some_and(fits)
        {
            self.complete(at);
            place = None;
        }
        let at = place.unwrap_or_else(|| {
            if self.gathered.len() >= GATHERED_MAX {
                self.complete(0);
            }
            let records = core::mem::take(&mut self.spare);
            self.gathered.push(Gathered { to, records, due: now + patience });
            self.gathered.len() - 1
        });
        let Some(gathered) = self.gathered.get_mut(at) else { return Err(SendError::Full) };
        gathered.due = gathered.due.min(now + patience);
        if !emit_record(protocol, message, &mut gathered.records) {
            // One that has just begun is the last.
            if gathered.records.is_empty() {
                self.gathered.pop();
            }
            return Err(SendError::Full);
        }
        self.waiting_bytes += bytes;
        Ok(())
    }

    fn receive<'a>(&'a mut self, now: Instant, frame: &'a [u8]) -> Result<Received<'a>, Rejected> {
        let (header, header_bytes) = Header::parse(frame).map_err(|error| match error {
            FrameError::Length => Rejected::Malformed,
            FrameError::Version => Rejected::Version,
        })?;
        let (node, number) = (self.config.node, header.number);
        if number.sender == node {
            return Err(Rejected::Own);
        }
        let addressed = header.to == Destination::One(node);
        if !addressed && header.to != Destination::All {
            return Err(Rejected::NotForUs);
        }
        if header.sealed != S::SEALS || (!S::SEALS && header.introduces) {
            return Err(Rejected::Forged);
        }
        if self.is_replayed(now, &number) {
            return Err(Rejected::Replayed);
        }
        let (header_part, rest) = frame.split_at(header_bytes);
        let length = if S::SEALS {
            self.opened.clear();
            if !append(&mut self.opened, rest) {
                return Err(Rejected::NoRoom);
            }
            let opened = self.seal.open(&number, header_part, &mut self.opened);
            opened.ok_or(Rejected::Forged)?.len()
        } else {
            rest.len()
        };
        let payload = if S::SEALS { &self.opened[..length] } else { rest };
        let (introduction, records_at) = check(&self.config, header.introduces, payload)?;
        let noted = self.note(now, &number).ok_or(Rejected::Unproven)?;
        let (mut at, mut restarted) = noted;
        if S::SEALS {
            (at, restarted) = self.be_introduced(now, at, introduction);
        }
        if self.neighbours[at].proof_from.is_some() {
            return Err(Rejected::Unproven);
        }
        let payload = if S::SEALS { &self.opened[..length] } else { rest };
        Ok(Received { from: number.sender, addressed, restarted, records: &payload[records_at..] })
    }

    fn admit(
        &mut self,
        now: Instant,
        protocol: ProtocolNumber,
        to: Destination,
        traffic: Traffic,
        message: &[u8],
    ) -> bool {
        self.share_air(now);
        let is_gathered = self.gathered.iter().any(|gathered| gathered.to == to);
        let headers =
            if is_gathered { 0 } else { Self::headers_bytes(to) + self.near * FRAME_AIR_BYTES };
        let kind = message.first().copied().unwrap_or_default();
        let bytes = record_bytes(message.len()) + headers;
        self.budget.admit(now, (protocol, kind), traffic, bytes)
    }

    fn accounts(&self) -> &[Account] {
        self.budget.accounts()
    }

    fn transmit(&mut self, now: Instant, frame: &mut Vec<u8>) -> Option<Destination> {
        if self.is_exhausted() {
            return None;
        }
        let is_due = |gathered: &Gathered| self.complete.is_empty() && gathered.due <= now;
        let due = self.gathered.iter().position(is_due);
        if let Some(at) = due {
            self.complete(at);
        }
        if let Some((to, records)) = self.complete.pop_front() {
            self.waiting_bytes -= records.len();
            self.build(now, to, &records, frame);
            self.spare_again(records);
            if due.is_some() && to == Destination::All {
                self.greet_at = None;
            }
            return Some(to);
        }
        if self.greet_at.is_some_and(|at| at <= now) {
            self.greet_at = None;
            let introductions = self.neighbours.len().min(INTRODUCTIONS_MAX) * INTRODUCTION_BYTES;
            if !self.budget.take(now, Self::headers_bytes(Destination::All) + introductions) {
                // However often neighbours ask for proof: a later answer delays their trust, and nothing else.
                self.greet_at = Some(now + GREETS_LATER);
                return None;
            }
            self.build(now, Destination::All, &[], frame);
            return Some(Destination::All);
        }
        None
    }

    fn transmit_at(&self) -> Option<Instant> {
        if self.is_exhausted() {
            return None;
        }
        if !self.complete.is_empty() {
            return Some(Instant::BOOT);
        }
        let due = self.gathered.iter().map(|gathered| gathered.due);
        due.chain(self.greet_at).min()
    }
}

/// Checks that `payload` is well formed to its end; returns what it says of the node of `config`, of its
/// present life if that is among it, and where its records begin.
fn check(
    config: &FramerConfig,
    introduces: bool,
    payload: &[u8],
) -> Result<(Option<Introduction>, usize), Rejected> {
    let (introduction, records) = if introduces {
        let (introductions, records) =
            split_introductions(payload).map_err(|_| Rejected::Malformed)?;
        let own = introductions.filter(|introduction| introduction.of == config.node);
        let present = (config.epoch, config.salt);
        (own.max_by_key(|it| (it.epoch, it.salt) == present), records)
    } else {
        (None, payload)
    };
    let mut rest = records;
    while !rest.is_empty() {
        (_, rest) = split_record(rest).map_err(|_| Rejected::Malformed)?;
    }
    Ok((introduction, payload.len() - records.len()))
}
