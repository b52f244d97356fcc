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

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::NodeId;

use super::INFINITE;
use super::log::{Line, Log};
use crate::forwarding::watch;

/// How long a feasibility distance is kept of a destination that nobody knows a way to (§3.7.3:
/// the source table's garbage-collection time).
const FORGET_AFTER: Duration = Duration::from_secs(180);
/// A sequence number so many boots ahead or behind is none that its destination has come to by itself.
const BOOTS_APART_MAX: u32 = 16;
/// A destination that was out of reach for so long is believed anew, if it is offered with such a number.
const BELIEVED_ANEW_AFTER: Duration = Duration::from_secs(8);
/// The extra cost of a way over a neighbour that is thought to pass nothing on. It is more than the way around
/// the neighbour costs, and others are told so.
const DETOUR: u16 = 4096;
/// 2⁶⁴ over the golden ratio: its products spread over all bits (Knuth, The Art of Computer Programming, §6.4).
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
/// The most destinations that places can tell apart.
const DESTINATIONS_MAX: usize = u16::MAX as usize;

/// A destination's sequence number: which of its boots, and a number within it (§2.5).
///
/// RFC 8966 counts modulo 2¹⁶ and forgets at a reboot; the boot in front makes an order of it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seqno {
    /// Which boot of the destination; or a later one, once a number was invented for it that high.
    pub boot: u32,
    /// How often it was asked for a newer one since, or had to outbid one that was invented.
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
    /// No way.
    const NOWHERE: Self = Self { seqno: Seqno { boot: 0, number: 0 }, metric: INFINITE };

    /// Whether a route at this distance can be used by a node whose feasibility distance is `other`
    /// (§3.5.1).
    pub fn is_better_than(self, other: Self) -> bool {
        self.seqno > other.seqno || (self.seqno == other.seqno && self.metric < other.metric)
    }

    /// A part of a [digest](Table::told_digest): that a `destination` is so far.
    fn digest(self, destination: NodeId) -> u16 {
        if self.metric == INFINITE {
            return 0;
        }
        let Seqno { boot, number } = self.seqno;
        let mix = |mixed: u64, part: u64| (mixed ^ part).wrapping_mul(MIX).rotate_left(32);
        let parts = [u64::from(boot) << 32 | u64::from(number), self.metric.into()];
        parts.into_iter().fold(mix(0, destination.number()), mix) as u16
    }

    /// Whether it is [better](Self::is_better_than), and its number one that the destination can have come to.
    fn is_feasible(self, own: Self) -> bool {
        self.is_better_than(own) && self.seqno.is_near(own.seqno)
    }
}

/// A line of the table, as neighbours are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The destination.
    pub destination: NodeId,
    /// How far that is.
    pub distance: Distance,
}

/// Where a destination stands in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u16);

/// The outcome of selecting anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// For which destination.
    pub destination: NodeId,
    /// The neighbour over which it is reached now, and how far it is.
    pub route: Option<(NodeId, Distance)>,
    /// Whether the next hop is another one.
    pub is_changed: bool,
    /// Whether neighbours must hear of it.
    pub news: News,
    /// The sequence number to ask for, if a newer one would help.
    pub wanted: Option<Seqno>,
    /// Whether nothing is thought to come through by the chosen way.
    pub is_blocked: bool,
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
///
/// Lines of neighbours stand in columns, one for each neighbour, in the order in which destinations
/// were first heard of: a neighbour heard of them in about the same order, so that its lines are
/// written one beside the other.
#[derive(Debug)]
pub struct Table {
    own: NodeId,
    own_seqno: Seqno,
    own_version: u32,
    /// Counts what was told; each line told has the number at which that was.
    version: u32,
    destinations: Vec<Destination>,
    /// Known destinations by id, and where in `destinations` each stands.
    ids: Vec<NodeId>,
    places: Vec<Place>,
    columns: Vec<Column>,
    /// Where the next line that is learnt probably belongs: behind the one before.
    expected: usize,
    log: Log,
    destinations_max: usize,
}

/// A neighbour's lines; nobody's, if the neighbour was forgotten.
#[derive(Debug)]
struct Column {
    neighbour: Option<NodeId>,
    /// Of the link to it.
    cost: u16,
    /// Whether it is thought to pass on what it is given for others.
    passes_on: bool,
    /// By place; a metric that is infinite, or none at all, offers nothing.
    offers: Vec<Distance>,
    /// The neighbour's line on this node, which no way is chosen by.
    to_own: Distance,
}

#[derive(Debug)]
struct Destination {
    id: NodeId,
    /// The column of the next hop.
    selected: Option<u16>,
    feasibility: Option<Distance>,
    told: Option<Distance>,
    told_at: Instant,
    version: u32,
}

impl Table {
    /// The table of node `own` in its boot number `boot`; others hear of the way to it if
    /// `is_destination`.
    pub fn new(own: NodeId, boot: u32, is_destination: bool, destinations_max: usize) -> Self {
        let mut log = Log::default();
        if is_destination {
            log.push(1, Line::Own);
        }
        Self {
            own,
            own_seqno: Seqno { boot, number: 0 },
            own_version: is_destination.into(),
            version: is_destination.into(),
            destinations: Vec::new(),
            ids: Vec::new(),
            places: Vec::new(),
            columns: Vec::new(),
            expected: 0,
            log,
            destinations_max: destinations_max.min(DESTINATIONS_MAX),
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
        self.ids.iter().copied()
    }

    /// The neighbour over which a destination is reached, and how far it is.
    pub fn route(&self, to: NodeId) -> Option<(NodeId, Distance)> {
        let (column, distance) = self.route_at(self.place(to)?)?;
        Some((self.columns[column].neighbour?, distance))
    }

    /// The feasibility distance to a destination.
    pub fn feasibility(&self, to: NodeId) -> Option<Distance> {
        self.destinations[self.place(to)?.index()].feasibility
    }

    /// A neighbour other than `not` that says it knows a way, whether or not that way may be used;
    /// to pass a request on to.
    pub fn any_way(&self, to: NodeId, not: Option<NodeId>) -> Option<NodeId> {
        let place = self.place(to)?;
        let columns = self.columns.iter().filter(|it| it.neighbour.is_some() && it.cost < INFINITE);
        let others = columns.filter(|column| column.neighbour != not);
        let ways = others.filter_map(|column| Some((column.offer(place)?, column.neighbour?)));
        ways.min_by_key(|(offer, _)| offer.metric).map(|(_, neighbour)| neighbour)
    }

    /// Whether the way to any other node leads over a neighbour.
    pub(super) fn leads_over(&self, neighbour: NodeId) -> bool {
        let at = self.column(neighbour).map(|at| at as u16);
        let mut destinations = self.destinations.iter();
        at.is_some() && destinations.any(|known| known.selected == at && known.id != neighbour)
    }

    /// The cost of the link to a neighbour.
    pub fn cost(&self, neighbour: NodeId) -> u16 {
        self.column(neighbour).map_or(INFINITE, |at| self.columns[at].cost)
    }

    /// Sets the cost of a link; gives the destinations that have to be selected anew.
    pub fn set_cost(&mut self, neighbour: NodeId, cost: u16) -> Vec<Place> {
        let at = self.column_of(neighbour);
        let before = core::mem::replace(&mut self.columns[at].cost, cost);
        let is_affected = |(place, known): &(Place, &Destination)| {
            if known.selected == Some(at as u16) {
                let present = self.route_at(*place).map(|(_, distance)| distance);
                return cost > before || known.news(present) > News::None;
            }
            // A route that wasn't selected isn't selected for becoming worse.
            let offer = self.columns[at].offer(*place).filter(|_| cost < before);
            offer
                .is_some_and(|offer| self.may_win(*place, self.columns[at].metric(known.id, offer)))
        };
        let known = Place::all().zip(&self.destinations);
        known.filter(is_affected).map(|(place, _)| place).collect()
    }

    /// Whether the way to a destination is one that something is thought to come through by.
    pub fn has_open_way(&self, to: NodeId) -> bool {
        let selected = self.place(to).and_then(|place| self.route_at(place));
        selected.is_some_and(|(at, _)| !self.columns[at].is_blocked(to))
    }

    /// Notes whether a neighbour passes on what it is given for others; returns the destinations that have to be
    /// selected anew.
    pub fn set_passes_on(&mut self, neighbour: NodeId, passes_on: bool) -> Vec<Place> {
        let Some(at) = self.column(neighbour) else { return Vec::new() };
        let column = &mut self.columns[at];
        if core::mem::replace(&mut column.passes_on, passes_on) == passes_on {
            return Vec::new();
        }
        let is_offered = |place: &Place| column.offer(*place).is_some();
        Place::all().take(column.offers.len()).filter(is_offered).collect()
    }

    /// Forgets a neighbour and what it said; gives the destinations that have to be selected anew.
    pub fn forget(&mut self, neighbour: NodeId) -> Vec<Place> {
        let Some(at) = self.column(neighbour) else { return Vec::new() };
        let offers = Place::all().zip(&self.columns[at].offers);
        let affected = offers.filter(|(_, offer)| offer.metric < INFINITE);
        let affected = affected.map(|(place, _)| place).collect();
        self.columns[at] = Column::default();
        affected
    }

    /// Writes down what a neighbour says; gives the destination if it has to be selected anew, and
    /// `None` if the choice of a route is the same with it (§3.5.3).
    pub fn learn(&mut self, from: NodeId, entry: Entry, now: Instant) -> Option<Place> {
        let Entry { destination, distance } = entry;
        if destination == self.own {
            let at = self.column_of(from);
            self.columns[at].to_own = distance;
            return None;
        }
        let expected = self.destinations.get(self.expected);
        let place = match expected.filter(|known| known.id == destination) {
            Some(_) => Some(Place(self.expected as u16)),
            None => self.place(destination),
        };
        let place = match place {
            Some(place) => place,
            None if distance.metric == INFINITE => return None,
            None => self.add(destination, now)?,
        };
        self.expected = place.index() + 1;
        let at = self.column_of(from);
        let column = &mut self.columns[at];
        if column.offers.len() <= place.index() {
            column.offers.resize(place.index() + 1, Distance::NOWHERE);
        }
        let before = core::mem::replace(&mut column.offers[place.index()], distance);
        if before == distance || before.metric.min(distance.metric) == INFINITE {
            return None;
        }
        let metric = column.metric(destination, distance);
        let is_selected = self.destinations[place.index()].selected == Some(at as u16);
        (is_selected || self.may_win(place, metric)).then_some(place)
    }

    /// Chooses the best of the routes that may be used (§3.6).
    ///
    /// The present one stays unless another is better by an eighth: a link's cost is an estimate,
    /// and routes that flap with it cost more than they gain.
    pub fn select(&mut self, place: Place) -> Selection {
        let known = &self.destinations[place.index()];
        let (before, feasibility) = (known.selected, known.feasibility);
        let mut shortest = INFINITE;
        let mut best: Option<((u32, NodeId), usize, Distance)> = None;
        for (at, column) in self.columns.iter().enumerate() {
            let (Some(neighbour), Some(offer)) = (column.neighbour, column.offer(place)) else {
                continue;
            };
            let metric = column.metric(known.id, offer);
            shortest = shortest.min(metric);
            let is_feasible = feasibility.is_none_or(|own| offer.is_feasible(own));
            if metric == INFINITE || !is_feasible {
                continue;
            }
            let is_present = before == Some(at as u16);
            let rank = if is_present { metric.into() } else { with_handicap(metric) };
            if best.is_none_or(|(least, ..)| (rank, neighbour) < least) {
                best = Some(((rank, neighbour), at, Distance { seqno: offer.seqno, metric }));
            }
        }
        let is_blocked = best.is_some_and(|(_, at, _)| self.columns[at].is_blocked(known.id));
        let known = &mut self.destinations[place.index()];
        known.selected = best.map(|(_, at, _)| at as u16);
        let distance = best.map(|(_, _, distance)| distance);
        Selection {
            destination: known.id,
            route: best.map(|((_, neighbour), _, distance)| (neighbour, distance)),
            is_changed: before != known.selected,
            news: known.news(distance),
            wanted: known.wanted(distance, shortest),
            is_blocked,
        }
    }

    /// Writes down that neighbours are told the present distance to a destination, which thereby
    /// becomes its feasibility distance if it is better (§3.7.3).
    pub fn tell(&mut self, place: Place, now: Instant) {
        let present = self.route_at(place).map(|(_, distance)| distance);
        let known = &mut self.destinations[place.index()];
        let seqno = known.told.map_or(Seqno::default(), |told| told.seqno);
        self.version += 1;
        self.log.remove(known.version);
        self.log.push(self.version, Line::To(place));
        known.version = self.version;
        known.told_at = now;
        known.told = Some(present.unwrap_or(Distance { seqno, metric: INFINITE }));
        if let Some(distance) = present
            && known.feasibility.is_none_or(|feasibility| distance.is_better_than(feasibility))
        {
            known.feasibility = Some(distance);
        }
    }

    /// The lines after version `after` and up to version `last`, each with its version,
    /// oldest first.
    pub fn told_between(&self, after: u32, last: u32) -> impl Iterator<Item = (u32, Entry)> + '_ {
        self.log.between(after, last).filter_map(|(version, line)| {
            let (destination, distance) = match line {
                Line::Own => (self.own, Distance { seqno: self.own_seqno, metric: 0 }),
                Line::To(place) => {
                    let known = &self.destinations[place.index()];
                    (known.id, known.told?)
                }
            };
            Some((version, Entry { destination, distance }))
        })
    }

    /// A digest of the lines that neighbours were told: the sum over those that lead somewhere, in any order.
    pub(super) fn told_digest(&self) -> u16 {
        let own = Distance { seqno: self.own_seqno, metric: 0 };
        let own = (self.own_version > 0).then(|| own.digest(self.own));
        let told = self.destinations.iter().filter_map(|it| Some(it.told?.digest(it.id)));
        own.into_iter().chain(told).fold(0, u16::wrapping_add)
    }

    /// The same digest of a neighbour's lines as they are known here; `None` if there is no room for all of them.
    pub(super) fn learnt_digest(&self, neighbour: NodeId) -> Option<u16> {
        let has_room = self.destinations.len() < self.destinations_max;
        let column = &self.columns[self.column(neighbour).filter(|_| has_room)?];
        let offers = self.destinations.iter().zip(&column.offers);
        let offers = offers.map(|(known, offer)| offer.digest(known.id));
        Some(offers.fold(column.to_own.digest(self.own), u16::wrapping_add))
    }

    /// Forgets what a neighbour said, and not the link to it; gives the destinations that have to be selected anew.
    pub(super) fn forget_lines(&mut self, neighbour: NodeId) -> Vec<Place> {
        let cost = self.cost(neighbour);
        let affected = self.forget(neighbour);
        self.set_cost(neighbour, cost);
        affected
    }

    /// The own sequence number.
    pub fn own_seqno(&self) -> Seqno {
        self.own_seqno
    }

    /// The sequence number to ask a destination for that there is no way to; `None` if nothing is known of it.
    pub fn next_seqno(&self, destination: NodeId) -> Option<Seqno> {
        let known = &self.destinations[self.place(destination)?.index()];
        known.feasibility.map(|feasibility| feasibility.seqno.next())
    }

    /// Outbids a sequence number that somebody else invented for this node: whoever was told it believes no
    /// lower one. Returns whether the own one changed. One that is too far ahead, nobody believes for long.
    pub fn outbid(&mut self, invented: Seqno) -> bool {
        invented > self.own_seqno && self.raise_own_seqno(invented.next())
    }

    /// Makes the own sequence number at least `wanted`, if it may be; whether it changed (§3.8.1.2). A number
    /// more than one ahead is asked for by those who believed a lie.
    pub fn raise_own_seqno(&mut self, wanted: Seqno) -> bool {
        let own = self.own_seqno;
        let is_due = wanted > own && wanted.is_near(own) && self.own_version > 0;
        if is_due {
            self.own_seqno = wanted;
            self.version += 1;
            self.log.remove(self.own_version);
            self.log.push(self.version, Line::Own);
            self.own_version = self.version;
        }
        is_due
    }

    /// Forgets the feasibility distance of a destination that has been out of reach for a while, if it is
    /// offered with a sequence number that can't follow: one of the two was a lie, or the destination's flash
    /// was put back. Nobody else counts on what this node told, for it withdrew that long ago. Returns which
    /// destination that was, and where it stands: it has to be selected anew.
    pub fn believe_anew(&mut self, now: Instant) -> Option<(NodeId, Place)> {
        let columns = &self.columns;
        let mut known = Place::all().zip(&mut self.destinations);
        known.find_map(|(place, known)| {
            let told = known.told.filter(|told| told.metric == INFINITE)?;
            let is_strange = |offer: Distance| !offer.seqno.is_near(told.seqno);
            let mut offers = columns.iter().filter_map(|column| column.offer(place));
            let is_lost = known.feasibility.is_some()
                && now.since(known.told_at) >= BELIEVED_ANEW_AFTER
                && offers.any(is_strange);
            is_lost.then(|| {
                known.feasibility = None;
                (known.id, place)
            })
        })
    }

    /// Where a destination stands.
    pub fn place(&self, destination: NodeId) -> Option<Place> {
        self.ids.binary_search(&destination).ok().map(|at| self.places[at])
    }

    fn column(&self, neighbour: NodeId) -> Option<usize> {
        self.columns.iter().position(|column| column.neighbour == Some(neighbour))
    }

    /// The column of a neighbour, which may be new.
    fn column_of(&mut self, neighbour: NodeId) -> usize {
        let known = self.column(neighbour);
        let free = || self.columns.iter().position(|column| column.neighbour.is_none());
        let at = known.or_else(free).unwrap_or(self.columns.len());
        if at == self.columns.len() {
            self.columns.push(Column::default());
        }
        self.columns[at].neighbour = Some(neighbour);
        at
    }

    /// The selected column, and how far it is by it.
    fn route_at(&self, place: Place) -> Option<(usize, Distance)> {
        let selected = usize::from(self.destinations[place.index()].selected?);
        let column = &self.columns[selected];
        let offer = column.offer(place)?;
        let metric = column.metric(self.destinations[place.index()].id, offer);
        (metric < INFINITE).then_some((selected, Distance { seqno: offer.seqno, metric }))
    }

    /// Whether a way of that metric, if it may be used, would take the place of the present one.
    fn may_win(&self, place: Place, metric: u16) -> bool {
        let present = self.route_at(place);
        present.is_none_or(|(_, present)| with_handicap(metric) <= u32::from(present.metric))
    }

    /// A place for a destination that isn't in the table, if there is one left.
    fn add(&mut self, id: NodeId, now: Instant) -> Option<Place> {
        let fresh = Destination {
            id,
            selected: None,
            feasibility: None,
            told: None,
            told_at: Instant::BOOT,
            version: 0,
        };
        let place = if self.destinations.len() < self.destinations_max {
            self.destinations.push(fresh);
            // There are no more than `DESTINATIONS_MAX`.
            Place(self.destinations.len() as u16 - 1)
        } else {
            let place = self.dead(now)?;
            let dead = core::mem::replace(&mut self.destinations[place.index()], fresh);
            self.log.remove(dead.version);
            if let Ok(at) = self.ids.binary_search(&dead.id) {
                self.ids.remove(at);
                self.places.remove(at);
            }
            place
        };
        let at = self.ids.partition_point(|known| *known < id);
        self.ids.insert(at, id);
        self.places.insert(at, place);
        Some(place)
    }

    /// A destination that nobody offers, and that neighbours know to be out of reach.
    fn dead(&self, now: Instant) -> Option<Place> {
        let mut known = Place::all().zip(&self.destinations);
        let dead = known.find(|(place, known)| {
            let is_offered = self.columns.iter().any(|column| column.offer(*place).is_some());
            !is_offered && now.since(known.told_at) > FORGET_AFTER
        });
        dead.map(|(place, _)| place)
    }
}

impl Place {
    fn all() -> impl Iterator<Item = Self> {
        (0..=u16::MAX).map(Self)
    }

    fn index(self) -> usize {
        self.0.into()
    }
}

/// The metric of a route that would take the place of the present one.
fn with_handicap(metric: u16) -> u32 {
    u32::from(metric) + u32::from(metric / 8) + 16
}

impl Default for Column {
    /// Nobody's.
    fn default() -> Self {
        let (offers, to_own) = (Vec::new(), Distance::NOWHERE);
        Self { neighbour: None, cost: INFINITE, passes_on: true, offers, to_own }
    }
}

impl Column {
    /// How far `destination` is by the neighbour's `offer`.
    fn metric(&self, destination: NodeId, offer: Distance) -> u16 {
        let detour = if self.is_blocked(destination) { DETOUR } else { 0 };
        offer.metric.saturating_add(self.cost).saturating_add(detour)
    }

    /// Whether nothing comes through to `destination` by this neighbour.
    fn is_blocked(&self, destination: NodeId) -> bool {
        watch::IS_ON && !self.passes_on && self.neighbour != Some(destination)
    }

    /// The neighbour's line on the destination at `place`, if it knows a way.
    fn offer(&self, place: Place) -> Option<Distance> {
        self.offers.get(place.index()).copied().filter(|offer| offer.metric < INFINITE)
    }
}

impl Destination {
    /// The sequence number to ask for if `best` is the best route that may be used, and `shortest` the
    /// shortest of all. What was told with an older number binds nobody any more once the destination
    /// has a newer one (§3.8.2.1).
    fn wanted(&self, best: Option<Distance>, shortest: u16) -> Option<Seqno> {
        let next = self.feasibility?.seqno.next();
        best.is_none_or(|best| shortest < best.metric / 2).then_some(next)
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
        match self.number.checked_add(1) {
            Some(number) => Self { number, ..self },
            None => Self { boot: self.boot.saturating_add(1), number: 0 },
        }
    }

    /// Whether a destination that has the one can have had the other.
    fn is_near(self, other: Self) -> bool {
        self.boot.abs_diff(other.boot) <= BOOTS_APART_MAX
    }
}
