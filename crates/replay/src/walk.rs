//! A walk through a machine's history: forwards and backwards, an instruction at a time or to where something is so.
//!
//! The program is repeated from the checkpoint before. Where the moment that is sought lies far ahead it runs there as a
//! device runs it, up to a little before; from there on it goes an instruction at a time. Backwards is forwards from
//! further and further back, by doubling distances.
//!
//! Invariant: the program is the same at a moment whichever way led there.

use std::ops::Range;
use std::sync::Arc;

use tenure_crypto::sha256;
use tenure_vm::{Image, Instance, Standing};
use tenure_wire::Digest;

use crate::history::{History, Leg, Position};

/// How far before a moment the program goes an instruction at a time, in units: more than a window between two looks
/// at the fuel.
const APPROACH_UNITS: u64 = 4096;
/// How far back is looked at first, in units.
const SPAN_UNITS: u64 = 2048;
/// How many steps in a row may take nothing: memory that is committed at the first access to it is such a case.
const STANDING_MAX: u32 = 8;

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It is where it was to stop.
    Here,
    /// The watched bytes of this number were changed: by the last instruction forwards, by the next one backwards.
    Watched(usize),
    /// The machine had a fault here.
    Fault,
    /// There is nothing beyond.
    Edge,
}

/// A machine at a moment of its history.
#[derive(Clone)]
pub struct Walk {
    history: Arc<History>,
    at: Position,
    /// The program at the leg's beginning.
    start: Instance,
    /// The program now. It owes no fuel: what it uses is counted.
    program: Instance,
}

impl Walk {
    /// Begins at the history's first moment.
    pub fn new(history: Arc<History>) -> Self {
        let start = history.checkpoint(0).1.clone();
        let mut walk = Self { history, at: Position::default(), program: start.clone(), start };
        walk.enter(0);
        walk
    }

    /// The whole history.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// The moment.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The leg that it is on.
    pub fn leg(&self) -> &Leg {
        self.history.leg(self.at.leg)
    }

    /// The program.
    pub fn program(&self) -> &Instance {
        &self.program
    }

    /// Where the program stands, if a call of it is under way.
    pub fn standing(&self) -> Option<Standing> {
        self.program.standing()
    }

    /// Whether the machine had a fault here.
    pub fn has_failed(&self) -> bool {
        let Leg { trap, fault, .. } = self.leg();
        self.is_at_end_of_leg() && (trap.is_some() || fault.is_some())
    }

    /// A digest of the moment and of all that the program holds then.
    pub fn digest(&self) -> Digest {
        let mut state = Vec::new();
        self.program.suspend(&self.history.image(), &mut state);
        let Position { leg, units } = self.at;
        sha256(&[&(leg as u64).to_le_bytes(), &units.to_le_bytes(), &state])
    }

    /// Lets the program execute an instruction, or at a leg's end goes on with the next one; returns whether there was
    /// anything left to do.
    pub fn forward(&mut self) -> bool {
        let history = Arc::clone(&self.history);
        if self.is_at_end_of_leg() {
            let is_there = self.at.leg + 1 < history.legs();
            if is_there {
                self.enter(self.at.leg + 1);
            }
            return is_there;
        }
        let (image, leg) = (history.image(), history.leg(self.at.leg));
        for _ in 0..STANDING_MAX {
            let (took, outcome) = self.program.step(&image);
            self.program.forgive();
            self.at.units += took;
            if outcome.is_some() || self.at.units >= leg.units {
                break;
            }
            if took > 0 {
                return true;
            }
        }
        match history.has_end(self.at.leg) {
            true => self.finish(),
            false => self.enter(self.at.leg + 1),
        }
        true
    }

    /// Goes back to before the last instruction; returns whether there was one.
    pub fn back(&mut self) -> bool {
        let Position { leg, units } = self.at;
        let (leg, units) = match units.checked_sub(1) {
            Some(units) => (leg, units),
            None => {
                let Some(leg) = leg.checked_sub(1) else { return false };
                let units = self.history.leg(leg).units;
                if self.history.has_end(leg) {
                    self.go(Position { leg, units });
                    return true;
                }
                (leg, units.saturating_sub(1))
            }
        };
        self.go(Position { leg, units });
        true
    }

    /// Goes to a moment, or to the last one before it where the program is between two instructions.
    pub fn go(&mut self, to: Position) {
        let history = Arc::clone(&self.history);
        let leg = to.leg.min(history.legs() - 1);
        let units = if to.leg > leg { u64::MAX } else { to.units };
        let end = history.leg(leg).units;
        if self.at.leg != leg || self.at.units > units {
            self.enter(leg);
        }
        if units >= end && history.has_end(leg) {
            if !self.is_at_end_of_leg() {
                self.finish();
            }
            return;
        }
        let units = units.min(end.saturating_sub(1));
        self.approach(units);
        let mut last = self.at;
        while self.at.leg == leg && self.at.units < units {
            last = self.at;
            if !self.forward() {
                return;
            }
        }
        if self.at.leg != leg || self.at.units > units {
            self.enter(leg);
            self.approach(last.units);
            while self.at < last && self.forward() {}
        }
    }

    /// Goes on until `stop` says so, a fault, or one of the `watched` ranges of memory has changed.
    pub fn forward_until(
        &mut self,
        stop: &mut dyn FnMut(&Self) -> bool,
        watched: &[Range<u32>],
    ) -> Stopped {
        let mut held = Held::of(self, watched);
        while self.forward() {
            if let Some(number) = held.changed(self, watched) {
                return Stopped::Watched(number);
            }
            if self.has_failed() {
                return Stopped::Fault;
            }
            if stop(self) {
                return Stopped::Here;
            }
        }
        Stopped::Edge
    }

    /// Goes back to the last moment before this one of which `stop` says so, that was a fault, or whose instruction
    /// changed one of the `watched` ranges of memory.
    pub fn back_until(
        &mut self,
        stop: &mut dyn FnMut(&Self) -> bool,
        watched: &[Range<u32>],
    ) -> Stopped {
        let (mut end, mut span) = (self.at, SPAN_UNITS);
        while end > Position::default() {
            let distance = self.history.distance(end).saturating_sub(span);
            self.go(self.history.position_at(distance));
            if self.at >= end {
                self.go(end);
                self.back();
            }
            let from = self.at;
            if let Some((position, why)) = self.scan(end, stop, watched) {
                self.go(position);
                return why;
            }
            (end, span) = (from, span.saturating_mul(2));
        }
        self.go(Position::default());
        Stopped::Edge
    }

    /// The last moment from here up to `end`, without that one, at which to stop.
    fn scan(
        &mut self,
        end: Position,
        stop: &mut dyn FnMut(&Self) -> bool,
        watched: &[Range<u32>],
    ) -> Option<(Position, Stopped)> {
        let mut held = Held::of(self, watched);
        let mut found = None;
        while self.at < end {
            let here = self.at;
            if self.has_failed() {
                found = Some((here, Stopped::Fault));
            } else if stop(self) {
                found = Some((here, Stopped::Here));
            }
            if !self.forward() {
                break;
            }
            if let Some(number) = held.changed(self, watched) {
                found = Some((here, Stopped::Watched(number)));
            }
        }
        found
    }

    fn is_at_end_of_leg(&self) -> bool {
        self.at.units >= self.leg().units
    }

    /// Goes to the beginning of a leg that there is.
    fn enter(&mut self, leg: usize) {
        let history = Arc::clone(&self.history);
        let image = history.image();
        let (checkpoint, program) = history.checkpoint(leg);
        let mut number = self.at.leg;
        if !(checkpoint..=leg).contains(&number) {
            (number, self.start) = (checkpoint, program.clone());
        }
        while number < leg {
            run_through(&mut self.start, history.leg(number), &image);
            number += 1;
            if let Some(change) = &history.leg(number).change {
                self.start.apply(change);
            }
        }
        self.at = Position { leg, units: 0 };
        self.program = self.start.clone();
        self.program.forgive();
        if self.is_at_end_of_leg() {
            self.finish();
        }
    }

    /// Goes to the end of the leg, where the program may be in the middle of an instruction.
    fn finish(&mut self) {
        let history = Arc::clone(&self.history);
        let leg = history.leg(self.at.leg);
        self.program = self.start.clone();
        run_through(&mut self.program, leg, &history.image());
        self.program.forgive();
        self.at.units = leg.units;
    }

    /// Goes on to a little before a moment of this leg, or less far.
    fn approach(&mut self, units: u64) {
        let history = Arc::clone(&self.history);
        let (image, leg) = (history.image(), self.at.leg);
        let mut goal = units.saturating_sub(APPROACH_UNITS);
        while goal > self.at.units {
            let fuel = goal - self.at.units;
            let mut left = fuel;
            self.program.run(&image, &mut left);
            self.at.units += fuel - left + self.program.owed();
            self.program.forgive();
            let standing = self.program.standing();
            let is_at_bulk = standing.is_some_and(|it| image.is_bulk_at(it.code_at));
            if self.at.units <= units && !is_at_bulk {
                return;
            }
            // An instruction took more than the rest of the way, or was to be done in part.
            self.enter(leg);
            goal /= 2;
        }
    }
}

/// Lets the program go the whole leg as it did.
fn run_through(program: &mut Instance, leg: &Leg, image: &Image<'_>) {
    let mut fuel = leg.fuel;
    program.run(image, &mut fuel);
}

/// The bytes that stood in ranges of memory.
struct Held(Vec<Vec<u8>>);

impl Held {
    fn of(walk: &Walk, watched: &[Range<u32>]) -> Self {
        Self(watched.iter().map(|range| bytes_in(walk, range).to_vec()).collect())
    }

    /// The first range that differs from what stood there; what stands there is what stood there from now on.
    fn changed(&mut self, walk: &Walk, watched: &[Range<u32>]) -> Option<usize> {
        let mut first = None;
        for (number, (held, range)) in self.0.iter_mut().zip(watched).enumerate() {
            let now = bytes_in(walk, range);
            if *held != now {
                *held = now.to_vec();
                first.get_or_insert(number);
            }
        }
        first
    }
}

/// The bytes of a range of memory, as far as they are committed and aren't zeros at its end: what isn't committed is zero.
fn bytes_in<'a>(walk: &'a Walk, range: &Range<u32>) -> &'a [u8] {
    let memory = walk.program.memory();
    let end = (range.end as usize).min(memory.len());
    let bytes = memory.get(range.start as usize..end).unwrap_or(&[]);
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..used]
}
