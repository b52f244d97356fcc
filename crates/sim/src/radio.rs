//! The shared medium: who hears whom, when the air is busy, and what is lost.
//!
//! A station that has a frame to send waits until it hears nothing, then for a random number of
//! slots (IEEE 802.11-2020 §10.3.4), then sends. A frame reaches every station in range, unless
//! another one overlaps it there (also one that the sender could not hear: a hidden terminal), the
//! receiver sends itself, or the link loses it. Frames to one station are answered and repeated.
//!
//! Invariants:
//! - The same seed and the same calls give the same air, bit for bit.
//! - A frame is handed to a station at most once, however often it was repeated.
//! - What the model leaves out: capture of the stronger of two frames, answers that collide, and the
//!   time that a wave needs.

mod ground;
mod plan;
#[cfg(test)]
mod tests;
mod walls;

use std::collections::{BTreeMap, VecDeque};

pub(crate) use plan::SetLink;
pub use plan::{Bursts, Loss, RadioPlan};
pub use walls::Wall;

use ground::Ground;

pub(crate) use ground::{Spot, stretch};
use tenure_hal::simulated::Random;

/// The number of a station.
pub(crate) type Station = u32;

/// Time from the end of what was heard to the first slot: DIFS of 802.11 at 20 µs a slot.
const SPACE_US: u64 = 50;
const SLOT_US: u64 = 20;
/// A transmission that began less than this ago can't be sensed yet.
const SENSING_US: u64 = 4;
/// From the end of a frame to the end of its answer: SIFS and a frame of 14 bytes.
const ANSWER_SPACE_US: u64 = 10;
const ANSWER_BYTES: u64 = 14;
/// Contention windows, in slots less one.
const WINDOW_MIN: u64 = 31;
const WINDOW_MAX: u64 = 1023;
/// The most frames that wait at a station; more are dropped, and counted.
const QUEUE_MAX: usize = 64;

/// A step of the medium that its owner calls at a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// [`Medium::attempt`] for this station.
    Attempt(Station),
    /// [`Medium::finish`] for this station.
    Finish(Station),
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The receiver; `None` for everybody in range.
    pub to: Option<Station>,
    /// The frame's bytes.
    pub bytes: Vec<u8>,
}

/// A frame that was on the air, and what became of it.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The frame.
    pub frame: Frame,
    /// Whether the medium is through with it: it was answered, or given up, or for everybody.
    pub is_over: bool,
    /// Whether it was answered, if it was for one station.
    pub is_answered: bool,
}

/// Counts of the stations' transmissions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounts {
    /// Frames that were put on the air, repetitions included.
    pub transmissions: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Receptions spoiled by another transmission.
    pub collisions: u64,
    /// Receptions lost by the link.
    pub lost: u64,
    /// Frames that found the queue of their station full.
    pub dropped: u64,
}

/// The air, and the stations in it.
#[derive(Debug)]
pub(crate) struct Medium {
    plan: RadioPlan,
    ground: Ground,
    stations: Vec<State>,
    random: Random,
    counts: AirCounts,
    /// Links with bursts: whether each is in a bad turn, and until when it lasts.
    turns: BTreeMap<(Station, Station), (bool, u64)>,
}

/// A station as the medium sees it.
#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Frame>,
    on_air: Option<Frame>,
    /// Whether an attempt or the end of a transmission is planned.
    is_engaged: bool,
    is_off: bool,
    part: u32,
    /// From when to when it hears something, or sends itself.
    busy_from_us: u64,
    busy_until_us: u64,
    /// Frames that end at the station up to then have been overlapped.
    spoiled_until_us: u64,
    repetitions: u32,
    /// Whether the receiver has the frame that is repeated already.
    has_arrived: bool,
}

impl Medium {
    /// A medium with walls and without stations.
    pub(crate) fn new(plan: RadioPlan, walls: Vec<Wall>, random: Random) -> Self {
        let ground = Ground::new(&plan, walls);
        let counts = AirCounts::default();
        Self { plan, ground, stations: Vec::new(), random, counts, turns: BTreeMap::new() }
    }

    /// Adds a station that stands at `spot`.
    pub(crate) fn add(&mut self, spot: Spot) -> Station {
        self.stations.push(State { is_off: true, ..State::default() });
        self.ground.add(spot)
    }

    /// Moves a station.
    pub(crate) fn place(&mut self, station: Station, spot: Spot) {
        self.ground.place(station, spot);
    }

    /// Where a station is.
    pub(crate) fn spot(&self, station: Station) -> Spot {
        self.ground.spot(station)
    }

    /// Sets the share of frames from `from` to `to` that the link loses, whatever the distance;
    /// `None` leaves it to the distance again.
    pub(crate) fn set_link(&mut self, from: Station, to: Station, loss: Option<SetLink>) {
        self.ground.set_link(from, to, loss);
    }

    /// Whether anything that `from` sends reaches `to`.
    pub(crate) fn reaches(&self, from: Station, to: Station) -> bool {
        let parts = [from, to].map(|station| self.stations[station as usize].part);
        parts[0] == parts[1] && self.ground.link(from, to).is_some()
    }

    /// Whether a chain of stations that are on leads from one to the other, each in range of the one before.
    pub(crate) fn is_connected(&self, from: Station, to: Station) -> bool {
        let mut seen = vec![false; self.stations.len()];
        let mut next = vec![from];
        while let Some(station) = next.pop() {
            if station == to {
                return true;
            }
            if std::mem::replace(&mut seen[station as usize], true) {
                continue;
            }
            let near = self.ground.neighbours(station).iter().map(|neighbour| neighbour.station);
            let is_on = |other: &Station| !self.stations[*other as usize].is_off;
            next.extend(near.filter(|other| is_on(other) && self.reaches(station, *other)));
        }
        false
    }

    /// The strength in dBm with which `to` hears `from`; the least there is if it doesn't.
    pub(crate) fn signal(&self, from: Station, to: Station) -> i8 {
        self.ground.link(from, to).map_or(i8::MIN, |link| link.signal_dbm)
    }

    /// Puts a station into a part of the world; parts don't hear each other.
    pub(crate) fn set_part(&mut self, station: Station, part: u32) {
        self.stations[station as usize].part = part;
    }

    /// Switches a station on or off; what it had to send is lost.
    pub(crate) fn set_power(&mut self, station: Station, is_on: bool) {
        let state = &mut self.stations[station as usize];
        state.is_off = !is_on;
        state.waiting.clear();
        state.on_air = None;
        state.repetitions = 0;
        state.has_arrived = false;
    }

    /// The counts of the air so far.
    pub(crate) fn counts(&self) -> AirCounts {
        self.counts
    }

    /// Takes a frame to send.
    pub(crate) fn send(
        &mut self,
        now_us: u64,
        from: Station,
        frame: Frame,
    ) -> Option<(u64, Moment)> {
        let state = &mut self.stations[from as usize];
        if state.is_off || state.waiting.len() >= QUEUE_MAX {
            self.counts.dropped += 1;
            return None;
        }
        state.waiting.push_back(frame);
        (!state.is_engaged).then(|| self.contend(now_us, from))
    }

    /// A station's back-off is over: it sends, if it hears nothing.
    pub(crate) fn attempt(&mut self, now_us: u64, from: Station) -> Option<(u64, Moment)> {
        let state = &mut self.stations[from as usize];
        if state.waiting.is_empty() {
            state.is_engaged = false;
            return None;
        }
        let hears = state.busy_until_us > now_us && state.busy_from_us + SENSING_US <= now_us;
        if hears && self.plan.contention {
            return Some(self.contend(now_us, from));
        }
        Some(self.transmit(now_us, from))
    }

    /// A transmission ends. `heard` is filled with the stations to which the frame is to be handed.
    pub(crate) fn finish(
        &mut self,
        now_us: u64,
        from: Station,
        heard: &mut Vec<Station>,
    ) -> (Option<Finished>, Option<(u64, Moment)>) {
        heard.clear();
        let state = &mut self.stations[from as usize];
        let Some(frame) = state.on_air.take() else {
            return (None, self.attempt(now_us, from));
        };
        let is_answered = match frame.to {
            None => {
                self.hear_all(now_us, from, heard);
                false
            }
            Some(to) => self.hear_one(now_us, from, to, heard),
        };
        let state = &mut self.stations[from as usize];
        let is_over =
            frame.to.is_none() || is_answered || state.repetitions >= self.plan.unicast_retries;
        if is_over {
            state.repetitions = 0;
            state.has_arrived = false;
        } else {
            state.repetitions += 1;
            state.waiting.push_front(frame.clone());
        }
        state.is_engaged = !state.waiting.is_empty();
        let next = state.is_engaged.then(|| self.contend(now_us, from));
        (Some(Finished { frame, is_over, is_answered }), next)
    }

    /// Plans the next attempt of a station that has something to send.
    fn contend(&mut self, now_us: u64, from: Station) -> (u64, Moment) {
        let state = &mut self.stations[from as usize];
        state.is_engaged = true;
        if !self.plan.contention {
            return (now_us, Moment::Attempt(from));
        }
        let window = ((WINDOW_MIN + 1) << state.repetitions.min(5)).min(WINDOW_MAX + 1) - 1;
        let idle_us = state.busy_until_us.max(now_us) + SPACE_US;
        let back_off_us = self.random.between(0..=window) * SLOT_US;
        (idle_us + back_off_us, Moment::Attempt(from))
    }

    fn transmit(&mut self, now_us: u64, from: Station) -> (u64, Moment) {
        let state = &mut self.stations[from as usize];
        let frame = state.waiting.pop_front();
        let length = frame.as_ref().map_or(0, |frame| frame.bytes.len()) as u64;
        let is_for_one = frame.as_ref().is_some_and(|frame| frame.to.is_some());
        state.on_air = frame;
        let is_answered = is_for_one && self.plan.unicast_retries > 0;
        let answer_us =
            if is_answered { ANSWER_SPACE_US + self.plan.air_us(ANSWER_BYTES) } else { 0 };
        self.counts.transmissions += 1;
        self.counts.bytes += length;
        let end_us = now_us + self.plan.air_us(length);
        state.is_engaged = true;
        if self.plan.contention {
            state.occupy(now_us, end_us);
            state.spoiled_until_us = state.spoiled_until_us.max(end_us);
            for neighbour in self.ground.neighbours(from) {
                self.stations[neighbour.station as usize].occupy(now_us, end_us + answer_us);
            }
        }
        (end_us, Moment::Finish(from))
    }

    fn hear_all(&mut self, now_us: u64, from: Station, heard: &mut Vec<Station>) {
        let part = self.stations[from as usize].part;
        let Self { random, turns, .. } = self;
        for neighbour in self.ground.neighbours(from) {
            let link = (from, neighbour.station);
            let state = &self.stations[neighbour.station as usize];
            if state.is_off || state.part != part {
                continue;
            }
            if self.plan.contention && state.spoiled_until_us >= now_us {
                self.counts.collisions += 1;
            } else if random.loses(neighbour.loss)
                || is_lost_in_burst(turns, random, now_us, link, neighbour.bursts)
            {
                self.counts.lost += 1;
            } else {
                heard.push(neighbour.station);
            }
        }
    }

    /// Whether a frame to one station was answered; `heard` gets the station unless it had it before.
    fn hear_one(
        &mut self,
        now_us: u64,
        from: Station,
        to: Station,
        heard: &mut Vec<Station>,
    ) -> bool {
        let Some(link) = self.ground.link(from, to) else { return false };
        let (loss, bursts) = (link.unicast_loss, link.bursts);
        let state = &self.stations[to as usize];
        if state.is_off || state.part != self.stations[from as usize].part {
            return false;
        }
        if self.plan.contention && state.spoiled_until_us >= now_us {
            self.counts.collisions += 1;
            return false;
        }
        let Self { random, turns, .. } = self;
        if random.loses(loss) || is_lost_in_burst(turns, random, now_us, (from, to), bursts) {
            self.counts.lost += 1;
            return false;
        }
        let sender = &mut self.stations[from as usize];
        if !std::mem::replace(&mut sender.has_arrived, true) {
            heard.push(to);
        }
        // Without answers the sender learns nothing, and with them they can be lost as well.
        let back = self.ground.link(to, from);
        let Self { random, turns, .. } = self;
        self.plan.unicast_retries > 0
            && back.is_some_and(|link| {
                !random.loses(link.unicast_loss)
                    && !is_lost_in_burst(turns, random, now_us, (to, from), link.bursts)
            })
    }
}

/// Whether a frame is lost because its link has a bad turn now.
fn is_lost_in_burst(
    turns: &mut BTreeMap<(Station, Station), (bool, u64)>,
    random: &mut Random,
    now_us: u64,
    link: (Station, Station),
    bursts: Option<Bursts>,
) -> bool {
    let Some(Bursts { bad_ms, good_ms, loss }) = bursts else { return false };
    // It begins with the end of a bad turn, at the start of time.
    let (is_bad, until_us) = turns.entry(link).or_insert((true, 0));
    while *until_us <= now_us {
        *is_bad = !*is_bad;
        let mean_ms = f64::from(if *is_bad { bad_ms } else { good_ms });
        let lasts_us = -(1.0 - random.share()).ln() * mean_ms * 1e3;
        *until_us += (lasts_us as u64).max(1000);
    }
    *is_bad && random.share() < f64::from(loss)
}

impl State {
    /// The station hears something from now on.
    fn occupy(&mut self, now_us: u64, until_us: u64) {
        if self.busy_until_us > now_us {
            let until_us = self.busy_until_us.max(until_us);
            self.spoiled_until_us = self.spoiled_until_us.max(until_us);
            self.busy_until_us = until_us;
        } else {
            self.busy_from_us = now_us;
            self.busy_until_us = until_us;
        }
    }
}
