//! `fuel [--json] [--hunt GENERATIONS] [TARGET]…`: what a unit of fuel buys on emulated processors, by
//! operation, and the dearest program that a search finds.
//!
//! A table has a row for each operation: instructions a unit with its cheapest and its dearest operands.

extern crate alloc;

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/emulated/fuel.rs"]
mod fuel;
#[path = "../tests/emulated/journey.rs"]
#[allow(dead_code)]
mod journey;
#[path = "../tests/emulated/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "../tests/emulated/operations.rs"]
mod operations;

use fuel::{Price, Spread};
use machine::Machine;
use operations::Operation;

/// Builds the program for a machine.
type Build = fn() -> Machine;

/// The machines by name: built for speed, and for size.
const MACHINES: [(&str, Build); 4] = [
    ("riscv32imac", Machine::riscv),
    ("riscv32imac-size", Machine::small_riscv),
    ("thumbv7m", Machine::thumb),
    ("thumbv6m-size", Machine::small_thumb),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let hunt = arguments.iter().position(|argument| argument == "--hunt");
    let generations = hunt.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(0);
    let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !MACHINES.iter().any(|(name, _)| is_named(name));
    let operations = operations::operations();
    for (target, machine) in MACHINES {
        if all || is_named(target) {
            measure(target, &mut machine(), &operations, json, generations);
        }
    }
}

fn measure(
    target: &str,
    machine: &mut Machine,
    operations: &[Operation],
    json: bool,
    generations: usize,
) {
    let mut prices = fuel::prices(machine, operations);
    prices.sort_by(|a, b| b.dearest.rate().total_cmp(&a.dearest.rate()));
    for price in &prices {
        print(target, price, json);
    }
    let Spread { least, most } = fuel::spread(&prices);
    eprintln!("{target}: {least:.2} to {most:.2} instructions a unit, {:.2} times", most / least);
    if generations > 0 {
        let (rate, what) = fuel::hunt(machine, operations, 0x7E17, generations);
        eprintln!("{target}: the dearest found: {rate:.2}: {what}");
    }
}

fn print(target: &str, price: &Price, json: bool) {
    let Price { name, cheapest, dearest } = price;
    if !json {
        let times = f64::from(operations::TIMES);
        println!(
            "{target:<17} {:>6.1} {:>6.1}  ({:>5.0} instructions, {:>5.1} units)  {name}",
            cheapest.rate(),
            dearest.rate(),
            dearest.instructions / times,
            dearest.units / times,
        );
        return;
    }
    for (subject, count) in [("cheapest operands", cheapest), ("dearest operands", dearest)] {
        println!(
            "{{\"bench\":\"fuel\",\"target\":{target:?},\"subject\":{subject:?},\"metric\":{name:?},\
             \"unit\":\"instructions a unit\",\"value\":{:.2}}}",
            count.rate()
        );
    }
}
