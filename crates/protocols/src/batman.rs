//! Routing by originator messages: B.A.T.M.A.N. IV (draft-wunderlich-openmesh-manet-routing-00, and the
//! transmission quality of batman-adv's routing algorithm IV).
//!
//! ```text
//!   every interval:  say an originator message (OGM): own id, sequence number, quality 255
//!
//!   an OGM comes ──own, from a neighbour──▶ count the echo: how well that neighbour hears us
//!        │
//!        ├──sent by us before──▶ drop (echo rule)
//!        ├──link isn't heard both ways──▶ drop, but repeat a neighbour's own so that it can tell
//!        ▼
//!   quality so far × link, averaged over the last OGMs of that originator by that neighbour
//!        │
//!        ├──best feasible neighbour for the originator──▶ next hop; repeat the OGM
//!        └──another──▶ remember only
//! ```
//!
//! No node knows a path, only for each originator the neighbour by which its messages come best. In the
//! original, next hops form circles while links change. Here a neighbour is feasible as a next hop only if
//! the last OGM that it said is better than each that this node has repeated: newer, or as new and of
//! better quality (the feasibility condition of RFC 8966 §3.5.1, with an OGM's number as sequence number).
//! So along next hops what was repeated gets strictly better, and no way comes back. What a neighbour said
//! counts for the life in which it did, as with [`babel`](crate::babel). A neighbour that isn't the best
//! one to its own originator is answered by an echo alone, of quality 0, which says nothing of ways
//! (batman-adv: NOT_BEST_NEXT_HOP).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question, Reception, Restarted,
    Serves,
};

use crate::interface::{ANY_LIFE, LinkFailing, Route, RouteChanged, Routed};

#[cfg(test)]
mod tests;

/// The best quality.
const QUALITY_MAX: u16 = 255;
/// The cost of a hop beside its losses, of 255 (draft §5.3: a hop penalty).
const HOP_PENALTY: u16 = 15;
/// OGMs that are looked back on (draft §4.2: the sliding window).
const WINDOW: u32 = 64;
/// Qualities of the last OGMs by one neighbour that are averaged.
const AVERAGED: usize = 5;
/// An OGM is repeated over so many hops at most.
const HOPS_MAX: u8 = 64;
/// OGMs wait so long for others to share a frame with.
const PATIENCE: Duration = Duration::from_millis(60);
/// An originator is forgotten that was silent for so many intervals (draft §4.4: the purge timeout).
const PURGED_AFTER: u32 = 64;
/// A next hop is dropped whose OGMs of that originator are missing for so many intervals.
const STALE_AFTER: u32 = 8;

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time between own OGMs.
    pub interval: Duration,
    /// The most originators that are known.
    pub originators_max: usize,
    /// The most neighbours that are heard.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), originators_max: 256, neighbours_max: 48 }
    }
}

/// An originator message (draft §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ogm {
    originator: NodeId,
    /// Which of the originator's lives.
    boot: u32,
    sequence: u32,
    /// The neighbour from which the sender had it.
    previous: NodeId,
    /// The share of frames, of 255, that arrive on the way so far.
    quality: u8,
    hops: u8,
    /// The sender heard it from the originator itself.
    is_direct: bool,
}

/// Time for an OGM.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beat;

/// The protocol.
#[derive(Debug)]
pub struct Batman {
    config: Config,
    boot: u32,
    sequence: u32,
    links: BTreeMap<NodeId, Link>,
    originators: BTreeMap<NodeId, Originator>,
}

/// The link to a neighbour.
#[derive(Debug, Default)]
struct Link {
    /// OGMs of the neighbour itself that were heard.
    heard: Window,
    /// Own OGMs that the neighbour repeated.
    echoed: Window,
    /// Which of the neighbour's lives that is, by its own OGMs.
    life: Option<u32>,
}

#[derive(Debug)]
struct Originator {
    boot: u32,
    sequence: u32,
    heard_at: Instant,
    /// By neighbour.
    ways: Vec<Way>,
    next: Option<NodeId>,
    /// The best that this node has said of it.
    told: Option<Said>,
}

/// One neighbour's knowledge of an originator.
#[derive(Debug)]
struct Way {
    neighbour: NodeId,
    /// The last OGM that came this way, and in which of the neighbour's lives.
    said: Said,
    life: u32,
    qualities: [u8; AVERAGED],
    at: usize,
    heard_at: Instant,
}

/// An OGM's word on the way to its originator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    sequence: u32,
    quality: u8,
}

/// The last numbers that came, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    highest: Option<u32>,
    bits: u64,
}

tenure_mesh::protocol! {
    Batman = 0x22, "batman";
    messages { Ogm = 1 }
    timers { Beat = 1 }
    serves { Route }
    hears { LinkFailing, Restarted }
    tells { RouteChanged }
}

impl Batman {
    /// The router in the life of number `boot`, which is higher than that of any life before.
    pub fn new(boot: u32, config: Config) -> Self {
        Self { config, boot, sequence: 0, links: BTreeMap::new(), originators: BTreeMap::new() }
    }

    /// The next hop to a node, and in which of its lives.
    pub fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        let originator = self.originators.get(&to)?;
        let next = originator.next?;
        let way = originator.ways.iter().find(|way| way.neighbour == next)?;
        Some((next, way.life))
    }

    /// How well the link to `neighbour` carries there, of 255: of own frames, as many arrive as echoes
    /// come of those that would be heard (TQ = EQ / RQ).
    fn link_quality(&self, neighbour: NodeId) -> u16 {
        let Some(link) = self.links.get(&neighbour) else { return 0 };
        let received = u32::from(link.heard.share(link.heard.highest.unwrap_or(0)));
        let echoed = u32::from(link.echoed.share(self.sequence));
        if received == 0 {
            return 0;
        }
        let sent = (echoed * u32::from(QUALITY_MAX) / received).min(QUALITY_MAX.into());
        // A link over which little comes back is worth less than its better direction:
        // 1 - (1 - RQ)³ (batman-adv: asymmetric penalty).
        let lost = u32::from(QUALITY_MAX) - received;
        let penalty = u32::from(QUALITY_MAX) - lost * lost / 255 * lost / 255;
        (sent * penalty / u32::from(QUALITY_MAX)) as u16
    }

    /// Counts what an OGM says of links: the echo of an own one, or a neighbour's own.
    fn sense(&mut self, ogm: &Ogm, from: NodeId, own: NodeId) {
        if !self.links.contains_key(&from) && self.links.len() >= self.config.neighbours_max {
            return;
        }
        let link = self.links.entry(from).or_default();
        if ogm.originator == from && link.life.is_none_or(|life| ogm.boot > life) {
            // Echoes may have come before.
            if link.life.is_some() {
                *link = Link::default();
            }
            link.life = Some(ogm.boot);
        }
        if ogm.originator == own && ogm.boot == self.boot && ogm.is_direct {
            link.echoed.note(ogm.sequence);
        } else if ogm.originator == from && link.life == Some(ogm.boot) {
            link.heard.note(ogm.sequence);
        }
    }

    /// Writes down a way to an originator; whether the OGM is new, and comes by the best way.
    fn learn(&mut self, ogm: &Ogm, from: NodeId, quality: u8, now: Instant) -> Option<bool> {
        let life = self.links.get(&from)?.life?;
        let is_known = self.originators.contains_key(&ogm.originator);
        if !is_known && self.originators.len() >= self.config.originators_max {
            return None;
        }
        let fresh = || Originator {
            boot: ogm.boot,
            sequence: ogm.sequence.wrapping_sub(1),
            heard_at: now,
            ways: Vec::new(),
            next: None,
            told: None,
        };
        let originator = self.originators.entry(ogm.originator).or_insert_with(fresh);
        if ogm.boot < originator.boot {
            return None;
        }
        if ogm.boot > originator.boot {
            *originator = Originator { next: originator.next, ..fresh() };
        }
        let ahead = ogm.sequence.wrapping_sub(originator.sequence) as i32;
        if ahead < -(WINDOW as i32) {
            return None;
        }
        let is_new = ahead > 0;
        if is_new {
            originator.sequence = ogm.sequence;
            originator.heard_at = now;
            // A neighbour that doesn't bring this one brings nothing: qualities of the others sink.
            let others = originator.ways.iter_mut().filter(|way| way.neighbour != from);
            others.for_each(|way| way.push(0));
        }
        let neighbours_max = self.config.neighbours_max;
        let at = originator.ways.iter().position(|way| way.neighbour == from);
        let at = match at {
            Some(at) => at,
            None if originator.ways.len() >= neighbours_max => return None,
            None => {
                let said = Said { sequence: ogm.sequence.wrapping_sub(1), quality: 0 };
                let qualities = [0; AVERAGED];
                let way = Way { neighbour: from, said, life, qualities, at: 0, heard_at: now };
                originator.ways.push(way);
                originator.ways.len() - 1
            }
        };
        let way = &mut originator.ways[at];
        if way.said.sequence == ogm.sequence {
            return None;
        }
        way.said = Said { sequence: ogm.sequence, quality: ogm.quality };
        way.life = life;
        way.heard_at = now;
        if is_new {
            way.push(quality);
        } else {
            way.replace(quality);
        }
        Some(is_new)
    }

    /// Chooses the feasible neighbour by which an originator's messages come best.
    fn choose(&mut self, to: NodeId, context: &mut Context<'_, Self>) {
        let stale_after = self.config.interval * STALE_AFTER;
        let Some(originator) = self.originators.get_mut(&to) else { return };
        let now = context.now();
        originator.ways.retain(|way| now.since(way.heard_at) < stale_after);
        let told = originator.told;
        let feasible = |way: &&Way| told.is_none_or(|told| way.said.is_better_than(told));
        let usable = originator.ways.iter().filter(feasible).filter(|way| way.quality() > 0);
        let best = usable.max_by_key(|way| {
            let is_present = originator.next == Some(way.neighbour);
            (way.quality(), is_present, way.neighbour)
        });
        let next = best.map(|way| way.neighbour);
        if next != originator.next {
            originator.next = next;
            context.tell(&RouteChanged { destination: to, next_hop: next }, &[]);
        }
    }

    /// Drops what was said by a neighbour that lives anew, or takes nothing any more.
    fn drop_ways(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        let affected: Vec<NodeId> = self.originators.keys().copied().collect();
        for to in affected {
            if let Some(originator) = self.originators.get_mut(&to) {
                originator.ways.retain(|way| way.neighbour != neighbour);
            }
            self.choose(to, context);
        }
    }

    /// Says an OGM again; one of quality 0 is an echo that neighbours sense their links by, and no more.
    fn repeat(&mut self, ogm: &Ogm, from: NodeId, quality: u8, context: &mut Context<'_, Self>) {
        if ogm.hops >= HOPS_MAX {
            return;
        }
        let said = Said { sequence: ogm.sequence, quality };
        if quality > 0
            && let Some(originator) = self.originators.get_mut(&ogm.originator)
            && originator.told.is_none_or(|told| said.is_better_than(told))
        {
            originator.told = Some(said);
        }
        let repeated = Ogm {
            previous: from,
            quality,
            hops: ogm.hops + 1,
            is_direct: ogm.originator == from,
            ..*ogm
        };
        context.transmit(&repeated, Outgoing { patience: PATIENCE, ..Outgoing::default() });
    }
}

impl Protocol for Batman {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().below_span(self.config.interval / 4);
        context.after(first, &Beat);
    }
}

impl Expires<Beat> for Batman {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        let pause = context.random().around(self.config.interval);
        context.after(pause, &Beat);
        self.sequence = self.sequence.wrapping_add(1);
        let own = context.node();
        let ogm = Ogm {
            originator: own,
            boot: self.boot,
            sequence: self.sequence,
            previous: own,
            quality: QUALITY_MAX as u8,
            hops: 0,
            is_direct: false,
        };
        context.broadcast(&ogm);
        let now = context.now();
        let purged_after = self.config.interval * PURGED_AFTER;
        self.originators.retain(|_, originator| now.since(originator.heard_at) < purged_after);
        let known: Vec<NodeId> = self.originators.keys().copied().collect();
        known.into_iter().for_each(|to| self.choose(to, context));
    }
}

impl Handles<Ogm> for Batman {
    fn handle(&mut self, ogm: Ogm, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let (own, from) = (context.node(), reception.from);
        self.sense(&ogm, from, own);
        // Own ones, and those that this node has repeated, have done their work.
        if ogm.originator == own || ogm.previous == own {
            return;
        }
        let link = self.link_quality(from);
        if ogm.quality == 0 {
            return;
        }
        if link == 0 {
            // Heard one way so far. The neighbour learns by the echo that it is heard.
            if ogm.originator == from {
                self.repeat(&ogm, from, 0, context);
            }
            return;
        }
        let quality = u16::from(ogm.quality) * link / QUALITY_MAX;
        let quality = (quality * (QUALITY_MAX - HOP_PENALTY) / QUALITY_MAX) as u8;
        let learnt = self.learn(&ogm, from, quality, context.now());
        self.choose(ogm.originator, context);
        let next = self.next_hop(ogm.originator).map(|(next, _)| next);
        let comes_by_best = next == Some(from);
        let is_first = learnt == Some(true) || (learnt.is_some() && comes_by_best);
        if is_first && comes_by_best {
            self.repeat(&ogm, from, quality, context);
        } else if ogm.originator == from {
            self.repeat(&ogm, from, 0, context);
        }
    }
}

impl Hears<LinkFailing> for Batman {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], context: &mut Context<'_, Self>) {
        self.drop_ways(failing.neighbour, context);
    }
}

impl Hears<Restarted> for Batman {
    fn hear(&mut self, restarted: Restarted, _: &[u8], context: &mut Context<'_, Self>) {
        self.links.remove(&restarted.neighbour);
        self.drop_ways(restarted.neighbour, context);
    }
}

impl Serves<Route> for Batman {
    fn serve(
        &mut self,
        request: Route,
        _: &Question<'_, Route>,
        _: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        let next = self.next_hop(request.destination);
        let next_hop = next.map(|(next, _)| next);
        Some(Routed { next_hop, life: next.map_or(ANY_LIFE, |(_, life)| life) })
    }
}

impl Said {
    fn is_better_than(self, other: Self) -> bool {
        let ahead = self.sequence.wrapping_sub(other.sequence) as i32;
        ahead > 0 || (ahead == 0 && self.quality > other.quality)
    }
}

impl Way {
    fn push(&mut self, quality: u8) {
        self.at = (self.at + 1) % AVERAGED;
        self.qualities[self.at] = quality;
    }

    /// The OGM had come by another neighbour before, for which a 0 was put here.
    fn replace(&mut self, quality: u8) {
        self.qualities[self.at] = quality;
    }

    /// The average of those that came (draft: zeros count only once there is something).
    fn quality(&self) -> u8 {
        let count = self.qualities.iter().filter(|quality| **quality > 0).count();
        let sum: u32 = self.qualities.iter().map(|quality| u32::from(*quality)).sum();
        // Gaps weigh as gaps: a way that brings every second message is half as good.
        if count == 0 { 0 } else { (sum / AVERAGED as u32).max(1) as u8 }
    }
}

impl Window {
    fn note(&mut self, number: u32) {
        let Some(highest) = self.highest else {
            *self = Self { highest: Some(number), bits: 1 };
            return;
        };
        let ahead = number.wrapping_sub(highest) as i32;
        if ahead > 0 {
            self.bits = self.bits.checked_shl(ahead as u32).unwrap_or(0) | 1;
            self.highest = Some(number);
        } else if ahead > -(WINDOW as i32) {
            self.bits |= 1 << -ahead;
        } else {
            *self = Self { highest: Some(number), bits: 1 };
        }
    }

    /// The share that came of the numbers up to `latest`, of 255, over as many as there were, and at
    /// most [`WINDOW`].
    fn share(&self, latest: u32) -> u8 {
        let Some(highest) = self.highest else { return 0 };
        let missing = latest.wrapping_sub(highest).min(WINDOW);
        let bits = self.bits.checked_shl(missing).unwrap_or(0);
        let span = WINDOW - bits.leading_zeros();
        (255 * bits.count_ones()).checked_div(span).unwrap_or(0) as u8
    }
}
