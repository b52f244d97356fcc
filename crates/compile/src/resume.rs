//! How a function goes on after a stop.
//!
//! A place inside a loop is reached by way of the heads of all loops around it, outermost first, so that each
//! loop has one entry: with two, a C compiler takes nothing out of it. At a head the way branches off
//! where the fuel is looked at, which takes nothing from those that come by otherwise: who goes on has no
//! fuel until the place is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::flow::{Live, Places, Step};
use crate::lowered::{Next, Variable, name};

/// The variable of C that says which place in a loop execution is on the way to.
pub(crate) const AGAIN: &str = "c->again";

/// A loop: its instructions from the head to the last branch back, and what they write.
#[derive(Debug)]
struct Loop {
    head: u32,
    last: u32,
    writes: BTreeSet<Variable>,
}

/// The ways that branch off somewhere: the number of a place, and the statements that lead on to it.
#[derive(Debug, Default)]
pub(crate) struct Branches(Vec<(u32, String)>);

impl Branches {
    /// Statements that go the way to the place whose number `subject` is, if it is that of one.
    pub(crate) fn to_c(&self, subject: &str) -> String {
        match &self.0[..] {
            [] => String::new(),
            // All that come to a loop's head by number go there; a number would take a register through the loop.
            [(_, onward)] if subject == AGAIN => format!("if ({subject}) {{ {onward} }}\n"),
            all => {
                let cases = all.iter().fold(String::new(), |text, (number, onward)| {
                    format!("{text}case {number}: {onward}\n")
                });
                format!("switch ({subject}) {{\n{cases}}}\n")
            }
        }
    }
}

/// The ways to the places of a function where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// At its entry.
    pub(crate) entry: Branches,
    /// At each loop's head, where fuel is looked at.
    pub(crate) heads: BTreeMap<u32, Branches>,
}

/// The ways of a function whose frame has so many slots; `None` if they take more than `text_max` bytes.
pub(crate) fn ways(
    steps: &[Step],
    places: &Places,
    live: &[Live],
    slots: u32,
    text_max: usize,
) -> Option<Ways> {
    let loops = loops(steps);
    let mut ways = Ways::default();
    let mut bytes = 0;
    for (at, number) in places.points.iter().filter(|(_, number)| **number > 0) {
        let index = steps.partition_point(|step| step.instruction.at < *at);
        let around: Vec<&Loop> =
            loops.iter().filter(|around| around.head < *at && *at <= around.last).collect();
        // Variables that a loop writes are taken from the frame within it; those that none writes, before all.
        let mut stages = vec![String::new(); around.len() + 1];
        for variable in live.get(index)?.variables(slots) {
            let stage = around.iter().filter(|around| around.writes.contains(&variable)).count();
            let text = stages.get_mut(stage)?;
            let _ = match variable {
                Variable::Half(half) => write!(text, "{} = SLOT({});", name(half), half * 4),
                Variable::Accumulator => write!(text, "a = c->accumulator;"),
            };
        }
        for (stage, loads) in stages.iter().enumerate() {
            let onward = match around.get(stage) {
                Some(next) if stage == 0 => {
                    format!("c->again = {number}; fuel = -1; goto L{};", next.head)
                }
                Some(next) => format!("goto L{};", next.head),
                None if stage == 0 => format!("goto L{at};"),
                None => format!("c->again = 0; fuel = c->fuel; goto L{at};"),
            };
            let branches = match stage.checked_sub(1).and_then(|from| around.get(from)) {
                Some(from) => ways.heads.entry(from.head).or_default(),
                None => &mut ways.entry,
            };
            bytes += loads.len() + onward.len();
            branches.0.push((*number, format!("{loads}{onward}")));
        }
        if bytes > text_max {
            return None;
        }
    }
    Some(ways)
}

/// The loops of a function that call nothing, outermost first. Where two overlap, the one that begins first has both.
fn loops(steps: &[Step]) -> Vec<Loop> {
    let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
    for step in steps {
        let at = step.instruction.at;
        for head in step.instruction.targets.iter().filter(|target| **target <= at) {
            let last = ends.entry(*head).or_insert(at);
            *last = at.max(*last);
        }
    }
    let mut open: Vec<(u32, u32)> = Vec::new();
    for (head, last) in ends.clone() {
        open.retain(|(_, end)| *end >= head);
        for (around, end) in &mut open {
            *end = last.max(*end);
            ends.insert(*around, *end);
        }
        open.push((head, last));
    }
    let within = |head: u32, last: u32| {
        let is_within = move |step: &&Step| (head..=last).contains(&step.instruction.at);
        steps.iter().filter(is_within)
    };
    // A loop that calls keeps little in registers: the detour would cost more than it gives.
    let calls = |head, last| {
        within(head, last).any(|step| matches!(step.lowered.next, Next::Call | Next::CallIndirect))
    };
    let whole = |(head, last): (u32, u32)| Loop {
        head,
        last,
        writes: within(head, last).flat_map(|step| step.lowered.writes.iter().copied()).collect(),
    };
    ends.into_iter().filter(|(head, last)| !calls(*head, *last)).map(whole).collect()
}
