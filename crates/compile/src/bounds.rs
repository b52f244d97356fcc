//! Which accesses compare with memory's end, and with how much.
//!
//! Accesses in a straight line whose addresses differ by constants share a comparison: the first compares for
//! all of them. Where it fails the interpreter goes on, and finds out which of them it is, if it comes to that.

use std::collections::{BTreeMap, HashMap};

use crate::flow::{Places, Step};
use crate::lowered::{Access, Next, Sum, Variable};

/// Bytes less than this from an address that is as far from the memory's end are within bounds. Accesses that
/// share a comparison aren't further apart.
pub(crate) const NEAR_BYTES: u32 = 256;

/// The comparison before an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Where what it compares begins, before the access's address, and from there to the last byte.
    pub(crate) below: u32,
    pub(crate) reach: u32,
    /// Whether it is for others too.
    pub(crate) is_shared: bool,
}

/// A value that isn't known, by number, plus a constant. The number of zero is zero.
type Value = (u32, u32);

/// The values of variables in a straight line.
#[derive(Default)]
struct Values {
    known: BTreeMap<Variable, Value>,
    last: u32,
}

impl Values {
    fn unknown(&mut self) -> Value {
        self.last += 1;
        (self.last, 0)
    }

    fn of(&mut self, (variable, constant): Sum) -> Value {
        let Some(variable) = variable else { return (0, constant) };
        let fresh = self.known.get(&variable).copied();
        let (number, sum) = fresh.unwrap_or_else(|| self.unknown());
        self.known.insert(variable, (number, sum));
        (number, sum.wrapping_add(constant))
    }

    /// Goes on behind a step.
    fn execute(&mut self, step: &Step) {
        let value = step.lowered.sum.map(|sum| self.of(sum));
        for &variable in &step.lowered.writes {
            let value = value.unwrap_or_else(|| self.unknown());
            self.known.insert(variable, value);
        }
    }
}

/// Accesses that share a comparison.
struct Group {
    /// The step that compares, and its address.
    leader: usize,
    address: Value,
    /// The first address and the last byte, counted from that address. No address among them may wrap, so that
    /// it is addresses which count, and not first bytes.
    first: i64,
    last: i64,
}

impl Group {
    /// With one more, if it isn't too far away.
    fn with(&self, address: Value, access: &Access) -> Option<(i64, i64)> {
        let distance = i64::from(address.1.wrapping_sub(self.address.1).cast_signed());
        let first = self.first.min(distance);
        let last = self.last.max(distance + i64::from(access.reach));
        (address.0 == self.address.0 && last - first < i64::from(NEAR_BYTES))
            .then_some((first, last))
    }
}

/// The comparisons of a function's accesses, by step; an access without one needs none.
pub(crate) fn comparisons(steps: &[Step], places: &Places) -> HashMap<usize, Comparison> {
    let mut comparisons = HashMap::new();
    let (mut values, mut groups) = (Values::default(), Vec::<Group>::new());
    for (index, step) in steps.iter().enumerate() {
        if places.joins(step.instruction.at) {
            values.known.clear();
            groups.clear();
        }
        if let Some(access) = step.lowered.access {
            let address = values.of(access.address);
            let near = groups.iter_mut().rev().find_map(|group| {
                let (first, last) = group.with(address, &access)?;
                (group.first, group.last) = (first, last);
                Some(group)
            });
            let group = match near {
                Some(group) => &*group,
                None => {
                    let last = i64::from(access.reach);
                    groups.push(Group { leader: index, address, first: 0, last });
                    &groups[groups.len() - 1]
                }
            };
            let comparison = Comparison {
                below: (-group.first) as u32,
                reach: (group.last - group.first) as u32,
                is_shared: group.leader != index,
            };
            comparisons.insert(group.leader, comparison);
        }
        values.execute(step);
        if !matches!(step.lowered.next, Next::Through | Next::Branch | Next::Check) {
            groups.clear();
        }
    }
    comparisons
}
