//! Aggregation up a tree that mends itself: GAP (Dam and Stadler, "A Generic Protocol for Network State
//! Aggregation", RVK 2005).
//!
//! ```text
//!   every interval, and soon after a change:  say root, level, parent, partial sum, total
//!
//!   neighbours' vectors ──▶ parent: the neighbour nearest to the lowest root that lives
//!                      ──▶ children: those that name this node as parent
//!                      ──▶ partial sum: own value and the children's
//!                      ──▶ total: at the root the partial sum, elsewhere the parent's total
//! ```
//!
//! The paper is given a root; here it is the node with the lowest id, and lives as long as it counts up
//! the beats that everybody passes on, from life to life. Vectors are also said anew when nothing changed, so that one
//! that was lost matters for an interval only; and every node knows the total, not the root alone.

use alloc::collections::BTreeMap;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, Expires, Handles, Hears, NodeId, Protocol, Reception};

use crate::aggregation::{Contributes, answer};
use crate::interface::{
    Contribute, LinkChanged, LinkDown, LinkQuality, LinkUp, Summarise, Summary,
};

#[cfg(test)]
mod tests;

/// A root whose beats stand still for so many intervals has stopped.
const SILENT_INTERVALS: u32 = 8;
/// A neighbour's vector counts for so many intervals: over a lossy link, several are lost in a row now
/// and then. A neighbour that is gone is forgotten with its link, and sooner.
const VECTOR_INTERVALS: u32 = 12;
/// How much nearer to the root another neighbour must be to become the parent in its place: whoever
/// changes is counted twice, or not at all, until both have heard of it.
const STEADINESS: u16 = 2;
/// A neighbour whose link is down is forgotten after so many intervals, for links that lose much are down
/// now and then for a moment, on one side only.
const DOWN_INTERVALS: u32 = 6;
/// A change is said within this, together with those that come meanwhile.
const SOON: Duration = Duration::from_millis(60);

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The node's own value.
    pub value: f64,
    /// Which life of the node this is, by boots: higher than that of any life before it.
    pub life: u32,
    /// The time between vectors while nothing changes.
    pub interval: Duration,
    /// The most neighbours.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { value: 0.0, life: 0, interval: Duration::from_secs(1), neighbours_max: 48 }
    }
}

/// The message of a node (§3: the update vector).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vector {
    root: NodeId,
    beat: RootBeat,
    level: u8,
    parent: NodeId,
    partial: Partial,
    total: Option<Partial>,
}

/// A sign of life of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RootBeat {
    life: u32,
    number: u32,
}

/// The values of some nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Partial {
    count: u32,
    sum: f64,
    min: f64,
    max: f64,
}

/// Time to say the vector.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beat;

/// Time to say what changed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Change;

/// The protocol.
#[derive(Debug)]
pub struct Gap {
    config: Config,
    /// This node's own, for the case that it is the root.
    beat: RootBeat,
    neighbours: BTreeMap<NodeId, Neighbour>,
    /// When the beats of roots were last seen to go on.
    roots: BTreeMap<NodeId, (RootBeat, Instant)>,
    said: Option<Vector>,
    changes: bool,
    /// The parent has changed, and that is to be said once more: whoever misses it counts this node still.
    repeats: bool,
}

/// A usable neighbour.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    /// Its last message.
    said: Option<(Vector, Instant)>,
    /// How far it is to it, in levels.
    levels: u8,
    /// Since when its link is down.
    down_since: Option<Instant>,
}

tenure_mesh::protocol! {
    Gap = 0x28, "gap";
    messages { Vector = 1 }
    timers { Beat = 1, Change = 2 }
    serves { Summarise, Contribute }
    hears { LinkUp, LinkChanged, LinkDown }
}

impl Gap {
    /// The protocol, on a node with the value that `config` says.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            beat: RootBeat { life: config.life, number: 0 },
            neighbours: BTreeMap::new(),
            roots: BTreeMap::new(),
            said: None,
            changes: false,
            repeats: false,
        }
    }

    /// The sum of all values, if that is known.
    pub fn summary(&self) -> Option<Summary> {
        let Partial { count, sum, min, max } = self.said?.total?;
        Some(Summary { count: count.into(), sum, min, max })
    }

    /// Computes the vector anew (§3.2).
    fn vector(&mut self, own: NodeId, now: Instant) -> Vector {
        let vector_counts = self.config.interval * VECTOR_INTERVALS;
        let root_counts = self.config.interval * SILENT_INTERVALS;
        let fresh = self.neighbours.iter().filter_map(|(id, neighbour)| {
            let (vector, at) = neighbour.said?;
            let level = u16::from(vector.level) + u16::from(neighbour.levels);
            (now.since(at) < vector_counts).then_some((*id, level, vector))
        });
        let lives = |root: NodeId| {
            self.roots.get(&root).is_some_and(|(_, at)| now.since(*at) < root_counts)
        };
        let above = |level: u16, vector: &Vector| {
            vector.root < own
                && vector.parent != own
                && level <= u8::MAX.into()
                && lives(vector.root)
        };
        let parent_before = self.said.map_or(own, |said| said.parent);
        let may_lead = fresh.clone().filter(|(_, level, vector)| above(*level, vector));
        let parent = may_lead.min_by_key(|(neighbour, level, vector)| {
            let is_other = *neighbour != parent_before;
            let level = level + if is_other { STEADINESS } else { 0 };
            (vector.root, level, is_other, *neighbour)
        });
        let mut partial = Partial::of(self.config.value);
        for (_, _, vector) in fresh.filter(|(_, _, vector)| vector.parent == own) {
            partial.add(&vector.partial);
        }
        match parent {
            Some((parent, level, above)) => Vector {
                root: above.root,
                beat: self.roots.get(&above.root).map_or(above.beat, |(beat, _)| *beat),
                level: level as u8,
                parent,
                partial,
                total: above.total,
            },
            None => Vector {
                root: own,
                beat: self.beat,
                level: 0,
                parent: own,
                partial,
                total: Some(partial),
            },
        }
    }

    fn say(&mut self, context: &mut Context<'_, Self>) {
        let vector = self.vector(context.node(), context.now());
        let before = self.said.replace(vector);
        self.repeats = before.is_none_or(|before| before.parent != vector.parent);
        context.broadcast(&vector);
        if self.repeats {
            self.plan_change(context);
        }
    }

    fn plan_change(&mut self, context: &mut Context<'_, Self>) {
        if !core::mem::replace(&mut self.changes, true) {
            let after = SOON / 2 + context.random().below_span(SOON / 2);
            context.after(after, &Change);
        }
    }

    /// Sees to it that a change is said soon. Beats alone are no change.
    fn note_change(&mut self, context: &mut Context<'_, Self>) {
        let vector = self.vector(context.node(), context.now());
        let is_same = self.said.is_some_and(|said| Vector { beat: said.beat, ..vector } == said);
        if !is_same {
            self.plan_change(context);
        }
    }
}

impl Protocol for Gap {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().below_span(self.config.interval / 4);
        context.after(first, &Beat);
    }
}

impl Expires<Beat> for Gap {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        context.after_about(self.config.interval, &Beat);
        self.beat.number = self.beat.number.saturating_add(1);
        let (now, remembered) = (context.now(), self.config.interval * SILENT_INTERVALS * 8);
        self.roots.retain(|_, (_, at)| now.since(*at) < remembered);
        let down_counts = self.config.interval * DOWN_INTERVALS;
        let is_gone = |since: Instant| now.since(since) >= down_counts;
        self.neighbours.retain(|_, neighbour| !neighbour.down_since.is_some_and(is_gone));
        self.say(context);
    }
}

impl Expires<Change> for Gap {
    fn expire(&mut self, _: Change, context: &mut Context<'_, Self>) {
        self.changes = false;
        self.say(context);
    }
}

impl Handles<Vector> for Gap {
    fn handle(
        &mut self,
        vector: Vector,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let now = context.now();
        let is_sound = vector.partial.is_sound() && vector.total.is_none_or(|it| it.is_sound());
        let Some(neighbour) = self.neighbours.get_mut(&reception.from) else { return };
        if !is_sound {
            return;
        }
        neighbour.said = Some((vector, now));
        if let Some((beat, at)) = self.roots.get_mut(&vector.root) {
            if vector.beat > *beat {
                (*beat, *at) = (vector.beat, now);
            }
        } else if self.roots.len() < 2 * self.config.neighbours_max {
            self.roots.insert(vector.root, (vector.beat, now));
        }
        self.note_change(context);
    }
}

impl Hears<LinkUp> for Gap {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        if self.neighbours.len() < self.config.neighbours_max {
            let levels = levels_of(up.quality);
            let neighbour = self.neighbours.entry(up.neighbour);
            let neighbour = neighbour.or_insert(Neighbour { said: None, levels, down_since: None });
            (neighbour.levels, neighbour.down_since) = (levels, None);
        }
    }
}

impl Hears<LinkChanged> for Gap {
    fn hear(&mut self, changed: LinkChanged, _: &[u8], _: &mut Context<'_, Self>) {
        if let Some(neighbour) = self.neighbours.get_mut(&changed.neighbour) {
            neighbour.levels = levels_of(changed.quality);
        }
    }
}

impl Hears<LinkDown> for Gap {
    fn hear(&mut self, down: LinkDown, _: &[u8], context: &mut Context<'_, Self>) {
        if let Some(neighbour) = self.neighbours.get_mut(&down.neighbour) {
            neighbour.down_since.get_or_insert(context.now());
        }
    }
}

impl Contributes for Gap {
    fn summary(&self) -> Option<Summary> {
        self.summary()
    }

    fn value(&mut self) -> &mut f64 {
        &mut self.config.value
    }

    fn value_changed(&mut self, context: &mut Context<'_, Self>) {
        self.note_change(context);
    }
}

answer! { [] Gap }

/// How far it is over a link, in levels: what loses much is a long way.
fn levels_of(quality: LinkQuality) -> u8 {
    quality.etx().div_ceil(256).clamp(1, 8) as u8
}

impl Partial {
    fn of(value: f64) -> Self {
        Self { count: 1, sum: value, min: value, max: value }
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn is_sound(&self) -> bool {
        self.sum.is_finite() && self.min.is_finite() && self.max.is_finite()
    }
}
