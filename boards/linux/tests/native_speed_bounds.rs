//! The bounds of machines at native speed: fuel beside the vm's, memory, and the compiler's time.
#![cfg(feature = "native-speed")]

mod compiler;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};

use tenure_board_linux::NativeSpeed;
use tenure_kernel::{Code, Engine, EngineError, EngineInstance, host_functions};
use tenure_vm::{Image, Instance, InstanceConfig, Limits, Outcome, Value, translate};
use tenure_wire::{Digest, VerifyingKey};

const MEBIBYTE: usize = 1024 * 1024;
const LIMITS: InstanceConfig =
    InstanceConfig { stack_bytes: 64 * 1024, memory_bytes_max: 4 * MEBIBYTE };
/// Which an engine that counts instructions doesn't care for.
const SPEED: u32 = 1;
const SLICE: u64 = 20_000;
const PACKAGE: Digest = Digest([7; 32]);
const TENANT: VerifyingKey = VerifyingKey([8; 32]);

fn module(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
             (memory (export "memory") 17) {body})"#
    );
    wat::parse_str(text).unwrap()
}

fn start_on(
    engine: &mut NativeSpeed,
    wasm: &[u8],
    limits: &InstanceConfig,
) -> Result<Box<dyn EngineInstance>, EngineError> {
    while !engine.is_prepared(&PACKAGE, &TENANT, Code::WebAssembly(wasm)) {
        // Its process wants a processor, too.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    engine.start(&PACKAGE, Code::WebAssembly(wasm), limits)
}

fn start(wasm: &[u8]) -> Box<dyn EngineInstance> {
    start_on(&mut compiler::engine(), wasm, &LIMITS).unwrap()
}

/// The fuel that `main` takes at native speed in slices, the debt of its last slice included, and how
/// many slices that were.
fn at_speed(wasm: &[u8]) -> (u64, u64) {
    let mut machine = start(wasm);
    assert!(machine.prepare("main"));
    let (mut used, mut slices) = (0, 0);
    let mut done = false;
    loop {
        let mut fuel = SLICE;
        let outcome = machine.run(&mut fuel, SPEED);
        (used, slices) = (used + SLICE - fuel, slices + 1);
        match outcome {
            Outcome::Done if fuel > 0 => return (used, slices),
            // It owes for what it did last: an empty call pays for that.
            Outcome::Done => {
                assert!(!done || machine.prepare("idle"));
                done = true;
                assert!(machine.prepare("idle"));
            }
            Outcome::OutOfFuel => {}
            Outcome::HostCall { .. } => assert!(machine.finish_host_call(&[Value::I32(0)])),
            Outcome::Trap(trap) => panic!("{trap:?}"),
        }
    }
}

/// The fuel that `main` takes in the vm.
fn in_vm(wasm: &[u8]) -> u64 {
    let mut image = Vec::new();
    translate(wasm, &host_functions(), &Limits::default(), &mut image).unwrap();
    let image = Image::parse(&image).unwrap();
    let mut instance = Instance::new(&image, &LIMITS).unwrap();
    let main = image.function("main").unwrap().index;
    instance.prepare(&image, main, &[]).unwrap();
    let mut used = 0;
    loop {
        let mut fuel = SLICE;
        let outcome = instance.run(&image, &mut fuel);
        used += SLICE - fuel;
        match outcome {
            Outcome::Done => return used,
            Outcome::OutOfFuel => {}
            Outcome::HostCall { .. } => instance.finish_host_call(&[Value::I32(0)]).unwrap(),
            Outcome::Trap(trap) => panic!("{trap:?}"),
        }
    }
}

/// A loop of a thousand rounds around `step`, which may use locals of each type.
fn looped(step: &str) -> String {
    format!(
        r#"(func $leaf (param i32 i64) (result i32) local.get 0)
           (func $many (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64))
           (type $leaf (func (param i32 i64) (result i32)))
           (table $table 64 funcref) (elem (i32.const 0) $leaf)
           (global $global (mut i64) (i64.const 1))
           (func (export "idle"))
           (func (export "main") (local $i i32) (local $x i32) (local $y i32)
             (local $p i64) (local $q i64) (local $f f32) (local $g f32) (local $d f64) (local $e f64)
             (local.set $y (i32.const 3)) (local.set $q (i64.const 3))
             (local.set $g (f32.const 3)) (local.set $e (f64.const 3))
             (loop $again
               {step}
               (br_if $again (i32.lt_u
                 (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000)))))"#
    )
}

/// One instruction of each kind, eight in a row so that the loop around them counts little.
fn kinds() -> Vec<(String, String)> {
    let mut kinds = Vec::new();
    let mut add = |name: &str, step: String| kinds.push((name.to_string(), step.repeat(8)));
    for op in ["add", "sub", "mul", "and", "shl", "rotl", "div_u", "div_s", "rem_u", "lt_s", "eq"] {
        let (x, y) = ("(local.get $x)", "(local.get $y)");
        add(&format!("i32.{op}"), format!("(local.set $x (i32.{op} {x} {y}))"));
        let (p, q) = ("(local.get $p)", "(local.get $q)");
        let value = format!("(i64.{op} {p} {q})");
        let is_test = matches!(op, "lt_s" | "eq");
        let value = if is_test { format!("(i64.extend_i32_u {value})") } else { value };
        add(&format!("i64.{op}"), format!("(local.set $p {value})"));
    }
    for op in ["add", "sub", "mul", "div", "min", "max", "copysign"] {
        add(
            &format!("f32.{op}"),
            format!("(local.set $f (f32.{op} (local.get $f) (local.get $g)))"),
        );
        add(
            &format!("f64.{op}"),
            format!("(local.set $d (f64.{op} (local.get $d) (local.get $e)))"),
        );
    }
    for op in ["sqrt", "floor", "nearest", "abs"] {
        add(&format!("f32.{op}"), format!("(local.set $f (f32.{op} (local.get $g)))"));
        add(&format!("f64.{op}"), format!("(local.set $d (f64.{op} (local.get $e)))"));
    }
    for op in ["clz", "ctz", "popcnt"] {
        add(&format!("i32.{op}"), format!("(local.set $x (i32.{op} (local.get $y)))"));
        add(&format!("i64.{op}"), format!("(local.set $p (i64.{op} (local.get $q)))"));
    }
    for (name, step) in [
        ("local.set", "(local.set $x (local.get $y))"),
        ("i64.const", "(local.set $p (i64.const 0x123456789abcdef))"),
        ("f64.const", "(local.set $d (f64.const 1.2345678901))"),
        ("select", "(local.set $p (select (local.get $p) (local.get $q) (local.get $i)))"),
        ("if", "(if (local.get $i) (then (local.set $x (local.get $y))))"),
        ("block", "(block (br_if 0 (i32.eqz (local.get $i))) (local.set $x (local.get $y)))"),
        (
            "br_table",
            "(block (block (br_table 0 1 0 1 (local.get $i))) (local.set $x (local.get $y)))",
        ),
        ("i32.load", "(local.set $x (i32.load offset=64 (local.get $y)))"),
        ("i64.load8_s", "(local.set $p (i64.load8_s offset=64 (local.get $y)))"),
        ("i32.store", "(i32.store offset=64 (local.get $y) (local.get $x))"),
        ("i64.store", "(i64.store offset=70000 (local.get $y) (i64.const 77))"),
        ("f64.load", "(local.set $d (f64.load offset=64 (local.get $y)))"),
        ("global", "(global.set $global (i64.add (global.get $global) (local.get $q)))"),
        ("call", "(local.set $x (call $leaf (local.get $x) (local.get $p)))"),
        ("call with locals", "(call $many)"),
        (
            "call_indirect",
            "(local.set $x (call_indirect (type $leaf)
            (local.get $x) (local.get $p) (i32.const 0)))",
        ),
        ("conversions", "(local.set $p (i64.trunc_sat_f64_s (f64.convert_i64_s (local.get $q))))"),
        ("f32 comparison", "(local.set $x (f32.lt (local.get $f) (local.get $g)))"),
        ("f64 comparison", "(local.set $x (f64.le (local.get $d) (local.get $e)))"),
        ("promotion", "(local.set $d (f64.promote_f32 (local.get $g)))"),
        ("demotion", "(local.set $f (f32.demote_f64 (local.get $e)))"),
        ("i32 of f32", "(local.set $x (i32.trunc_f32_s (local.get $g)))"),
        ("i64 of f32", "(local.set $p (i64.trunc_sat_f32_u (local.get $g)))"),
        ("f32 of i64", "(local.set $f (f32.convert_i64_u (local.get $q)))"),
        ("f64 of i32", "(local.set $d (f64.convert_i32_s (local.get $y)))"),
        ("i32.load misaligned", "(local.set $x (i32.load offset=64 align=1 (local.get $y)))"),
        ("i64.store misaligned", "(i64.store offset=65 align=1 (local.get $y) (local.get $q))"),
        ("memory.copy misaligned", "(memory.copy (i32.const 1) (i32.const 9002) (i32.const 501))"),
        ("memory.size", "(local.set $x (memory.size))"),
        ("memory.grow", "(local.set $x (memory.grow (i32.const 0)))"),
        ("memory.fill", "(memory.fill (i32.const 0) (i32.const 1) (i32.const 500))"),
        ("memory.copy", "(memory.copy (i32.const 0) (i32.const 9000) (i32.const 500))"),
        ("table.get", "(local.set $x (ref.is_null (table.get (local.get $y))))"),
        ("table.set", "(table.set (local.get $y) (ref.null func))"),
        ("table.size", "(local.set $x (table.size))"),
        ("table.fill", "(table.fill (i32.const 0) (ref.null func) (i32.const 64))"),
        ("table.copy", "(table.copy (i32.const 0) (i32.const 32) (i32.const 32))"),
    ] {
        add(name, step.to_string());
    }
    kinds
}

#[test]
fn no_kind_of_instruction_is_cheaper_at_native_speed_than_in_the_vm() {
    let mut cheap = Vec::new();
    for (name, step) in kinds() {
        let wasm = module(&looped(&step));
        let (vm, (speed, _)) = (in_vm(&wasm), at_speed(&wasm));
        if speed * 11 < vm * 10 {
            cheap.push(format!("{name}: {speed} at native speed, {vm} in the vm"));
        }
    }
    assert!(cheap.is_empty(), "{}", cheap.join("\n"));
}

#[test]
fn a_bulk_instruction_is_paid_for_before_it_is_done() {
    let body = r#"(func (export "idle"))
        (func (export "main") (local $i i32)
          (loop $again
            (memory.fill (i32.const 0) (i32.const 1) (i32.const 1048576))
            (br_if $again (i32.lt_u
              (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20)))))"#;
    let wasm = module(body);
    let (used, slices) = at_speed(&wasm);
    assert!(used >= 20 * MEBIBYTE as u64 / 16, "{used} for 20 MiB");
    assert!(slices >= used / SLICE, "{slices} slices for {used}");
    assert!(used * 11 >= in_vm(&wasm) * 10);
}

#[test]
fn a_slice_overspends_by_one_bulk_instruction_over_all_memory_at_most() {
    let budget = 64 * MEBIBYTE;
    let limits = InstanceConfig { memory_bytes_max: budget, ..LIMITS };
    let body = format!(
        r#"(func (export "main")
             (drop (memory.grow (i32.const {})))
             (loop $again
               (memory.fill (i32.const 0) (i32.const 1) (i32.const {budget}))
               (drop (call $tree_get (i32.const 0) (i32.const 1) (i32.const 64) (i32.const 1)))
               (br $again)))"#,
        budget / 65_536 - 17
    );
    let mut engine = compiler::engine();
    let mut machine = start_on(&mut engine, &module(&body), &limits).unwrap();
    assert!(machine.prepare("main"));
    let (mut slices, mut slices_by_round) = (0, Vec::new());
    while slices_by_round.len() < 4 {
        let mut fuel = SLICE;
        slices += 1;
        match machine.run(&mut fuel, SPEED) {
            Outcome::OutOfFuel => assert_eq!(fuel, 0, "what it owes comes first"),
            Outcome::HostCall { .. } => {
                slices_by_round.push(core::mem::take(&mut slices));
                assert!(machine.finish_host_call(&[Value::I32(0)]));
            }
            other => panic!("{other:?}"),
        }
    }
    // The memory is touched once, and what that costs is paid in slices before it is touched again.
    let least = budget as u64 / 16 / SLICE;
    assert!(slices_by_round.iter().all(|slices| *slices >= least), "{slices_by_round:?}");
}

#[test]
fn a_loop_without_end_stops_at_the_end_of_its_fuel_and_pays_what_it_overspent() {
    let mut machine = start(&module(r#"(func (export "main") (loop $again (br $again)))"#));
    assert!(machine.prepare("main"));
    let mut fuel = 15_000;
    assert_eq!(machine.run(&mut fuel, SPEED), Outcome::OutOfFuel);
    assert_eq!(fuel, 0);
    let mut fuel = 4_000;
    assert_eq!(machine.run(&mut fuel, SPEED), Outcome::OutOfFuel, "still paying");
    assert_eq!(fuel, 0);
}

#[test]
fn fuel_is_the_same_in_slices_of_every_size() {
    let wasm = module(&looped("(memory.fill (i32.const 0) (i32.const 1) (i32.const 70000))"));
    let used = |slice: u64| {
        let mut machine = start(&wasm);
        assert!(machine.prepare("main"));
        let mut used = 0;
        loop {
            let mut fuel = slice;
            let outcome = machine.run(&mut fuel, SPEED);
            used += slice - fuel;
            match outcome {
                Outcome::Done => return used,
                Outcome::OutOfFuel => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let whole = used(u64::MAX / 2);
    // The next call pays for the last slice's overspending: an interval, or one fill.
    let sliced = used(7_000);
    assert!(sliced <= whole && whole - sliced < 30_000, "{sliced} of {whole}");
}

#[test]
fn what_a_host_call_copies_is_paid_by_its_length() {
    let reads = |room: usize| {
        let step = format!(
            "(drop (call $tree_get (i32.const 0) (i32.const 1) (i32.const 64) (i32.const {room})))"
        );
        at_speed(&module(&looped(&step))).0
    };
    let (short, long, longest) = (reads(1), reads(8_192), reads(MEBIBYTE));
    assert!(long - short >= 1_000 * 8_192 / 16, "{long} and {short}");
    assert!(longest - short >= 1_000 * 65_536 / 16, "{longest}: more than 64 KiB isn't looked at");
}

#[test]
fn tables_are_part_of_the_memory_budget() {
    let limits = InstanceConfig { memory_bytes_max: 2 * MEBIBYTE, ..LIMITS };
    let mut engine = compiler::engine();
    let tables = "(table 50000 funcref) (table 50000 funcref) (table 50000 funcref)";
    let wasm = module(&format!("{tables} (func (export \"main\"))"));
    assert_eq!(start_on(&mut engine, &wasm, &limits).err(), Some(EngineError::Memory));
    let wasm = module(
        r#"(table $one 1 funcref) (table $two 1 funcref)
           (func (export "main")
             (if (i32.eq (table.grow $one (ref.null func) (i32.const 60000)) (i32.const -1))
               (then unreachable))
             (if (i32.ne (table.grow $two (ref.null func) (i32.const 70000)) (i32.const -1))
               (then unreachable))
             (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
             (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)))"#,
    );
    let mut machine = start_on(&mut compiler::engine(), &wasm, &limits).unwrap();
    assert!(machine.prepare("main"));
    assert_eq!(machine.run(&mut 1_000_000, SPEED), Outcome::Done);
}

#[test]
fn a_module_is_compiled_beside_the_devices_turns() {
    let mut engine = compiler::engine();
    let body = "(local.set 0 (i32.add (local.get 0) (i32.const 1)))".repeat(1_000);
    let functions = format!("(func (local i32) {body})").repeat(15);
    let wasm = module(&format!(r#"{functions} (func (export "main"))"#));
    let code = Code::WebAssembly(&wasm);
    assert!(!engine.is_prepared(&PACKAGE, &TENANT, code), "the compiler has only begun");
    // It may be done by now, on a computer that had other things to do.
    let refused = engine.start(&PACKAGE, code, &LIMITS).err();
    assert!(refused.is_none_or(|error| error == EngineError::Compiling), "{refused:?}");
    let mut machine = start_on(&mut engine, &wasm, &LIMITS).unwrap();
    assert!(machine.prepare("main"));
    assert_eq!(machine.run(&mut 1_000_000, SPEED), Outcome::Done);
}

#[test]
fn a_module_or_function_that_is_too_long_never_reaches_the_compiler() {
    let long = "(local.set 0 (i32.add (local.get 0) (i32.const 1)))".repeat(3_000);
    let wasm = module(&format!(r#"(func (local i32) {long}) (func (export "main"))"#));
    let mut engine = compiler::engine();
    assert!(
        engine.is_prepared(&PACKAGE, &TENANT, Code::WebAssembly(&wasm)),
        "it is refused at once"
    );
    let refused = engine.start(&PACKAGE, Code::WebAssembly(&wasm), &LIMITS);
    assert_eq!(refused.err(), Some(EngineError::TooLong));
    let data = "x".repeat(600 * 1024);
    let wasm = module(&format!(r#"(data (i32.const 0) "{data}") (func (export "main"))"#));
    let refused = start_on(&mut compiler::engine(), &wasm, &LIMITS);
    assert_eq!(refused.err(), Some(EngineError::TooLong));
}

#[test]
fn module_whose_compilation_ends_its_process_is_refused_and_the_next_one_isnt() {
    // B-9: it took the device's memory, and its process with that.
    let wasm = module(r#"(func (export "main"))"#);
    for (script, error) in [
        ("kill -KILL $$", EngineError::TooLong),
        ("kill -XCPU $$", EngineError::TooLong),
        ("exit 1", EngineError::Module),
        ("cat", EngineError::Module),
    ] {
        let mut engine = NativeSpeed::new(move || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        });
        for _ in 0..2 {
            assert_eq!(start_on(&mut engine, &wasm, &LIMITS).err(), Some(error), "{script}");
        }
    }
    let mut nowhere = NativeSpeed::new(|| Command::new("/nowhere"));
    assert_eq!(start_on(&mut nowhere, &wasm, &LIMITS).err(), Some(EngineError::NoCompiler));
    assert!(start_on(&mut compiler::engine(), &wasm, &LIMITS).is_ok());
}

/// A compiler's process to which nothing was sent yet.
fn waiting_compiler() -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut command = compiler::command();
    command.stdin(OwnedFd::from(theirs)).stdout(std::process::Stdio::null());
    (command.spawn().unwrap(), ours)
}

#[test]
fn compilers_process_has_limits_and_ends_with_the_thread_that_started_it() {
    // B-9.
    let starter = std::thread::spawn(|| {
        let (child, device) = waiting_compiler();
        let of_child =
            |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
        tenure_testbed::wait_until(|| match of_child("oom_score_adj").trim() {
            "1000" => Ok(()),
            other => Err(format!("it isn't ready: {other}")),
        });
        let limits = of_child("limits");
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().take(2).map(|it| it.parse().unwrap()).collect::<Vec<u64>>()
        };
        assert_eq!(limit("Max cpu time"), [20, 20]);
        assert_eq!(limit("Max data size"), [256 << 20, 256 << 20]);
        assert_eq!(limit("Max core file size"), [0, 0]);
        (child, device)
    });
    let (mut child, _device) = starter.join().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}
