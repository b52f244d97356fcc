//! Fuel by machine and by the calls that led to where it went.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_kernel::{MachineRecord, Profiler};
use tenure_vm::Frame;
use tenure_wire::{Digest, Name};

use crate::make::symbols::{Site, Symbols};

/// What is no function's: the price of turns and tasks, and of bringing a machine back from flash.
const TURNS: &str = "(turns and tasks)";

/// What was told of all machines. Copies are the same.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Entry>>>);

/// A machine, and its fuel by the calls that led to where it went: function and offset of each, innermost first.
struct Entry {
    name: Name,
    package: Digest,
    units: BTreeMap<Vec<(u32, u32)>, u64>,
}

impl Ledger {
    /// The machines that spent some, those that spent most first.
    pub(super) fn machines(&self) -> Vec<MachineSpent> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let machine =
            |Entry { name, package, units }| MachineSpent { name, package, symbols: None, units };
        let mut machines: Vec<MachineSpent> = entries.drain(..).map(machine).collect();
        machines.sort_by_key(|machine| std::cmp::Reverse(machine.units()));
        machines
    }
}

impl Profiler for Ledger {
    fn spent(&mut self, machine: &MachineRecord, calls: &[Frame], units: u64) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let MachineRecord { name, package, .. } = machine;
        let is_it = |entry: &Entry| entry.name == *name && entry.package == *package;
        let at = entries.iter().position(is_it).unwrap_or_else(|| {
            let (name, package) = (name.clone(), *package);
            entries.push(Entry { name, package, units: BTreeMap::new() });
            entries.len() - 1
        });
        let calls = calls.iter().map(|call| (call.function, call.offset)).collect();
        *entries[at].units.entry(calls).or_default() += units;
    }
}

/// The fuel of a machine of one package, in units.
pub(super) struct MachineSpent {
    pub(super) name: Name,
    pub(super) package: Digest,
    /// By which its functions are named, if they are.
    pub(super) symbols: Option<Symbols>,
    units: BTreeMap<Vec<(u32, u32)>, u64>,
}

/// A function's part, in units.
pub(super) struct Share {
    pub(super) function: String,
    pub(super) itself: u64,
    /// With what it called.
    pub(super) with_calls: u64,
}

/// A line's part, in units, without what it called.
pub(super) struct Line {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) itself: u64,
}

impl MachineSpent {
    /// All of it.
    pub(super) fn units(&self) -> u64 {
        self.units.values().sum()
    }

    /// The functions that led to where it went, outermost first, and how much that was. Functions that the compiler
    /// has put into others are there, too.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (Vec<String>, u64)> + '_ {
        let mut known = BTreeMap::new();
        self.units.iter().map(move |(calls, units)| {
            let mut stack = Vec::new();
            for call in calls.iter().rev() {
                let names: &Vec<String> = known.entry(*call).or_insert_with(|| self.names(*call));
                stack.extend(names.iter().cloned());
            }
            if stack.is_empty() {
                stack.push(TURNS.to_owned());
            }
            (stack, *units)
        })
    }

    /// Its functions, those first that took most themselves.
    pub(super) fn functions(&self) -> Vec<Share> {
        let mut shares: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (stack, units) in self.stacks() {
            if let Some(innermost) = stack.last() {
                shares.entry(innermost.clone()).or_default().0 += units;
            }
            // A function that calls itself has what it took but once.
            for function in BTreeSet::from_iter(stack) {
                shares.entry(function).or_default().1 += units;
            }
        }
        let share = |(function, (itself, with_calls))| Share { function, itself, with_calls };
        let mut shares: Vec<Share> = shares.into_iter().map(share).collect();
        shares.sort_by_key(|share| std::cmp::Reverse((share.itself, share.with_calls)));
        shares
    }

    /// Its lines, those first that took most, as far as they are known.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for (calls, units) in &self.units {
            let place = calls.first().zip(self.symbols.as_ref());
            let place = place.map(|(call, symbols)| symbols.place(site(*call)));
            if let Some(line) = place.as_ref().and_then(|place| place.lines.first()) {
                let file = line.file.display().to_string();
                *lines.entry((file, line.line)).or_default() += units;
            }
        }
        let line = |((file, line), itself)| Line { file, line, itself };
        let mut lines: Vec<Line> = lines.into_iter().map(line).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.itself));
        lines
    }

    /// The function of a call, and behind it those that the compiler has put into it, there.
    fn names(&self, (function, offset): (u32, u32)) -> Vec<String> {
        let unnamed = || format!("function {function}");
        let Some(symbols) = &self.symbols else { return vec![unnamed()] };
        let place = symbols.place(site((function, offset)));
        let outer = place.function.unwrap_or_else(unnamed);
        let inlined = place.lines.split_last().map_or(&[][..], |(_, inlined)| inlined);
        let inlined = inlined.iter().rev().filter_map(|line| line.function.clone());
        std::iter::once(outer).chain(inlined).collect()
    }
}

fn site((function, offset): (u32, u32)) -> Site {
    Site { function, offset, in_module: false }
}
