//! Which variables of a frame are still needed at each instruction, and where execution may stop.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decode::Instruction;
use crate::lowered::{Lowered, Next, Variable};

/// Bytes of code that may be executed between two looks at the fuel, where branches lead forward only;
/// the rest of what `tenure_vm` allows is for what lies between two labels.
const LOOK_BYTES: u32 = 2048;

/// A set of a frame's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live(Vec<u64>);

impl Live {
    fn new(slots: u32) -> Live {
        Live(vec![0; (slots as usize * 2 + 1).div_ceil(64)])
    }

    fn set(&mut self, bit: usize, value: bool) {
        let Some(word) = self.0.get_mut(bit / 64) else { return };
        *word = *word & !(1 << (bit % 64)) | (value as u64) << (bit % 64);
    }

    fn add(&mut self, other: &Live) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    /// Whether a variable of a frame of `slots` is in it.
    pub(crate) fn has(&self, variable: Variable, slots: u32) -> bool {
        let bit = bit(variable, slots);
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// The halves of slots in it.
    pub(crate) fn halves(&self, slots: u32) -> impl Iterator<Item = u32> {
        (0..slots * 2).filter(move |&half| self.has(Variable::Half(half), slots))
    }

    /// All in it.
    pub(crate) fn variables(&self, slots: u32) -> impl Iterator<Item = Variable> {
        let accumulator = self.has(Variable::Accumulator, slots).then_some(Variable::Accumulator);
        self.halves(slots).map(Variable::Half).chain(accumulator)
    }
}

/// The accumulator comes last.
fn bit(variable: Variable, slots: u32) -> usize {
    match variable {
        Variable::Half(half) => half as usize,
        Variable::Accumulator => slots as usize * 2,
    }
}

/// An instruction of a function, with what it does.
pub(crate) struct Step {
    pub(crate) instruction: Instruction,
    pub(crate) lowered: Lowered,
    /// The first slot of the callee's frame, for a call: it leaves nothing behind from there on.
    pub(crate) callee: Option<u32>,
}

impl Step {
    /// Where execution may go on.
    fn successors(&self) -> impl Iterator<Item = u32> + '_ {
        let goes_on = matches!(
            self.lowered.next,
            Next::Through
                | Next::Check
                | Next::Branch
                | Next::Call
                | Next::CallIndirect
                | Next::Bulk
                | Next::Outside
        );
        goes_on
            .then_some(self.instruction.end)
            .into_iter()
            .chain(self.instruction.targets.iter().copied())
    }
}

/// The variables needed before each instruction of a function whose frame has so many slots.
pub(crate) fn live(steps: &[Step], slots: u32) -> Vec<Live> {
    let index: HashMap<u32, usize> =
        steps.iter().enumerate().map(|(index, step)| (step.instruction.at, index)).collect();
    let mut before = vec![Live::new(slots); steps.len()];
    loop {
        let mut changed = false;
        for (at, step) in steps.iter().enumerate().rev() {
            let mut live = Live::new(slots);
            for successor in step.successors() {
                if let Some(needed) = index.get(&successor).and_then(|&index| before.get(index)) {
                    live.add(needed);
                }
            }
            if let Some(first) = step.callee {
                (first * 2..slots * 2).for_each(|half| live.set(half as usize, false));
            }
            for &variable in &step.lowered.writes {
                live.set(bit(variable, slots), false);
            }
            for &variable in &step.lowered.reads {
                live.set(bit(variable, slots), true);
            }
            if before[at] != live {
                before[at] = live;
                changed = true;
            }
        }
        if !changed {
            return before;
        }
    }
}

/// The places of a function where something comes together.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Targets of branches.
    pub(crate) labels: BTreeSet<u32>,
    /// Where fuel is looked at.
    pub(crate) looks: BTreeSet<u32>,
    /// Where execution may go on after a stop, by number; the function's entry is number 0.
    pub(crate) points: BTreeMap<u32, u32>,
}

impl Places {
    /// Whether an instruction is reached in other ways than by what stands before it.
    pub(crate) fn joins(&self, at: u32) -> bool {
        self.labels.contains(&at) || self.looks.contains(&at) || self.points.contains_key(&at)
    }
}

pub(crate) fn places(steps: &[Step]) -> Places {
    let mut places = Places::default();
    let mut points = BTreeSet::new();
    for step in steps {
        let Instruction { at, end, targets, .. } = &step.instruction;
        places.labels.extend(targets);
        places.looks.extend(targets.iter().filter(|target| *target <= at));
        match step.lowered.next {
            Next::Call | Next::CallIndirect | Next::Bulk | Next::Outside => {
                points.insert(*end);
            }
            _ => {}
        }
    }
    look_often(steps, &mut places);
    points.extend(&places.looks);
    let entry = steps.first().map(|step| step.instruction.at);
    let starts: HashSet<u32> = steps.iter().map(|step| step.instruction.at).collect();
    points.retain(|at| starts.contains(at));
    places.points = entry
        .into_iter()
        .chain(points.into_iter().filter(|at| Some(*at) != entry))
        .zip(0..)
        .collect();
    places
}

/// Adds looks where straight lines, and branches that lead forward, would put them too far apart.
fn look_often(steps: &[Step], places: &mut Places) {
    let mut since: HashMap<u32, u32> = HashMap::new();
    let mut is_checked = false;
    for step in steps {
        let at = step.instruction.at;
        let mut bytes = since.get(&at).copied().unwrap_or(0);
        if places.looks.contains(&at) {
            bytes = 0;
        } else if bytes > LOOK_BYTES && (places.labels.contains(&at) || is_checked) {
            places.looks.insert(at);
            bytes = 0;
        }
        is_checked = step.lowered.next == Next::Check;
        bytes += step.instruction.cost + step.instruction.surcharge;
        if matches!(step.lowered.next, Next::Call | Next::CallIndirect | Next::Outside) {
            bytes = 0;
        }
        for successor in step.successors() {
            let most = since.entry(successor).or_insert(0);
            *most = bytes.max(*most);
        }
    }
}
