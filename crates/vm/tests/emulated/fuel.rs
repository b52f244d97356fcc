//! The price of a unit of fuel: instructions of a processor for each unit, by operation.

use super::common::Random;
use super::journey::{put, take};
use super::machine::Machine;
use super::operations::{Operation, Program, empty, program, random, random_one};

/// Instructions and units.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) instructions: f64,
    pub(crate) units: f64,
}

impl Count {
    pub(crate) fn rate(self) -> f64 {
        self.instructions / self.units
    }
}

/// Instructions that an operation takes with its cheapest and its dearest operands, for a unit.
pub(crate) struct Price {
    pub(crate) name: String,
    pub(crate) cheapest: Count,
    pub(crate) dearest: Count,
}

/// Instructions a unit: of the cheapest and of the dearest operation, each with its dearest operands.
///
/// With operands that leave nothing to do (a root of zero, a quotient of small numbers) an operation takes
/// less than what it is charged for; that makes no turn longer.
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

pub(crate) fn spread(prices: &[Price]) -> Spread {
    let rates = || prices.iter().map(|price| price.dearest.rate());
    Spread { least: rates().fold(f64::MAX, f64::min), most: rates().fold(0.0, f64::max) }
}

/// Counts each of the operations with all pairs of operands.
pub(crate) fn prices(machine: &mut Machine, operations: &[Operation]) -> Vec<Price> {
    let programs: Vec<Vec<Program>> = operations.iter().map(Operation::programs).collect();
    let base = [empty()];
    let counted = count(machine, base.iter().chain(programs.iter().flatten()));
    let base = counted[0].expect("an empty loop");
    let mut rest = &counted[1..];
    let mut prices = Vec::new();
    for (operation, programs) in operations.iter().zip(&programs) {
        let (own, others) = rest.split_at(programs.len());
        rest = others;
        let mut counts: Vec<Count> = own.iter().flatten().map(|count| less(*count, base)).collect();
        counts.retain(|count| count.units > 0.5);
        counts.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        if let (Some(&cheapest), Some(&dearest)) = (counts.first(), counts.last()) {
            prices.push(Price { name: operation.name.clone(), cheapest, dearest });
        }
    }
    prices
}

/// Looks for programs of several operations whose units are dear: mutates the dearest.
pub(crate) fn hunt(
    machine: &mut Machine,
    operations: &[Operation],
    seed: u64,
    generations: usize,
) -> (f64, String) {
    const HERD: usize = 64;
    let mut dice = Random::new(seed);
    let mut herd: Vec<Vec<(&Operation, usize, usize)>> =
        (0..HERD).map(|_| random(operations, &mut dice)).collect();
    let mut best = (0.0, String::new());
    for _ in 0..generations {
        let programs: Vec<Program> = herd.iter().map(|one| program(one)).collect();
        let counted = count(machine, programs.iter());
        let mut ranked: Vec<(f64, usize)> = counted
            .iter()
            .enumerate()
            .filter_map(|(index, count)| count.map(|count| (count.rate(), index)))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        if let Some(&(rate, index)) = ranked.first()
            && rate > best.0
        {
            let names = herd[index].iter().map(|(operation, ..)| operation.name.as_str());
            best = (rate, names.collect::<Vec<_>>().join("; "));
        }
        let parents: Vec<_> =
            ranked.iter().take(8).map(|&(_, index)| herd[index].clone()).collect();
        herd = (0..HERD)
            .map(|index| {
                let mut child = match parents.get(index % 12) {
                    Some(parent) => parent.clone(),
                    None => random(operations, &mut dice),
                };
                let at = dice.below(child.len() as u64) as usize;
                child[at] = match dice.below(3) {
                    0 => (child[at].0, dice.below(90) as usize, dice.below(90) as usize),
                    _ => random_one(operations, &mut dice),
                };
                child
            })
            .collect();
    }
    best
}

fn less(count: Count, base: Count) -> Count {
    Count { instructions: count.instructions - base.instructions, units: count.units - base.units }
}

/// Instructions and fuel of each program; nothing for one that traps.
fn count<'p>(
    machine: &mut Machine,
    programs: impl Iterator<Item = &'p Program>,
) -> Vec<Option<Count>> {
    // As many as the smaller machine has room for.
    const BATCH_BYTES: usize = 1 << 22;
    let mut counts = Vec::new();
    let mut programs = programs.peekable();
    while programs.peek().is_some() {
        let mut input = Vec::new();
        while input.len() < BATCH_BYTES
            && let Some(program) = programs.next()
        {
            put(&mut input, &program.wasm);
            put(&mut input, &program.rounds.to_le_bytes());
        }
        let output = machine.count("fuel", &input);
        let mut rest = output.as_slice();
        while !rest.is_empty() {
            let one = take(&mut rest);
            counts.push(one.split_first_chunk::<4>().map(|(instructions, fuel)| Count {
                instructions: u32::from_le_bytes(*instructions).into(),
                units: u64::from_le_bytes(fuel.try_into().expect("eight bytes")) as f64,
            }));
        }
    }
    counts
}
