//! Datagrams over many hops, where each hop makes sure of the next one.
//!
//! Sources: hop-by-hop acknowledgement and custody as in DSR (RFC 4728 §3.3 and §8.3), waiting times
//! as RFC 6298, measured for what was sent again too (RFC 7323 §4). Routers only choose the next hop
//! ([`Route`]), and need know nothing of loss: over five hops that lose 20 % each, sending once
//! delivers 33 %, this 99 %.
//!
//! A datagram names the life of the next hop that its way rests on. A node that began anew doesn't take
//! what is meant for the one before: its ways are others now, and may lead back. Who sent it tries again,
//! and has heard of the new life by then.
//!
//! Per datagram:
//!
//! ```text
//!               a way                         acknowledged
//!  wants a way ───────► waits for ──────────────────────────────► done
//!     ▲  │              acknowledgement ──┐ time is over:
//!     │  │ no way within     │      ▲     │ sent again
//!     │  ▼ 8 s, or 2 s if    │      └─────┘
//!     │ dropped: others      │
//!     │ need the room        │ sent too often, or the link says that it wasn't delivered:
//!     └──────────────────────┘ LinkFailing is told, and another way asked for, a few times
//! ```
//!
//! Now and then it is watched (`forwarding/watch.rs`) whether a next hop passes on what it takes; a router is told which ones
//! don't ([`NextHopRated`]).

mod copies;
pub(crate) mod watch;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Instant, micros_of};
use tenure_mesh::{
    Awaits, Context, Destination, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question,
    Random, Reception, Serves, Undelivered,
};

use crate::interface::{
    ANY_LIFE, DatagramArrived, LinkDoubted, LinkFailing, NextHopRated, Port, Route, RouteChanged,
    Routed, SendDatagram, Taken,
};
use copies::{Arrival, Arrivals, Repeats};
use watch::Watch;

#[cfg(test)]
mod tests;

/// The most that a datagram's head and its record take of a frame's message.
pub(crate) const HEAD_BYTES_MAX: usize = 29;
/// How many nodes pass a datagram on at most: it makes one hop more.
pub const HOPS_MAX: u8 = 64;
/// The first guess of how long a neighbour takes to acknowledge.
const WAIT_FIRST: Duration = Duration::from_millis(100);
/// No shorter wait was measured while the air was calm than a burst makes it.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Whether this program has what many neighbours take, which a leaf leaves out.
pub(crate) const IN_CROWDS: bool = cfg!(feature = "crowds");
/// How many neighbours' times are remembered.
const TIMES_MAX: usize = 32;
/// An acknowledgement that takes so many microseconds, and so many times as long as the quickest, shows that the air is full.
const LATE_US: u32 = 25_000;
const LATE_TIMES: u32 = 4;
/// The pause between two datagrams when the air has become full, and the longest; a shorter one than the least is none.
const PAUSE_FIRST_US: u32 = 8_000;
const PAUSE_MAX_US: u32 = 160_000;
const PAUSE_MIN_US: u32 = 2_000;
/// Turns are taken no further ahead: the air may be free again before.
const TURNS_WITHIN: Duration = Duration::from_secs(1);
/// A datagram that a neighbour has no room for is given to it again after this.
#[cfg(feature = "crowds")]
const BUSY_PAUSE: Duration = Duration::from_millis(150);
/// A datagram sent so often to a neighbour that doesn't acknowledge puts the link in doubt.
const DOUBTFUL_SENDS: u8 = 4;
/// A datagram that has waited so long for a way leaves its room to one that needs it.
const STRANDED_AT_EASE: Duration = Duration::from_secs(2);
/// Where there is no way, it is asked for again after this, or when the router has one.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// A link that repairs by itself has failed by then, or hasn't.
const LINK_FAILS_WITHIN: Duration = Duration::from_millis(400);

/// How many datagrams are remembered that somebody else watches.
const RELAYED_MAX: usize = 16;
/// Word that a watched datagram came waits so long for company in a frame.
const WITNESS_PATIENCE: Duration = Duration::from_millis(50);

/// How a hop is repaired that lost a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The next hop acknowledges; what it doesn't is sent again.
    Acknowledged,
    /// The link acknowledges and repeats by itself, as 802.11 does, and says when that was in vain
    /// ([`Undelivered`]).
    ByLink,
    /// Not at all: a datagram is sent once.
    Never,
}

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which of the node's lives this is, by boots; [`ANY_LIFE`] to take what is meant for any.
    pub life: u32,
    /// How a hop is repaired.
    pub repair: Repair,
    /// How often a neighbour is sent a datagram that it doesn't acknowledge.
    pub sends_max: u8,
    /// How often another way is asked for.
    pub ways_max: u8,
    /// How long a datagram waits for the router's answer.
    pub patience: Duration,
    /// How long it waits for a way if there is none.
    pub stranded_max: Duration,
    /// The most datagrams that are under way here.
    pub datagrams_max: usize,
    /// The most bytes of theirs.
    pub bytes_max: usize,
    /// How many datagrams that a neighbour may send again are remembered at most, so that a copy isn't passed on.
    pub remembered: usize,
    /// How many sources are remembered of datagrams that ended here, so that none arrives twice.
    pub sources_max: usize,
    /// How many of each source's latest datagrams are; one that comes later is dropped.
    pub numbers_remembered: u32,
    /// Whether it is watched now and then that next hops pass on what they take.
    pub watches: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            life: ANY_LIFE,
            repair: Repair::Acknowledged,
            sends_max: 7,
            ways_max: 8,
            patience: Duration::from_secs(10),
            stranded_max: Duration::from_secs(8),
            datagrams_max: 32,
            bytes_max: 16 * 1024,
            remembered: 512,
            sources_max: 1024,
            numbers_remembered: 960,
            watches: true,
        }
    }
}

/// Datagrams over many hops.
#[derive(Debug)]
pub struct Forwarding {
    config: Config,
    /// The number of the next datagram that begins here.
    number: u32,
    /// The number of the next hop that is made from here.
    hop: u16,
    under_way: Vec<Parcel>,
    /// The datagrams that came to be passed on.
    repeats: Repeats,
    /// The datagrams that ended here.
    arrivals: Arrivals,
    times: Vec<(NodeId, Times)>,
    pace: Pace,
    watch: Watch,
    /// The last hops that were made from here with datagrams that a node before watches.
    relayed: VecDeque<Relayed>,
    /// When the timer is set for, if it is.
    armed: Option<Instant>,
    counters: Counters,
}

/// The counts of forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that began here.
    pub begun: u64,
    /// Datagrams that ended here.
    pub arrived: u64,
    /// Datagrams that were taken to be passed on.
    pub passed_on: u64,
    /// Times that one was sent again.
    pub repeated: u64,
    /// Datagrams that were given up because the router knew no way.
    pub no_way: u64,
    /// Datagrams that were given up because no next hop that the router named took them.
    pub not_taken: u64,
    /// Datagrams that ended here so long after others of their source that they may be copies.
    pub overdue: u64,
    /// Datagrams that weren't taken, for they were meant for an earlier life of the node.
    pub too_late: u64,
    /// Datagrams that had made too many hops.
    pub too_far: u64,
    /// Datagrams for which there was no room.
    pub full: u64,
    /// Datagrams that were watched, whether the next hop passes them on.
    pub watched: u64,
}

/// One datagram in the whole network: where it began, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// Where it began.
    pub source: NodeId,
    /// Its number there.
    pub number: u32,
}

/// A datagram, which the body is, on one hop.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Datagram {
    /// Which one it is.
    pub name: Name,
    /// Where it is to end.
    pub destination: NodeId,
    /// For whom there.
    pub port: Port,
    /// How many hops it may make after this one.
    pub hops_left: u8,
    /// The life of the next hop that is meant.
    pub life: u32,
    /// The number of the hop, which its acknowledgement repeats.
    pub hop: u16,
    /// Which sending on this hop it is, and who watches it.
    pub sending: Sending,
}

/// Which sending of a datagram on a hop: six bits that count those before. And two bits that say who watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending(u8);

impl Sending {
    const COUNT: u8 = 0x3f;
    const WITNESSED: u8 = 0x40;
    const ASKS: u8 = 0x80;

    /// How often the datagram was sent on the hop before.
    pub fn count(self) -> u8 {
        self.0 & Self::COUNT
    }

    fn counted(self, count: u8) -> Self {
        Self(self.0 & !Self::COUNT | count.min(Self::COUNT))
    }

    /// Whether its receiver is to say that it came, for the node before its sender.
    pub fn is_witnessed(self) -> bool {
        self.0 & Self::WITNESSED != 0
    }

    /// Whether its sender asks the node after its receiver to say so.
    pub fn asks(self) -> bool {
        self.0 & Self::ASKS != 0
    }

    fn watched(self, asks: bool, is_witnessed: bool) -> Self {
        let asks = if asks { Self::ASKS } else { 0 };
        let witnessed = if is_witnessed { Self::WITNESSED } else { 0 };
        Self(self.0 & Self::COUNT | asks | witnessed)
    }
}

/// That hop was made, and by which of its sendings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The hop's number.
    pub hop: u16,
    /// Which sending came.
    pub sending: Sending,
}

/// There is no room for the datagram that made that hop.
#[derive(Debug, Serialize, Deserialize)]
pub struct Busy {
    /// The hop's number.
    pub hop: u16,
}

/// A watched datagram came.
#[derive(Debug, Serialize, Deserialize)]
pub struct Witness {
    /// The number of the hop that its receiver made with it.
    hop: u16,
    /// Whether it came to a node after the one that says so.
    passed: bool,
}

/// A hop that was made from here with a datagram that the node before watches.
#[derive(Clone, Copy, Debug)]
struct Relayed {
    to: NodeId,
    hop: u16,
    watcher: (NodeId, u16),
}

/// Something has waited long enough.
#[derive(Debug, Serialize, Deserialize)]
struct Retry;

/// A datagram that is here.
#[derive(Debug)]
struct Parcel {
    datagram: Datagram,
    body: Vec<u8>,
    ways: u8,
    taken_at: Instant,
    /// The node before that watches it, and which hop it was there.
    watcher: Option<(NodeId, u16)>,
    /// Whether its turn comes when it waits no more.
    has_turn: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no way; the router is asked again then.
    Stranded { again: Instant },
    /// Waits for the router's answer, until then.
    WantsWay { until: Instant },
    /// Was sent to `to` so many times, first and last then.
    Sent { to: NodeId, sends: u8, first: Instant, last: Instant, again: Instant },
}

/// How long a neighbour takes to acknowledge (RFC 6298 §2).
#[derive(Clone, Copy, Debug)]
struct Times {
    smoothed: Duration,
    variation: Duration,
}

impl Times {
    fn first(took: Duration) -> Self {
        Self { smoothed: took, variation: took / 2 }
    }

    fn learn(&mut self, took: Duration) {
        let off = self.smoothed.abs_diff(took);
        self.variation = (self.variation * 3 + off) / 4;
        self.smoothed = (self.smoothed * 7 + took) / 8;
    }
}

/// How fast datagrams are given to the air, which all in reach share. When it is full, neighbours take long to acknowledge;
/// so delay sets the pace, as in LEDBAT (RFC 6817 §2.4.2), and not loss, of which a link may have its own.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// How long all neighbours take together, and the quickest of them, in microseconds.
    times: Option<Times>,
    quickest_us: u32,
    /// The pause between two datagrams, in microseconds, and until when it lasts.
    pause_us: u32,
    clear_at: Instant,
    /// When the pause grew last: what was sent before says nothing of it.
    grown_at: Instant,
}

impl Pace {
    /// Learns how long a neighbour took.
    fn learn(&mut self, took: Duration, now: Instant) {
        let took_us = micros_of(took).min(u32::MAX.into()) as u32;
        match &mut self.times {
            Some(times) => times.learn(took),
            None => (self.times, self.quickest_us) = (Some(Times::first(took)), took_us),
        }
        self.quickest_us = self.quickest_us.saturating_add(self.quickest_us / 256).min(took_us);
        if took_us <= LATE_US.max(self.quickest_us.saturating_mul(LATE_TIMES)) {
            self.pause_us -= self.pause_us.div_ceil(4);
        } else if now.since(self.grown_at) >= took {
            self.slow_down(now);
        }
    }

    /// When the next datagram's turn is.
    fn next_turn(&self, now: Instant) -> Instant {
        self.clear_at.max(now)
    }

    /// Takes that turn: the one after it comes later.
    fn take_turn(&mut self, turn: Instant, random: &mut Random) {
        if self.pause_us >= PAUSE_MIN_US {
            self.clear_at = turn + random.around(Duration::from_micros(self.pause_us.into()));
        }
    }

    fn slow_down(&mut self, now: Instant) {
        self.pause_us = (self.pause_us / 2 * 3).clamp(PAUSE_FIRST_US, PAUSE_MAX_US);
        self.grown_at = now;
    }
}

#[cfg(feature = "crowds")]
tenure_mesh::protocol! {
    Forwarding = 2, "forwarding";
    messages { Datagram = 1, Acknowledgement = 2, Witness = 3, Busy = 4 }
    carries { Datagram, Acknowledgement, Witness, Busy }
    timers { Retry = 1 }
    serves { SendDatagram }
    asks { Route }
    hears { Undelivered, RouteChanged }
    tells { DatagramArrived, LinkDoubted, LinkFailing, NextHopRated }
}

#[cfg(not(feature = "crowds"))]
tenure_mesh::protocol! {
    Forwarding = 2, "forwarding";
    messages { Datagram = 1, Acknowledgement = 2, Witness = 3 }
    carries { Datagram, Acknowledgement, Witness }
    timers { Retry = 1 }
    serves { SendDatagram }
    asks { Route }
    hears { Undelivered, RouteChanged }
    tells { DatagramArrived, LinkDoubted, LinkFailing, NextHopRated }
}

impl Forwarding {
    /// Forwarding with what was chosen.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            number: 0,
            hop: 0,
            under_way: Vec::new(),
            repeats: Repeats::new(config.remembered),
            arrivals: Arrivals::new(config.sources_max, config.numbers_remembered),
            times: Vec::new(),
            pace: Pace::default(),
            watch: Watch::default(),
            relayed: VecDeque::new(),
            armed: None,
            counters: Counters::default(),
        }
    }

    /// The counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether there is room for one more datagram, if need be that of those that wait long for a way.
    fn make_room(&mut self, bytes: usize, now: Instant) -> bool {
        while !self.has_room(bytes) {
            let waits_long = |parcel: &&(usize, &Parcel)| {
                let is_stranded = matches!(parcel.1.state, State::Stranded { .. });
                is_stranded && now.since(parcel.1.taken_at) >= STRANDED_AT_EASE
            };
            let parcels = self.under_way.iter().enumerate();
            let longest = parcels.filter(|it| waits_long(&it)).min_by_key(|(_, it)| it.taken_at);
            let Some((at, _)) = longest else { return false };
            self.counters.no_way += 1;
            self.under_way.swap_remove(at);
        }
        true
    }

    /// Whether there is room for one more datagram.
    fn has_room(&self, bytes: usize) -> bool {
        let held: usize = self.under_way.iter().map(|parcel| parcel.body.len()).sum();
        self.under_way.len() < self.config.datagrams_max && held + bytes <= self.config.bytes_max
    }

    /// Takes charge of a datagram, and asks for its way.
    fn take_charge(
        &mut self,
        datagram: Datagram,
        body: &[u8],
        watcher: Option<(NodeId, u16)>,
        context: &mut Context<'_, Self>,
    ) {
        let until = context.now() + self.config.patience;
        let state = State::WantsWay { until };
        let taken_at = context.now();
        let body = body.to_vec();
        self.under_way.push(Parcel {
            datagram,
            body,
            ways: 0,
            taken_at,
            watcher,
            has_turn: false,
            state,
        });
        context.ask(&Route { destination: datagram.destination }, &[]);
        self.arm(context);
    }

    fn send(&mut self, at: usize, to: NodeId, context: &mut Context<'_, Self>) {
        let now = context.now();
        let wait = self.wait(to);
        self.hop = self.hop.wrapping_add(1);
        let parcel = &mut self.under_way[at];
        let (sends, first) = match parcel.state {
            State::Sent { to: before, sends, first, .. } if before == to => (sends + 1, first),
            _ => (1, now),
        };
        // The wait doubles (RFC 6298 §5.5), and is spread so that hidden nodes don't stay in step.
        let wait = (wait * (1 << (sends - 1).min(4))).min(WAIT_MAX);
        let again = match self.config.repair {
            Repair::Acknowledged => now + wait + context.random().below_span(wait / 4),
            Repair::ByLink | Repair::Never => now + LINK_FAILS_WITHIN,
        };
        if sends == DOUBTFUL_SENDS {
            // Before it is given up, the router may find out whether the link is still there.
            context.tell(&LinkDoubted { neighbour: to }, &[]);
        }
        let parcel = &mut self.under_way[at];
        parcel.state = State::Sent { to, sends, first, last: now, again };
        if sends == 1 {
            parcel.datagram.hop = self.hop;
            self.begin_watch(at, to, now);
        } else {
            self.counters.repeated += 1;
        }
        let parcel = &mut self.under_way[at];
        parcel.datagram.sending = parcel.datagram.sending.counted(sends - 1);
        let outgoing =
            Outgoing { to: Destination::One(to), body: &parcel.body, ..Outgoing::default() };
        context.transmit(&parcel.datagram, outgoing);
        if self.config.repair == Repair::Never {
            self.under_way.swap_remove(at);
        }
    }

    /// Notes what is to be said of the datagram at `at`, which is given to `to` as a hop of its own, and asks
    /// for word of it.
    fn begin_watch(&mut self, at: usize, to: NodeId, now: Instant) {
        let parcel = &mut self.under_way[at];
        let hop = parcel.datagram.hop;
        let is_passed_on = parcel.datagram.destination != to;
        let asks = is_passed_on && self.config.watches && self.watch.asks(to, hop, now);
        self.counters.watched += u64::from(asks);
        parcel.datagram.sending = Sending::default().watched(asks, parcel.watcher.is_some());
        if let Some(watcher) = parcel.watcher.filter(|_| watch::IS_ON) {
            if self.relayed.len() >= RELAYED_MAX {
                self.relayed.pop_front();
            }
            self.relayed.push_back(Relayed { to, hop, watcher });
        }
    }

    /// Tells the router what came of watching, if time is over for some of it.
    fn end_watches(&mut self, context: &mut Context<'_, Self>) {
        for rating in self.watch.expire(context.now()) {
            self.tell_rating(rating, context);
        }
    }

    /// Sends an empty datagram to `destination`, whose next hop is `next`, through a neighbour that is suspected
    /// of passing nothing on, if it is time for that.
    fn try_suspected(
        &mut self,
        next: NodeId,
        destination: NodeId,
        context: &mut Context<'_, Self>,
    ) {
        let now = context.now();
        let suspected = watch::IS_ON.then(|| self.watch.tries(next, destination, now)).flatten();
        let Some(neighbour) = suspected.filter(|_| self.has_room(0)) else { return };
        let (taken_at, state) = (now, State::WantsWay { until: now });
        let datagram = self.new_datagram(destination, Port::NOTHING, context.node());
        // It goes no other way.
        let ways = self.config.ways_max;
        self.under_way.push(Parcel {
            datagram,
            body: Vec::new(),
            ways,
            taken_at,
            watcher: None,
            has_turn: false,
            state,
        });
        self.send(self.under_way.len() - 1, neighbour, context);
    }

    /// The head of a datagram that begins here.
    fn new_datagram(&mut self, destination: NodeId, port: Port, own: NodeId) -> Datagram {
        self.number = self.number.wrapping_add(1);
        Datagram {
            name: Name { source: own, number: self.number },
            destination,
            port,
            hops_left: HOPS_MAX,
            life: ANY_LIFE,
            hop: 0,
            sending: Sending::default(),
        }
    }

    fn tell_rating(&self, rating: watch::Rating, context: &mut Context<'_, Self>) {
        let watch::Rating { neighbour, passes_on } = rating;
        context.tell(&NextHopRated { neighbour, passes_on }, &[]);
    }

    /// Another way is asked for, or the datagram given up.
    fn fail(&mut self, at: usize, context: &mut Context<'_, Self>) {
        let (ways_max, patience) = (self.config.ways_max, self.config.patience);
        let parcel = &mut self.under_way[at];
        if let State::Sent { to, .. } = parcel.state {
            self.watch.not_taken(to, parcel.datagram.hop);
            context.tell(&LinkFailing { neighbour: to }, &[]);
        }
        parcel.ways += 1;
        let is_unanswered = matches!(parcel.state, State::WantsWay { .. });
        let is_late = IN_CROWDS && context.now().since(parcel.taken_at) >= self.config.stranded_max;
        if is_unanswered || is_late || parcel.ways >= ways_max {
            let counter = match is_unanswered {
                true => &mut self.counters.no_way,
                false => &mut self.counters.not_taken,
            };
            *counter += 1;
            self.under_way.swap_remove(at);
            return;
        }
        parcel.state = State::WantsWay { until: context.now() + patience };
        context.ask(&Route { destination: parcel.datagram.destination }, &[]);
    }

    /// There is no way, or the neighbour that is next has no room: the datagram waits a little.
    fn strand(&mut self, at: usize, pause: Duration, context: &mut Context<'_, Self>) {
        let (now, stranded_max) = (context.now(), self.config.stranded_max);
        let parcel = &mut self.under_way[at];
        if now.since(parcel.taken_at) < stranded_max {
            parcel.state = State::Stranded { again: now + pause };
        } else {
            self.counters.no_way += 1;
            self.under_way.swap_remove(at);
        }
    }

    /// Whether it is a datagram's turn. Where the air is full, it is to wait for it; one whose turn would come too late is
    /// given up.
    fn has_turn(&mut self, at: usize, context: &mut Context<'_, Self>) -> bool {
        let now = context.now();
        if !IN_CROWDS || core::mem::take(&mut self.under_way[at].has_turn) {
            return true;
        }
        let turn = self.pace.next_turn(now);
        let is_late = turn.since(self.under_way[at].taken_at) >= self.config.stranded_max;
        // What is given up, or waits for its turn to come nearer, takes none of what comes after it.
        if turn > now && is_late {
            self.counters.full += 1;
            self.under_way.swap_remove(at);
            return false;
        }
        if turn.since(now) > TURNS_WITHIN {
            let again = now + context.random().around(TURNS_WITHIN / 2);
            self.under_way[at].state = State::Stranded { again };
            return false;
        }
        self.pace.take_turn(turn, context.random());
        if turn > now {
            let parcel = &mut self.under_way[at];
            parcel.has_turn = true;
            parcel.state = State::Stranded { again: turn };
        }
        turn <= now
    }

    fn ask_again(&mut self, at: usize, context: &mut Context<'_, Self>) {
        let until = context.now() + self.config.patience;
        let parcel = &mut self.under_way[at];
        parcel.state = State::WantsWay { until };
        context.ask(&Route { destination: parcel.datagram.destination }, &[]);
    }

    /// How long to wait for `neighbour`'s acknowledgement.
    fn wait(&self, neighbour: NodeId) -> Duration {
        let times = self.times.iter().find(|(id, _)| *id == neighbour);
        let times = times.map(|(_, times)| *times).or(self.pace.times.filter(|_| IN_CROWDS));
        times.map_or(WAIT_FIRST, |times| {
            (times.smoothed + times.variation * 4).clamp(WAIT_MIN, WAIT_MAX)
        })
    }

    /// Learns how long an acknowledgement took.
    fn learn(&mut self, neighbour: NodeId, took: Duration, now: Instant) {
        if IN_CROWDS {
            self.pace.learn(took, now);
        }
        match self.times.iter_mut().find(|(id, _)| *id == neighbour) {
            Some((_, times)) => times.learn(took),
            None => {
                if self.times.len() >= TIMES_MAX {
                    self.times.swap_remove(0);
                }
                self.times.push((neighbour, Times::first(took)));
            }
        }
    }

    /// Sets the timer for what is due first.
    fn arm(&mut self, context: &mut Context<'_, Self>) {
        let due = |parcel: &Parcel| match parcel.state {
            State::WantsWay { until } => until,
            State::Stranded { again } | State::Sent { again, .. } => again,
        };
        let Some(first) = self.under_way.iter().map(due).min() else { return };
        if self.armed.is_none_or(|armed| first < armed) {
            self.armed = Some(first);
            context.after(first.since(context.now()), &Retry);
        }
    }
}

impl Protocol for Forwarding {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        // Another life begins at another number, so that it isn't taken for a copy of the last one.
        self.number = context.random().number() as u32;
    }
}

impl Serves<SendDatagram> for Forwarding {
    fn serve(
        &mut self,
        SendDatagram { to, port }: SendDatagram,
        question: &Question<'_, SendDatagram>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        if to == context.node() {
            context.tell(&DatagramArrived { from: to, port }, question.body);
            return Some(Taken::UnderWay);
        }
        if question.body.len() + HEAD_BYTES_MAX > context.payload_bytes_max() {
            return Some(Taken::TooLong);
        }
        if !self.make_room(question.body.len(), context.now()) {
            self.counters.full += 1;
            return Some(Taken::Full);
        }
        self.counters.begun += 1;
        let datagram = self.new_datagram(to, port, context.node());
        self.take_charge(datagram, question.body, None, context);
        Some(Taken::UnderWay)
    }
}

impl Awaits<Route> for Forwarding {
    fn answered(
        &mut self,
        Route { destination }: Route,
        reply: Option<Routed>,
        context: &mut Context<'_, Self>,
    ) {
        self.end_watches(context);
        for at in (0..self.under_way.len()).rev() {
            let parcel = &mut self.under_way[at];
            let waits = matches!(parcel.state, State::WantsWay { .. });
            if parcel.datagram.destination != destination || !waits {
                continue;
            }
            match reply {
                Some(Routed { next_hop: Some(next), life }) => {
                    parcel.datagram.life = life;
                    if self.has_turn(at, context) {
                        self.send(at, next, context);
                        self.try_suspected(next, destination, context);
                    }
                }
                _ => self.strand(at, ASK_AGAIN, context),
            }
        }
        self.arm(context);
    }
}

impl Handles<Datagram> for Forwarding {
    fn handle(
        &mut self,
        datagram: Datagram,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let Datagram { name, destination, port, hops_left, life, hop, sending } = datagram;
        if !reception.addressed || name.source == context.node() && hops_left == HOPS_MAX {
            return;
        }
        let ends_here = destination == context.node();
        let knows_lives = life != ANY_LIFE && self.config.life != ANY_LIFE;
        if !ends_here && knows_lives && life != self.config.life {
            self.counters.too_late += 1;
            return;
        }
        if !ends_here && !self.make_room(reception.body.len(), context.now()) {
            // Not acknowledged: the neighbour keeps it, and tries again or another way.
            self.counters.full += 1;
            #[cfg(feature = "crowds")]
            if self.config.repair == Repair::Acknowledged {
                context.send(reception.from, &Busy { hop });
            }
            return;
        }
        if self.config.repair == Repair::Acknowledged {
            context.send(reception.from, &Acknowledgement { hop, sending });
        }
        let arrival = match ends_here {
            true => self.arrivals.note(name, context.now()),
            false => self.repeats.note(reception.from, name, context.now()),
        };
        self.counters.overdue += u64::from(arrival == Arrival::TooLate);
        if arrival != Arrival::First {
            return;
        }
        if sending.is_witnessed() {
            bear_witness(reception.from, Witness { hop, passed: false }, context);
        }
        if ends_here {
            if port != Port::NOTHING {
                self.counters.arrived += 1;
                context.tell(&DatagramArrived { from: name.source, port }, reception.body);
            }
        } else if hops_left == 0 {
            self.counters.too_far += 1;
        } else {
            self.counters.passed_on += 1;
            let datagram = Datagram { hops_left: hops_left.min(HOPS_MAX) - 1, ..datagram };
            let watcher = (watch::IS_ON && sending.asks()).then_some((reception.from, hop));
            self.take_charge(datagram, reception.body, watcher, context);
        }
    }
}

impl Handles<Acknowledgement> for Forwarding {
    fn handle(
        &mut self,
        Acknowledgement { hop, sending }: Acknowledgement,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let by = reception.from;
        let waits = |parcel: &Parcel| {
            parcel.datagram.hop == hop && matches!(parcel.state, State::Sent { to, .. } if to == by)
        };
        let Some(at) = self.under_way.iter().position(waits) else { return };
        if let State::Sent { sends, first, last, .. } = self.under_way[at].state {
            // Which sending it answers, it says (RFC 7323 §4.1): a busy neighbour's late answer to the
            // first one must not look like a quick one to the last.
            let sent = if sending.count() + 1 >= sends { last } else { first };
            let now = context.now();
            self.learn(by, now.since(sent), now);
        }
        self.watch.taken(by, hop, context.now());
        self.under_way.swap_remove(at);
    }
}

#[cfg(feature = "crowds")]
impl Handles<Busy> for Forwarding {
    /// The neighbour is there, and the datagram waits.
    fn handle(
        &mut self,
        Busy { hop }: Busy,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let by = reception.from;
        let waits = |parcel: &Parcel| {
            parcel.datagram.hop == hop && matches!(parcel.state, State::Sent { to, .. } if to == by)
        };
        let Some(at) = self.under_way.iter().position(waits) else { return };
        // One that never has room doesn't set the pace of what goes elsewhere.
        if !self.watch.suspects(by) {
            self.pace.slow_down(context.now());
        }
        if let Some(rating) = self.watch.refused(by, hop, context.now()) {
            self.tell_rating(rating, context);
        }
        let pause = context.random().around(BUSY_PAUSE);
        self.strand(at, pause, context);
        self.arm(context);
    }
}

impl Handles<Witness> for Forwarding {
    fn handle(
        &mut self,
        Witness { hop, passed }: Witness,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        // Without the feature a node says what came to it, and passes no word on.
        if !watch::IS_ON || !reception.addressed {
            return;
        }
        if passed {
            if let Some(rating) = self.watch.came_further(reception.from, hop) {
                self.tell_rating(rating, context);
            }
            return;
        }
        let is_meant = |relayed: &Relayed| relayed.to == reception.from && relayed.hop == hop;
        let at = self.relayed.iter().position(is_meant);
        if let Some(Relayed { watcher: (watcher, hop), .. }) =
            at.and_then(|at| self.relayed.remove(at))
        {
            bear_witness(watcher, Witness { hop, passed: true }, context);
        }
    }
}

fn bear_witness(to: NodeId, witness: Witness, context: &mut Context<'_, Forwarding>) {
    let to = Destination::One(to);
    context.transmit(&witness, Outgoing { to, patience: WITNESS_PATIENCE, body: &[] });
}

impl Expires<Retry> for Forwarding {
    fn expire(&mut self, _: Retry, context: &mut Context<'_, Self>) {
        self.armed = None;
        let (now, is_by_link) = (context.now(), self.config.repair == Repair::ByLink);
        for at in (0..self.under_way.len()).rev() {
            match self.under_way[at].state {
                State::WantsWay { until } if until <= now => self.fail(at, context),
                State::Stranded { again } if again <= now => self.ask_again(at, context),
                State::Sent { again, .. } if again <= now && is_by_link => {
                    // The link would have said that it failed.
                    let Parcel { datagram, state, .. } = self.under_way.swap_remove(at);
                    if let State::Sent { to, .. } = state {
                        self.watch.taken(to, datagram.hop, now);
                    }
                }
                State::Sent { to, sends, again, .. } if again <= now => {
                    if sends < self.config.sends_max {
                        self.send(at, to, context);
                    } else {
                        self.fail(at, context);
                    }
                }
                _ => {}
            }
        }
        self.arm(context);
    }
}

impl Hears<Undelivered> for Forwarding {
    fn hear(
        &mut self,
        Undelivered { neighbour }: Undelivered,
        _: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        for at in (0..self.under_way.len()).rev() {
            // The link itself has tried often enough; a second failure in a row is believed.
            if let State::Sent { to, sends, .. } = self.under_way[at].state
                && to == neighbour
            {
                if sends < 2 { self.send(at, to, context) } else { self.fail(at, context) }
            }
        }
        self.arm(context);
    }
}

impl Hears<RouteChanged> for Forwarding {
    fn hear(&mut self, changed: RouteChanged, _: &[u8], context: &mut Context<'_, Self>) {
        for at in 0..self.under_way.len() {
            let parcel = &self.under_way[at];
            let is_stranded = matches!(parcel.state, State::Stranded { .. }) && !parcel.has_turn;
            if is_stranded && parcel.datagram.destination == changed.destination {
                self.ask_again(at, context);
            }
        }
    }
}
