//! A recording of a run's events with their places, to play it back on a map.

use serde::Serialize;

use super::scenario::What;
use crate::radio::{Spot, Wall, stretch};

/// The most datagrams that are kept; a page that shows more is no use.
const DELIVERIES_MAX: usize = 20_000;

/// The events of a run, with their places.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Playback {
    #[serde(skip)]
    records: bool,
    /// How far a frame reaches, in metres.
    pub range_m: f32,
    /// Walls: both ends, and how many times further off something sounds through one.
    pub walls: Vec<([f32; 2], [f32; 2], f32)>,
    /// Where nodes were, second by second.
    pub places: Vec<Vec<[f32; 2]>>,
    /// When, who, and whether it was switched on.
    pub powers: Vec<(f64, u32, bool)>,
    /// When which link was cut.
    pub cuts: Vec<(f64, u32, u32)>,
    /// When what failed, in words.
    pub faults: Vec<(f64, String)>,
    /// When a datagram was sent, when it arrived, from where and where.
    pub deliveries: Vec<(f64, f64, u32, u32)>,
}

impl Playback {
    /// Nothing yet; nothing ever unless it `records`.
    pub(super) fn new(records: bool, range_m: f32, walls: &[Wall]) -> Self {
        let walls = walls.iter().map(|wall| (wall.from, wall.to, stretch(wall.db)));
        Self { records, range_m, walls: walls.collect(), ..Self::default() }
    }

    /// Whether anything is kept.
    pub(super) fn records(&self) -> bool {
        self.records
    }

    pub(super) fn spots(&mut self, spots: Vec<Spot>) {
        self.places.push(spots.into_iter().map(|spot| [spot.x, spot.y]).collect());
    }

    pub(super) fn power(&mut self, now_us: u64, number: u32, is_on: bool) {
        if self.records {
            self.powers.push((seconds(now_us), number, is_on));
        }
    }

    pub(super) fn cut(&mut self, now_us: u64, one: u32, other: u32) {
        if self.records {
            self.cuts.push((seconds(now_us), one, other));
        }
    }

    pub(super) fn fault(&mut self, now_us: u64, what: &What) {
        if self.records {
            self.faults.push((seconds(now_us), what.to_string()));
        }
    }

    pub(super) fn delivered(&mut self, sent_us: u64, now_us: u64, from: u32, to: u32) {
        if self.records && self.deliveries.len() < DELIVERIES_MAX {
            self.deliveries.push((seconds(sent_us), seconds(now_us), from, to));
        }
    }
}

fn seconds(at_us: u64) -> f64 {
    at_us as f64 / 1e6
}
