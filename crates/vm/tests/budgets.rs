//! An instance stays within its configuration, and work that depends on it costs fuel.

mod common;

use common::assemble;
use tenure_vm::{
    Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, ResumeError, StartError,
    TrapKind, Value, translate,
};

fn image_of(text: &str) -> Vec<u8> {
    let mut image = Vec::new();
    translate(&assemble(text), &NoHostFunctions, &Limits::default(), &mut image).expect("valid");
    image
}

fn config(stack_bytes: usize, memory_bytes_max: usize) -> InstanceConfig {
    InstanceConfig { stack_bytes, memory_bytes_max }
}

/// Results of `run`, or its trap, and the fuel that it took in slices.
fn run(
    instance: &mut Instance,
    image: &Image<'_>,
    slice: u64,
) -> (Result<Vec<Value>, TrapKind>, u64) {
    let function = image.function("run").expect("exported").index;
    instance.prepare(image, function, &[]).expect("idle");
    let mut used = 0;
    loop {
        let mut fuel = slice;
        let outcome = instance.run(image, &mut fuel);
        used += slice - fuel;
        match outcome {
            Outcome::OutOfFuel => {}
            Outcome::Done => return (Ok(instance.results(image).collect()), used),
            Outcome::Trap(trap) => return (Err(trap.kind), used),
            Outcome::HostCall { .. } => unreachable!("it has no host"),
        }
    }
}

const FOUR_TABLES: &str =
    "(module (table 4096 funcref) (table 4096 funcref) (table 4096 funcref) (table 4096 funcref)
       (global (mut i64) (i64.const 1)) (func (export \"run\")))";

#[test]
fn tables_and_globals_beyond_the_stack_bytes_refuse_a_start() {
    let bytes = image_of(FOUR_TABLES);
    let image = Image::parse(&bytes).expect("just made");
    assert_eq!(image.fixed_bytes(), 4 * 4096 * 4 + 8);
    let start = |stack_bytes| Instance::new_lazy(&image, &config(stack_bytes, 1 << 20)).map(drop);
    assert_eq!(start(4096), Err(StartError::StackBudget));
    assert_eq!(start(4 * 4096 * 4 + 7), Err(StartError::StackBudget));
    assert_eq!(start(4 * 4096 * 4 + 8 + 512), Ok(()));
}

/// CRC-32 as the format has it, so that a forged image gets past it.
fn seal(bytes: &mut [u8]) {
    let body = bytes.len() - 4;
    let crc = bytes[..body].iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ byte as u32, |crc, _| crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    });
    bytes[body..].copy_from_slice(&(!crc).to_le_bytes());
}

#[test]
fn forged_image_with_ten_million_elements_does_not_start() {
    let mut bytes = image_of("(module (table 3 3 funcref) (func (export \"run\")))");
    // Tables stand last before the footer: type, elements, maximum.
    let at = bytes.len() - 120 - 8;
    assert_eq!(bytes[at..at + 8], [3, 0, 0, 0, 3, 0, 0, 0]);
    bytes[at..at + 4].copy_from_slice(&10_000_000u32.to_le_bytes());
    seal(&mut bytes);
    let image = Image::parse(&bytes).expect("no rule forbids it");
    let started = Instance::new_lazy(&image, &config(65_536, 1 << 20)).map(drop);
    assert_eq!(started, Err(StartError::StackBudget));
}

const GROWS: &str = "(module (memory 1) (table $t 2 4000 funcref)
   (func (export \"run\") (result i32 i32 i32)
     (i32.store (i32.const 996) (i32.const 1))
     (table.grow $t (ref.null func) (i32.const 100))
     (table.grow $t (ref.null func) (i32.const 200))
     (table.grow $t (ref.null func) (i32.const 50))))";

#[test]
fn table_that_grows_takes_its_bytes_of_the_memory() {
    let bytes = image_of(GROWS);
    let image = Image::parse(&bytes).expect("just made");
    let mut instance = Instance::new_lazy(&image, &config(4096, 2048)).expect("starts");
    let grown = [2, -1, 102].map(Value::I32).to_vec();
    assert_eq!(run(&mut instance, &image, 1000).0, Ok(grown));
    // 1,024 are committed, 600 are the table's.
    assert!(instance.memory_range_mut(2048 - 601, 1).is_some());
    assert!(instance.memory_range_mut(2048 - 600, 1).is_none());
    let mut state = Vec::new();
    instance.suspend(&image, &mut state);
    assert!(Instance::resume(&image, &state, &config(4096, 2048)).is_ok());
    let resumed = Instance::resume(&image, &state, &config(4096, 2000)).map(drop);
    assert_eq!(resumed, Err(ResumeError::MemoryBudget));
}

#[test]
fn memory_that_is_touched_first_costs_fuel_and_the_same_in_any_slices_and_budget() {
    let bytes = image_of(
        "(module (memory 1) (func (export \"run\") (result i32)
           (i32.store (i32.const 40000) (i32.const 1)) (i32.load (i32.const 40000))))",
    );
    let image = Image::parse(&bytes).expect("just made");
    let fuel = |slice, budget| {
        let mut instance = Instance::new_lazy(&image, &config(4096, budget)).expect("starts");
        let (results, first) = run(&mut instance, &image, slice);
        assert_eq!(results, Ok(vec![Value::I32(1)]));
        (first, run(&mut instance, &image, slice).1)
    };
    let (first, second) = fuel(1 << 30, 65_536);
    assert_eq!(first - second, 40_192 / 8, "a unit for each eight bytes up to the next step");
    for slice in [1, 7, 1000] {
        for budget in [40_004, 65_536, 1 << 20] {
            assert_eq!(fuel(slice, budget), (first, second), "{budget} bytes in slices of {slice}");
        }
    }
}

#[test]
fn locals_that_a_call_clears_cost_fuel_from_outside_too() {
    let fuel = |locals: usize| {
        let inner = "i64 ".repeat(locals);
        let text = format!("(module (func (export \"run\") (local {inner})))");
        let bytes = image_of(&text);
        let image = Image::parse(&bytes).expect("just made");
        let mut instance = Instance::new_lazy(&image, &config(16_384, 0)).expect("starts");
        run(&mut instance, &image, 1 << 30).1
    };
    assert_eq!(fuel(1000) - fuel(0), 500);
}

/// Calls that end by an instruction which costs more than the rest of a slice: dear ones in a row, and each kind of fault.
const ENDS: [(&str, &str); 6] = [
    (
        "25 divisions",
        "(module (func (export \"run\") (result f64) (f64.const 7)
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3)) (f64.div (f64.const 3))
           (f64.div (f64.const 3))))",
    ),
    (
        "copy",
        "(module (memory 1) (func (export \"run\")
           (memory.copy (i32.const 0) (i32.const 4096) (i32.const 9000))))",
    ),
    (
        "copy out of bounds",
        "(module (memory 1) (func (export \"run\")
           (memory.copy (i32.const 0) (i32.const 60000) (i32.const 9000))))",
    ),
    (
        "null in a second table",
        "(module (table 2 funcref) (table $second 2 funcref) (func (export \"run\")
           (call_indirect $second (i32.const 1))))",
    ),
    (
        "division by zero",
        "(module (func (export \"run\") (result i64)
           (i64.div_u (i64.div_u (i64.const -1) (i64.const 3)) (i64.const 0))))",
    ),
    (
        "memory beyond the budget",
        "(module (memory 1) (func (export \"run\") (i32.store (i32.const 60000) (i32.const 1))))",
    ),
];

#[test]
fn call_costs_the_same_in_slices_however_it_ends() {
    for (name, text) in ENDS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("just made");
        let start = || Instance::new_lazy(&image, &config(4096, 32 * 1024)).expect("it fits");
        let whole = run(&mut start(), &image, 1 << 30);
        for slice in 1..=whole.1 + 1 {
            assert_eq!(run(&mut start(), &image, slice), whole, "{name}, in slices of {slice}");
        }
    }
}

#[test]
fn call_that_has_ended_and_owes_is_suspended_and_pays_after_it() {
    for (name, text) in ENDS {
        let bytes = image_of(text);
        let image = Image::parse(&bytes).expect("just made");
        let limits = config(4096, 32 * 1024);
        let start = || Instance::new_lazy(&image, &limits).expect("it fits");
        let whole = run(&mut start(), &image, 1 << 30);
        let mut instance = start();
        let function = image.function("run").expect("exported").index;
        instance.prepare(&image, function, &[]).expect("idle");
        let mut used = 0;
        let end = loop {
            let mut fuel = 5;
            let outcome = instance.run(&image, &mut fuel);
            used += 5 - fuel;
            match outcome {
                Outcome::OutOfFuel => {
                    let mut bytes = Vec::new();
                    instance.suspend(&image, &mut bytes);
                    instance = Instance::resume(&image, &bytes, &limits).expect("own bytes");
                }
                Outcome::Trap(trap) => break Err(trap.kind),
                _ => break Ok(instance.results(&image).collect()),
            }
        };
        assert_eq!((end, used), whole, "{name}");
    }
}

#[cfg(feature = "profile")]
#[test]
fn steps_take_together_what_a_run_takes_and_end_alike() {
    for (name, body) in ENDS {
        let bytes = image_of(body);
        let image = Image::parse(&bytes).expect("just made");
        let start = || Instance::new_lazy(&image, &config(4096, 32 * 1024)).expect("it fits");
        let whole = run(&mut start(), &image, 1 << 30);
        let mut instance = start();
        let function = image.function("run").expect("exported").index;
        instance.prepare(&image, function, &[]).expect("idle");
        let (mut used, mut steps) = (0, 0);
        let outcome = loop {
            let before = instance.clone();
            let (units, outcome) = instance.step(&image);
            assert_eq!(
                before.clone().step(&image),
                (units, outcome),
                "{name}: a copy does the same"
            );
            (used, steps) = (used + units, steps + 1);
            if let Some(outcome) = outcome {
                break outcome;
            }
        };
        let ended = match outcome {
            Outcome::Trap(trap) => Err(trap.kind),
            _ => Ok(instance.results(&image).collect()),
        };
        assert_eq!((ended, used), whole, "{name}");
        assert!(steps > 1 && instance.owed() == 0, "{name}");
    }
}
