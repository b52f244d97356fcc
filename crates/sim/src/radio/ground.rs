//! Where stations are, and therefore who hears whom.
//!
//! The plane is cut into squares as wide as the range, so that a station's neighbours are found in
//! nine of them, however many stations there are. Neighbours are kept, and found anew only when a
//! station moves.

use std::collections::BTreeMap;

use super::plan::{Bursts, SetLink};
use super::walls::{Wall, Walls};
use super::{RadioPlan, Station};

/// Signal at one metre and its loss per decade of distance, in dB (log-distance model, free space
/// exponent 3 as among buildings).
const SIGNAL_NEAR_DBM: f32 = -40.0;
const SIGNAL_LOSS_DB: f32 = 30.0;
/// The signal of a link that has no distance: any middling one.
const SIGNAL_SET_DBM: i8 = -60;

/// A place on the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spot {
    pub x: f32,
    pub y: f32,
}

impl Spot {
    /// The distance to another place.
    pub(crate) fn distance(self, other: Self) -> f32 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// A station that hears another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    pub station: Station,
    /// How many of 2^32 frames for everybody are lost on the way there, and of those for it alone.
    pub loss: u32,
    pub unicast_loss: u32,
    /// Times in which the link is bad.
    pub bursts: Option<Bursts>,
    /// The strength with which it hears the other, in dBm.
    pub signal_dbm: i8,
}

/// 2^32, less what a `f32` can't tell from it.
const THRESHOLDS: f32 = u32::MAX as f32;

type Square = (i32, i32);

/// All stations on their places.
#[derive(Debug)]
pub(super) struct Ground {
    plan: RadioPlan,
    spots: Vec<Spot>,
    squares: BTreeMap<Square, Vec<Station>>,
    /// The stations that each station reaches, by number.
    neighbours: Vec<Vec<Neighbour>>,
    set: BTreeMap<(Station, Station), SetLink>,
    walls: Walls,
}

impl Ground {
    /// A plane with walls and no station.
    pub(super) fn new(plan: &RadioPlan, walls: Vec<Wall>) -> Self {
        Self {
            walls: Walls::new(walls, plan.range_m.max(1.0)),
            plan: plan.clone(),
            spots: Vec::new(),
            squares: BTreeMap::new(),
            neighbours: Vec::new(),
            set: BTreeMap::new(),
        }
    }

    /// Adds a station.
    pub(super) fn add(&mut self, spot: Spot) -> Station {
        let station = self.spots.len() as Station;
        self.spots.push(spot);
        self.neighbours.push(Vec::new());
        self.squares.entry(self.square(spot)).or_default().push(station);
        self.meet(station);
        station
    }

    /// Moves a station.
    pub(super) fn place(&mut self, station: Station, spot: Spot) {
        let (from, to) = (self.square(self.spots[station as usize]), self.square(spot));
        self.spots[station as usize] = spot;
        if from != to {
            let left = self.squares.entry(from).or_default();
            left.retain(|other| *other != station);
            if left.is_empty() {
                self.squares.remove(&from);
            }
            self.squares.entry(to).or_default().push(station);
        }
        for neighbour in std::mem::take(&mut self.neighbours[station as usize]) {
            remove(&mut self.neighbours[neighbour.station as usize], station);
        }
        // A link may be set in one direction only, and so be known to the other end alone.
        let ends: Vec<_> = self.set.keys().filter(|(_, to)| *to == station).copied().collect();
        for (end, _) in ends {
            remove(&mut self.neighbours[end as usize], station);
        }
        self.meet(station);
    }

    /// Where a station is.
    pub(super) fn spot(&self, station: Station) -> Spot {
        self.spots[station as usize]
    }

    /// The stations that a station reaches.
    pub(super) fn neighbours(&self, station: Station) -> &[Neighbour] {
        &self.neighbours[station as usize]
    }

    /// How `to` hears `from`, or `None` if it is out of range.
    pub(super) fn link(&self, from: Station, to: Station) -> Option<&Neighbour> {
        let neighbours = self.neighbours(from);
        let at = neighbours.binary_search_by_key(&to, |neighbour| neighbour.station).ok()?;
        Some(&neighbours[at])
    }

    /// Sets a link's loss, or lets the distance decide again.
    pub(super) fn set_link(&mut self, from: Station, to: Station, loss: Option<SetLink>) {
        match loss {
            Some(loss) => self.set.insert((from, to), loss),
            None => self.set.remove(&(from, to)),
        };
        self.connect(from, to);
    }

    /// The strength with which `to` hears `from`, in dBm.
    fn signal(&self, from: Station, to: Station) -> i8 {
        if self.set.contains_key(&(from, to)) {
            return SIGNAL_SET_DBM;
        }
        let distance_m = self.distance(from, to).max(1.0);
        (SIGNAL_NEAR_DBM - SIGNAL_LOSS_DB * distance_m.log10()) as i8
    }

    /// The distance at which one would hear the other as well if no wall was between them.
    fn distance(&self, from: Station, to: Station) -> f32 {
        let (from, to) = (self.spot(from), self.spot(to));
        let distance_m = from.distance(to);
        if distance_m > self.plan.range_m {
            return distance_m;
        }
        distance_m * stretch(self.walls.db_between(from, to))
    }

    fn square(&self, spot: Spot) -> Square {
        let width = self.plan.range_m.max(1.0);
        ((spot.x / width).floor() as i32, (spot.y / width).floor() as i32)
    }

    fn meet(&mut self, station: Station) {
        let (column, row) = self.square(self.spots[station as usize]);
        let mut near = Vec::new();
        for x in column - 1..=column + 1 {
            for y in row - 1..=row + 1 {
                near.extend(self.squares.get(&(x, y)).into_iter().flatten().copied());
            }
        }
        let set = self.set.keys().filter(|(from, to)| *from == station || *to == station);
        near.extend(set.map(|(from, to)| if *from == station { *to } else { *from }));
        for other in near {
            self.connect(station, other);
            self.connect(other, station);
        }
    }

    /// Writes down whether `to` hears `from`.
    fn connect(&mut self, from: Station, to: Station) {
        remove(&mut self.neighbours[from as usize], to);
        let Some(SetLink { loss, unicast_loss, bursts }) = self.share(from, to) else { return };
        let signal_dbm = self.signal(from, to);
        let neighbours = &mut self.neighbours[from as usize];
        let at = neighbours.partition_point(|neighbour| neighbour.station < to);
        let [loss, unicast_loss] = [loss, unicast_loss].map(|share| (share * THRESHOLDS) as u32);
        let neighbour = Neighbour { station: to, loss, unicast_loss, bursts, signal_dbm };
        neighbours.insert(at, neighbour);
    }

    /// The shares that are lost from one to the other, or `None` if nothing arrives.
    fn share(&self, from: Station, to: Station) -> Option<SetLink> {
        if from == to {
            return None;
        }
        let loss = match self.set.get(&(from, to)) {
            Some(loss) => *loss,
            None => {
                let distance_m = self.distance(from, to);
                if distance_m > self.plan.range_m {
                    return None;
                }
                SetLink::even(self.plan.loss.at(distance_m, self.plan.range_m))
            }
        };
        (loss.loss.min(loss.unicast_loss) < 1.0).then_some(loss)
    }
}

/// How many times as far away something sounds that is weakened by so many dB.
pub(crate) fn stretch(db: f32) -> f32 {
    10_f32.powf(db / SIGNAL_LOSS_DB)
}

fn remove(neighbours: &mut Vec<Neighbour>, station: Station) {
    if let Ok(at) = neighbours.binary_search_by_key(&station, |neighbour| neighbour.station) {
        neighbours.remove(at);
    }
}
