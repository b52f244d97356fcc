//! Routes, and which of them can't be part of a loop (RFC 8966 §2.4, §3.5, §3.6).
//!
//! Invariants, for each destination and all nodes together:
//! - The feasibility distance of a node is the best distance that it ever told its neighbours, by
//!   sequence number first (§3.5.1, §3.7.3).
//! - A route is selected only if its neighbour's distance is strictly better than that. So along a
//!   chain of next hops feasibility distances get strictly better, and no chain comes back.
//!
//! Nodes are lives of nodes here: an offer belongs to the boot of the neighbour that made it, a boot
//! begins without feasibility distances and without having told any, and an earlier one leads nowhere:
//! [forwarding](crate::forwarding) takes nothing that is meant for it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::NodeId;

use super::INFINITE;

/// How long a feasibility distance is kept of a destination that nobody knows a way to (§3.7.3:
/// the source table's garbage-collection time).
const FORGET_AFTER: Duration = Duration::from_secs(180);

/// A destination's sequence number: which of its boots, and a number within it (§2.5).
///
/// RFC 8966 counts modulo 2¹⁶ and forgets at a reboot; the boot in front makes an order of it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seqno {
    /// Which boot of the destination.
    pub boot: u32,
    /// How often it was asked for a newer one since.
    pub number: u32,
}

/// How far somebody says a destination is, and by which sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distance {
    /// The destination's sequence number.
    pub seqno: Seqno,
    /// The cost of the way; [`INFINITE`] if there is none.
    pub metric: u16,
}

impl Distance {
    /// Whether a route at this distance can be used by a node whose feasibility distance is `other`
    /// (§3.5.1).
    pub fn is_better_than(self, other: Self) -> bool {
        self.seqno > other.seqno || (self.seqno == other.seqno && self.metric < other.metric)
    }
}

/// A line of the table, as neighbours are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Whom it leads to.
    pub destination: NodeId,
    /// How far that is.
    pub distance: Distance,
}

/// What selecting anew came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whether the next hop is another one.
    pub is_changed: bool,
    /// Whether neighbours must hear of it.
    pub news: News,
    /// The sequence number to ask for, if a newer one would help.
    pub wanted: Option<Seqno>,
}

/// How much neighbours need to hear of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// Not at all.
    None,
    /// When there is time: a way is longer or shorter than was told.
    Later,
    /// Soon: there is a way where there was none.
    Soon,
    /// At once: others may use a way that is none any more.
    AtOnce,
}

/// Everything known about ways to destinations.
#[derive(Debug)]
pub struct Table {
    own: NodeId,
    own_seqno: Seqno,
    own_version: u32,
    /// Counts what was told; each line told has the number at which that was.
    version: u32,
    destinations: BTreeMap<NodeId, Destination>,
    /// Which line was told at which number.
    told: BTreeMap<u32, NodeId>,
    costs: Vec<(NodeId, u16)>,
    destinations_max: usize,
}

#[derive(Debug, Default)]
struct Destination {
    /// What each neighbour says.
    offers: Vec<(NodeId, Distance)>,
    selected: Option<NodeId>,
    feasibility: Option<Distance>,
    told: Option<Distance>,
    told_at: Instant,
    version: u32,
}

impl Table {
    /// The table of node `own` in its boot number `boot`; others hear of the way to it if
    /// `is_destination`.
    pub fn new(own: NodeId, boot: u32, is_destination: bool, destinations_max: usize) -> Self {
        Self {
            own,
            own_seqno: Seqno { boot, number: 0 },
            own_version: is_destination.into(),
            version: is_destination.into(),
            destinations: BTreeMap::new(),
            told: is_destination.then_some((1, own)).into_iter().collect(),
            costs: Vec::new(),
            destinations_max,
        }
    }

    /// How many lines were told so far.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// How many destinations it holds.
    pub fn count(&self) -> usize {
        self.destinations.len()
    }

    /// The destinations in the table.
    pub fn destinations(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.destinations.keys().copied()
    }

    /// The neighbour over which a destination is reached, and how far it is.
    pub fn route(&self, to: NodeId) -> Option<(NodeId, Distance)> {
        self.destinations.get(&to)?.selected_route(&self.costs)
    }

    /// The feasibility distance to a destination.
    pub fn feasibility(&self, to: NodeId) -> Option<Distance> {
        self.destinations.get(&to)?.feasibility
    }

    /// A neighbour other than `not` that says it knows a way, whether or not that way may be used;
    /// to pass a request on to.
    pub fn any_way(&self, to: NodeId, not: Option<NodeId>) -> Option<NodeId> {
        let known = self.destinations.get(&to)?;
        let ways = known.offers.iter().filter(|(neighbour, _)| Some(*neighbour) != not);
        let ways = ways.filter(|(neighbour, _)| cost_of(&self.costs, *neighbour) < INFINITE);
        ways.min_by_key(|(_, distance)| distance.metric).map(|(neighbour, _)| *neighbour)
    }

    /// The cost of the link to a neighbour.
    pub fn cost(&self, neighbour: NodeId) -> u16 {
        cost_of(&self.costs, neighbour)
    }

    /// Sets the cost of a link; gives the destinations that have to be selected anew.
    pub fn set_cost(&mut self, neighbour: NodeId, cost: u16) -> Vec<NodeId> {
        let before = self.cost(neighbour);
        match self.costs.binary_search_by_key(&neighbour, |(known, _)| *known) {
            Ok(at) => self.costs[at].1 = cost,
            Err(at) => self.costs.insert(at, (neighbour, cost)),
        }
        match cost.cmp(&before) {
            Ordering::Less => self.offered_by(neighbour),
            Ordering::Equal => Vec::new(),
            // What wasn't chosen isn't for being worse.
            Ordering::Greater => self.reached_over(neighbour),
        }
    }

    /// Forgets a neighbour and what it said; gives the destinations that have to be selected anew.
    pub fn forget(&mut self, neighbour: NodeId) -> Vec<NodeId> {
        self.costs.retain(|(known, _)| *known != neighbour);
        let affected = self.offered_by(neighbour);
        for destination in &affected {
            if let Some(known) = self.destinations.get_mut(destination) {
                known.offers.retain(|(from, _)| *from != neighbour);
            }
        }
        affected
    }

    /// Writes down what a neighbour says; `false` if the choice of a route is the same with it
    /// (§3.5.3).
    pub fn learn(&mut self, from: NodeId, entry: Entry, now: Instant) -> bool {
        let Entry { destination, distance } = entry;
        if destination == self.own {
            return false;
        }
        let known = match self.destinations.get_mut(&destination) {
            Some(known) => known,
            None => {
                let is_full = self.destinations.len() >= self.destinations_max;
                if distance.metric == INFINITE || (is_full && !self.make_room(now)) {
                    return false;
                }
                self.destinations.entry(destination).or_default()
            }
        };
        let at = known.offers.iter().position(|(neighbour, _)| *neighbour == from);
        match at {
            Some(at) if distance.metric == INFINITE => drop(known.offers.swap_remove(at)),
            Some(at) if known.offers[at].1 == distance => return false,
            Some(at) => known.offers[at].1 = distance,
            None if distance.metric == INFINITE => return false,
            None => known.offers.push((from, distance)),
        }
        let metric = distance.metric.saturating_add(cost_of(&self.costs, from));
        let present = known.selected_route(&self.costs);
        present.is_none_or(|(neighbour, present)| neighbour == from || metric < present.metric)
    }

    /// Chooses the best of the routes that may be used (§3.6).
    ///
    /// The present one stays unless another is better by an eighth: a link's cost is an estimate,
    /// and routes that flap with it cost more than they gain.
    pub fn select(&mut self, to: NodeId) -> Selection {
        let Some(known) = self.destinations.get_mut(&to) else {
            return Selection { is_changed: false, news: News::None, wanted: None };
        };
        let before = known.selected;
        let best = known.usable(&self.costs).min_by_key(|(neighbour, distance)| {
            let is_present = before == Some(*neighbour);
            let metric = u32::from(distance.metric);
            let handicap = if is_present { 0 } else { metric / 8 + 16 };
            (metric + handicap, *neighbour)
        });
        known.selected = best.map(|(neighbour, _)| neighbour);
        let is_changed = before != known.selected;
        let news = known.news(best.map(|(_, distance)| distance));
        let wanted = known.wanted(best.map(|(_, distance)| distance), &self.costs);
        Selection { is_changed, news, wanted }
    }

    /// Writes down that neighbours are told the present distance to a destination, which thereby
    /// becomes its feasibility distance if it is better (§3.7.3).
    pub fn tell(&mut self, to: NodeId, now: Instant) {
        let Some(known) = self.destinations.get_mut(&to) else { return };
        let (seqno, told) = match known.selected_route(&self.costs) {
            Some((_, distance)) => (distance.seqno, Some(distance)),
            None => (known.told.map_or(Seqno::default(), |told| told.seqno), None),
        };
        self.version += 1;
        self.told.remove(&known.version);
        self.told.insert(self.version, to);
        known.version = self.version;
        known.told_at = now;
        known.told = Some(told.unwrap_or(Distance { seqno, metric: INFINITE }));
        if let Some(distance) = told
            && known.feasibility.is_none_or(|feasibility| distance.is_better_than(feasibility))
        {
            known.feasibility = Some(distance);
        }
    }

    /// What was told after version `after` and up to version `last`, with the version of each line,
    /// oldest first.
    pub fn told_between(&self, after: u32, last: u32) -> impl Iterator<Item = (u32, Entry)> + '_ {
        // A range that ends before it begins panics.
        let versions = (Bound::Excluded(after), Bound::Included(last.max(after)));
        self.told.range(versions).filter_map(|(version, destination)| {
            let distance = if *destination == self.own {
                Distance { seqno: self.own_seqno, metric: 0 }
            } else {
                self.destinations.get(destination)?.told?
            };
            Some((*version, Entry { destination: *destination, distance }))
        })
    }

    /// The own sequence number.
    pub fn own_seqno(&self) -> Seqno {
        self.own_seqno
    }

    /// Makes the own sequence number at least `wanted`, if it may be; whether it changed (§3.8.1.2).
    pub fn raise_own_seqno(&mut self, wanted: Seqno) -> bool {
        // A request for a number more than one ahead is no honest one: nobody was told of it.
        let next = self.own_seqno.next();
        let is_due = wanted == next && self.own_version > 0;
        if is_due {
            self.own_seqno = next;
            self.version += 1;
            self.told.remove(&self.own_version);
            self.told.insert(self.version, self.own);
            self.own_version = self.version;
        }
        is_due
    }

    fn offered_by(&self, neighbour: NodeId) -> Vec<NodeId> {
        let offered = self
            .destinations
            .iter()
            .filter(|(_, known)| known.offers.iter().any(|(from, _)| *from == neighbour));
        offered.map(|(destination, _)| *destination).collect()
    }

    fn reached_over(&self, neighbour: NodeId) -> Vec<NodeId> {
        let reached = self.destinations.iter();
        let reached = reached.filter(|(_, known)| known.selected == Some(neighbour));
        reached.map(|(destination, _)| *destination).collect()
    }

    /// Drops a destination that nobody offers, and that neighbours know to be out of reach.
    fn make_room(&mut self, now: Instant) -> bool {
        let dead = self
            .destinations
            .iter()
            .find(|(_, known)| known.offers.is_empty() && now.since(known.told_at) > FORGET_AFTER);
        let Some(destination) = dead.map(|(destination, _)| *destination) else { return false };
        if let Some(removed) = self.destinations.remove(&destination) {
            self.told.remove(&removed.version);
        }
        true
    }
}

impl Destination {
    /// Routes that may be used: whose neighbour is nearer than ever was told from here. With the
    /// distance from here.
    fn usable<'a>(
        &'a self,
        costs: &'a [(NodeId, u16)],
    ) -> impl Iterator<Item = (NodeId, Distance)> + 'a {
        self.offers.iter().filter_map(move |(neighbour, offered)| {
            let feasible = self.feasibility.is_none_or(|own| offered.is_better_than(own));
            let metric = offered.metric.saturating_add(cost_of(costs, *neighbour));
            let usable = feasible && metric < INFINITE;
            usable.then_some((*neighbour, Distance { seqno: offered.seqno, metric }))
        })
    }

    fn selected_route(&self, costs: &[(NodeId, u16)]) -> Option<(NodeId, Distance)> {
        let selected = self.selected?;
        let (_, offered) = self.offers.iter().find(|(neighbour, _)| *neighbour == selected)?;
        let metric = offered.metric.saturating_add(cost_of(costs, selected));
        (metric < INFINITE).then_some((selected, Distance { seqno: offered.seqno, metric }))
    }

    /// The sequence number to ask for if `best` is the best route that may be used. What was told
    /// with an older number binds nobody any more once the destination has a newer one (§3.8.2.1).
    fn wanted(&self, best: Option<Distance>, costs: &[(NodeId, u16)]) -> Option<Seqno> {
        let feasibility = self.feasibility?;
        let Some(best) = best else { return Some(feasibility.seqno.next()) };
        let shortest = self
            .offers
            .iter()
            .map(|(neighbour, offered)| offered.metric.saturating_add(cost_of(costs, *neighbour)));
        let is_much_longer = shortest.min().is_some_and(|metric| metric < best.metric / 2);
        is_much_longer.then(|| feasibility.seqno.next())
    }

    /// How much neighbours need to hear that the distance is `now`.
    fn news(&self, now: Option<Distance>) -> News {
        match (self.told, now) {
            (None, None) => News::None,
            (Some(told), None) if told.metric == INFINITE => News::None,
            (Some(_), None) => News::AtOnce,
            (None, Some(_)) => News::Soon,
            (Some(told), Some(_)) if told.metric == INFINITE => News::Soon,
            (Some(told), Some(now)) => {
                // A half: what is told needn't be exact, only never better than what was true.
                // A newer number alone is told to whoever asks for it: told to all at once, each
                // request would cost a message of every node in the network.
                let is_far_off = now.metric.abs_diff(told.metric) > told.metric / 2;
                if is_far_off { News::Later } else { News::None }
            }
        }
    }
}

impl Seqno {
    /// The number after this one.
    pub fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }
}

fn cost_of(costs: &[(NodeId, u16)], neighbour: NodeId) -> u16 {
    let at = costs.binary_search_by_key(&neighbour, |(known, _)| *known);
    at.map_or(INFINITE, |at| costs[at].1)
}
