//! Neighbour discovery: who is in reach, who of them hears this node, and how well.
//!
//! Sources: NHDP (RFC 6130) for the symmetry check, Babel (RFC 8966 §3.4) for hellos that say when
//! the next one comes and for the window of those that arrived, Trickle (RFC 6206) for hellos that
//! become rarer while nothing changes.
//!
//! Per neighbour:
//!
//! ```text
//!            hello                      hello that lists us,
//!  unknown ─────────► one way ────────────────────────────────► both ways
//!     ▲                  │  ▲     and enough of its hellos came     │
//!     │    silence       │  └───────────────────────────────────────┤
//!     └──────────────────┴──────────────────────────────────────────┘
//!                          its hellos no longer list us, or most are lost: one way;
//!                          silence: unknown
//! ```
//!
//! Entering "both ways" tells [`LinkUp`], leaving it [`LinkDown`], a noticeable change within it
//! [`LinkChanged`].

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Reception, Restarted,
};

use crate::interface::{LinkChanged, LinkDown, LinkQuality, LinkUp};

#[cfg(test)]
mod tests;

/// The most neighbours that one hello lists; more take turns.
const LISTED_MAX: usize = 24;
/// A neighbour is gone after so many of its intervals without a hello.
const SILENT_INTERVALS: u32 = 4;
/// How many hellos a link's quality is taken from.
const WINDOW: u32 = 16;
/// A change of quality by so much (255ths) is told.
const NOTICEABLE: u8 = 26;
/// A hello that answers a stranger comes after this at most.
const ANSWER_SPREAD: Duration = Duration::from_millis(40);
/// The unit in which hellos announce the next one.
const INTERVAL_UNIT: Duration = Duration::from_millis(50);

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often hellos come while something changes.
    pub interval_min: Duration,
    /// How often they come once nothing does.
    pub interval_max: Duration,
    /// Links that lose more are not used, in 255ths that must arrive.
    pub quality_min: u8,
    /// The most neighbours that are remembered.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval_min: Duration::from_millis(250),
            interval_max: Duration::from_secs(4),
            quality_min: 64,
            neighbours_max: 64,
        }
    }
}

/// Neighbour discovery.
#[derive(Debug)]
pub struct Discovery {
    config: Config,
    sequence: u16,
    interval: Duration,
    /// When the last hello was sent, and when the next one will be.
    said: Instant,
    next: Instant,
    neighbours: Vec<Neighbour>,
    /// The neighbour that is listed first in the next hello.
    turn: usize,
    sweeping: bool,
}

/// A neighbour, as discovery knows it.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    id: NodeId,
    /// The number of its last hello.
    sequence: u16,
    /// Which of its last 32 hellos came; the lowest bit is the last.
    history: u32,
    /// How many hellos there have been to come, up to [`WINDOW`].
    counted: u32,
    /// Its last word on hearing us, and until when that counts.
    from_us: u8,
    from_us_until: Instant,
    silent_at: Instant,
    signal_dbm: Option<i8>,
    /// The quality that was told last, if the link is up.
    told: Option<LinkQuality>,
}

/// "I am here", with the neighbours that are heard in its body, 7 bytes each: id, quality.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    sequence: u16,
    /// When the next one comes, in units of 50 ms.
    interval: u8,
    /// How many hellos it takes to list all neighbours.
    parts: u8,
}

/// It is time for a hello.
#[derive(Debug, Serialize, Deserialize)]
struct Tick;

/// It is time to look for neighbours that have fallen silent.
#[derive(Debug, Serialize, Deserialize)]
struct Sweep;

tenure_mesh::protocol! {
    Discovery = 1, "discovery";
    messages { Hello = 1 }
    timers { Tick = 1, Sweep = 2 }
    hears { Restarted }
    tells { LinkUp, LinkChanged, LinkDown }
}

impl Discovery {
    /// Discovery with what was chosen.
    pub fn new(config: Config) -> Self {
        Self {
            sequence: 0,
            interval: config.interval_min,
            said: Instant::BOOT,
            next: Instant::BOOT,
            neighbours: Vec::new(),
            turn: 0,
            sweeping: false,
            config,
        }
    }

    /// The neighbours that hear this node and are heard, and how well.
    pub fn links(&self) -> impl Iterator<Item = (NodeId, LinkQuality)> {
        self.neighbours.iter().filter_map(|it| Some((it.id, it.told?)))
    }

    /// The neighbours that are heard, whether they hear this node or not.
    pub fn heard(&self) -> impl Iterator<Item = NodeId> {
        self.neighbours.iter().map(|neighbour| neighbour.id)
    }

    fn say_hello(&mut self, context: &mut Context<'_, Self>) {
        let parts = self.neighbours.len().div_ceil(LISTED_MAX).max(1);
        let count = self.neighbours.len().min(LISTED_MAX);
        let mut body = Vec::with_capacity(count * 7);
        for at in 0..count {
            let neighbour = &self.neighbours[(self.turn + at) % self.neighbours.len()];
            body.extend_from_slice(&neighbour.id.to_bytes());
            body.push(neighbour.arriving());
        }
        self.turn = if parts > 1 { (self.turn + count) % self.neighbours.len() } else { 0 };
        self.sequence = self.sequence.wrapping_add(1);
        self.said = context.now();
        let wait = context.random().around(self.interval);
        self.next = self.said + wait;
        context.after(wait, &Tick);
        let hello = Hello {
            sequence: self.sequence,
            interval: units(self.interval),
            parts: parts.min(255) as u8,
        };
        context.transmit(&hello, Outgoing { body: &body, ..Outgoing::default() });
    }

    /// Lets hellos come often again, and the next one soon.
    fn hurry(&mut self, context: &mut Context<'_, Self>) {
        self.interval = self.config.interval_min;
        let spread = context.random().below_span(ANSWER_SPREAD);
        let soonest = self.said + self.interval / 2;
        let at = (context.now() + spread).max(soonest);
        if at < self.next {
            self.next = at;
            context.after(at.since(context.now()), &Tick);
        }
    }

    /// Finds the neighbour, or makes room for it.
    fn neighbour(&mut self, id: NodeId, sequence: u16, now: Instant) -> (usize, bool) {
        if let Some(at) = self.neighbours.iter().position(|neighbour| neighbour.id == id) {
            return (at, false);
        }
        if self.neighbours.len() >= self.config.neighbours_max {
            // Only a neighbour whose link isn't up makes room, and a stranger takes its place.
            let oldest = self.neighbours.iter().enumerate().filter(|(_, it)| it.told.is_none());
            match oldest.min_by_key(|(_, it)| it.silent_at).map(|(at, _)| at) {
                Some(at) => drop(self.neighbours.swap_remove(at)),
                None => return (usize::MAX, false),
            }
        }
        self.neighbours.push(Neighbour {
            id,
            sequence: sequence.wrapping_sub(1),
            history: 0,
            counted: 0,
            from_us: 0,
            from_us_until: now,
            silent_at: now,
            signal_dbm: None,
            told: None,
        });
        (self.neighbours.len() - 1, true)
    }

    /// Tells what is new about a link.
    fn assess(&mut self, at: usize, context: &mut Context<'_, Self>) {
        let quality_min = self.config.quality_min;
        let neighbour = &mut self.neighbours[at];
        let (id, told) = (neighbour.id, neighbour.told);
        let quality = neighbour.quality(context.now());
        // A link that is up goes down a little later than one that is down goes up.
        let enough = if told.is_some() { quality_min / 2 } else { quality_min };
        let usable = quality.to_us.min(quality.from_us) >= enough.max(1);
        match told {
            None if usable => {
                neighbour.told = Some(quality);
                context.tell(&LinkUp { neighbour: id, quality }, &[]);
                self.hurry(context);
            }
            Some(_) if !usable => {
                neighbour.told = None;
                context.tell(&LinkDown { neighbour: id }, &[]);
                self.hurry(context);
            }
            Some(told) if is_noticeable(told, quality) => {
                neighbour.told = Some(quality);
                context.tell(&LinkChanged { neighbour: id, quality }, &[]);
            }
            _ => {}
        }
    }

    /// Looks again when the first neighbour would be silent for too long.
    fn arm_sweep(&mut self, context: &mut Context<'_, Self>) {
        let first = self.neighbours.iter().map(|it| it.silent_at.min(it.expires_at())).min();
        self.sweeping = first.is_some();
        if let Some(first) = first {
            let wait = first.since(context.now()) + Duration::from_micros(1);
            context.after(wait, &Sweep);
        }
    }
}

impl Neighbour {
    /// Notes that hello `sequence` came; those between it and the last one didn't.
    fn count(&mut self, sequence: u16) {
        let ahead = sequence.wrapping_sub(self.sequence);
        match ahead {
            0 => {}
            // So many were lost, or it counts anew: what came before says nothing.
            WINDOW_U16..0x8000 | 0x8000..=LATE_BELOW => {
                (self.history, self.counted, self.sequence) = (1, 1, sequence);
            }
            1..WINDOW_U16 => {
                self.history = self.history << ahead | 1;
                self.counted = (self.counted + u32::from(ahead)).min(WINDOW);
                self.sequence = sequence;
            }
            // A late one.
            _ => self.history |= 1 << ahead.wrapping_neg(),
        }
    }

    /// Of its hellos, as many came, in 255ths. One hello alone counts for little.
    fn arriving(&self) -> u8 {
        let came = (self.history & ((1 << WINDOW) - 1)).count_ones().min(self.counted);
        (came * 255 / self.counted.max(1)) as u8
    }

    fn quality(&self, now: Instant) -> LinkQuality {
        let from_us = if now < self.from_us_until { self.from_us } else { 0 };
        LinkQuality { to_us: self.arriving(), from_us, signal_dbm: self.signal_dbm }
    }

    /// When what it said of us stops counting, if the link is up by it.
    fn expires_at(&self) -> Instant {
        if self.told.is_some() { self.from_us_until } else { self.silent_at }
    }
}

const WINDOW_U16: u16 = WINDOW as u16;
/// Numbers from here to 0 are of hellos that come late.
const LATE_BELOW: u16 = u16::MAX - WINDOW_U16;

const _: () = assert!(WINDOW < u32::BITS, "the window fits its bits");

impl Protocol for Discovery {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.said = context.now();
        let wait = context.random().below_span(self.config.interval_min / 2);
        self.next = context.now() + wait;
        context.after(wait, &Tick);
    }
}

impl Expires<Tick> for Discovery {
    fn expire(&mut self, _: Tick, context: &mut Context<'_, Self>) {
        self.say_hello(context);
        self.interval = (self.interval * 2).min(self.config.interval_max);
    }
}

impl Expires<Sweep> for Discovery {
    fn expire(&mut self, _: Sweep, context: &mut Context<'_, Self>) {
        let now = context.now();
        for at in (0..self.neighbours.len()).rev() {
            if self.neighbours[at].silent_at <= now {
                self.neighbours[at].history = 0;
            }
            self.assess(at, context);
            if self.neighbours[at].silent_at <= now {
                self.neighbours.swap_remove(at);
            }
        }
        self.arm_sweep(context);
    }
}

impl Handles<Hello> for Discovery {
    fn handle(&mut self, hello: Hello, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (now, node) = (context.now(), context.node());
        let (at, new) = self.neighbour(reception.from, hello.sequence, now);
        let Some(neighbour) = self.neighbours.get_mut(at) else { return };
        neighbour.count(hello.sequence);
        neighbour.signal_dbm = reception.signal_dbm;
        // Hellos become rarer by a factor of two at most, and are a quarter late at most.
        let interval = INTERVAL_UNIT * u32::from(hello.interval.max(1));
        neighbour.silent_at = now + interval * SILENT_INTERVALS;
        let (entries, _) = reception.body.as_chunks::<7>();
        let ours = node.to_bytes();
        match entries.iter().find(|entry| entry[..6] == ours) {
            Some([.., quality]) => {
                neighbour.from_us = *quality;
                let turns = u32::from(hello.parts.max(1));
                neighbour.from_us_until = now + interval * SILENT_INTERVALS * turns;
            }
            None if hello.parts <= 1 => neighbour.from_us = 0,
            None => {}
        }
        self.assess(at, context);
        if new {
            self.hurry(context);
        }
        if !self.sweeping {
            self.arm_sweep(context);
        }
    }
}

impl Hears<Restarted> for Discovery {
    fn hear(&mut self, restarted: Restarted, _: &[u8], context: &mut Context<'_, Self>) {
        let known = self.neighbours.iter().position(|it| it.id == restarted.neighbour);
        let Some(at) = known else { return };
        if self.neighbours[at].told.take().is_some() {
            context.tell(&LinkDown { neighbour: restarted.neighbour }, &[]);
        }
        self.neighbours.swap_remove(at);
    }
}

/// An interval in units, rounded up.
fn units(interval: Duration) -> u8 {
    let units = interval.as_millis().div_ceil(INTERVAL_UNIT.as_millis());
    u8::try_from(units).unwrap_or(u8::MAX)
}

fn is_noticeable(told: LinkQuality, now: LinkQuality) -> bool {
    told.to_us.abs_diff(now.to_us) >= NOTICEABLE || told.from_us.abs_diff(now.from_us) >= NOTICEABLE
}
