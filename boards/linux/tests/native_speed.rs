//! Programs run by the vm and at native speed: the same outcomes, host calls, replies and memory.
#![cfg(feature = "native-speed")]

mod compiler;

use tenure_board_linux::NativeSpeed;
use tenure_kernel::{Code, Engine, EngineError, EngineInstance, host_functions};
use tenure_vm::{Image, Instance, InstanceConfig, Limits, Outcome, TrapKind, Value, translate};
use tenure_wire::host_call::HostCall;
use tenure_wire::{Digest, VerifyingKey};

const LIMITS: InstanceConfig =
    InstanceConfig { stack_bytes: 16 * 1024, memory_bytes_max: 128 * 1024 };
const PLENTY: u64 = 50_000_000;
/// Which an engine that counts instructions doesn't care for.
const SPEED: u32 = 1;
const SLICES_MAX: usize = 10_000_000;

const PRELUDE: &str = r#"
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "uptime_us" (func $uptime_us (result i64)))
  (memory (export "memory") 1 3)
"#;

/// A program's behaviour, seen from the kernel.
#[derive(Debug, PartialEq)]
enum Step {
    Log(Vec<u8>),
    Read { offset: u32 },
    Clock,
    Done,
    Trap(TrapKind),
}

/// The operations that the vm and an engine have in common.
trait Run {
    fn run(&mut self, fuel: &mut u64) -> Outcome;
    fn arguments(&self) -> Vec<u64>;
    fn finish(&mut self, results: &[Value]);
    fn memory(&mut self) -> &mut [u8];
}

struct InVm<'a>(Instance, Image<'a>);

impl Run for InVm<'_> {
    fn run(&mut self, fuel: &mut u64) -> Outcome {
        self.0.run(&self.1, fuel)
    }

    fn arguments(&self) -> Vec<u64> {
        self.0.host_arguments().to_vec()
    }

    fn finish(&mut self, results: &[Value]) {
        self.0.finish_host_call(results).unwrap();
    }

    fn memory(&mut self) -> &mut [u8] {
        self.0.memory_mut()
    }
}

struct AtSpeed(Box<dyn EngineInstance>);

impl Run for AtSpeed {
    fn run(&mut self, fuel: &mut u64) -> Outcome {
        self.0.run(fuel, SPEED)
    }

    fn arguments(&self) -> Vec<u64> {
        self.0.host_arguments().to_vec()
    }

    fn finish(&mut self, results: &[Value]) {
        assert!(self.0.finish_host_call(results));
    }

    fn memory(&mut self) -> &mut [u8] {
        self.0.memory_mut()
    }
}

fn module(body: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {PRELUDE} {body})")).unwrap()
}

/// Waits until `engine` has prepared a module, as the kernel does between turns.
fn prepare(engine: &mut NativeSpeed, package: &Digest, wasm: &[u8]) {
    while !engine.is_prepared(package, &VerifyingKey([1; 32]), Code::WebAssembly(wasm)) {
        // Its process wants a processor, too.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn start(wasm: &[u8], limits: &InstanceConfig) -> Result<Box<dyn EngineInstance>, EngineError> {
    let (mut engine, package) = (compiler::engine(), Digest([0; 32]));
    prepare(&mut engine, &package, wasm);
    engine.start(&package, Code::WebAssembly(wasm), limits)
}

/// Runs `program` to its end in slices of `slice` fuel, answering host calls; gives what it did.
fn steps(program: &mut dyn Run, slice: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..SLICES_MAX {
        match program.run(&mut slice.clone()) {
            Outcome::OutOfFuel => {}
            Outcome::Done => {
                steps.push(Step::Done);
                return steps;
            }
            Outcome::Trap(trap) => {
                steps.push(Step::Trap(trap.kind));
                return steps;
            }
            Outcome::HostCall { function } => steps.push(serve(program, function)),
        }
    }
    panic!("the program doesn't end");
}

fn serve(program: &mut dyn Run, function: u16) -> Step {
    match HostCall::decode(function, &program.arguments()).unwrap() {
        HostCall::log { message, .. } => {
            let text = message.read_bytes(program.memory(), 256).unwrap().to_vec();
            program.finish(&[]);
            Step::Log(text)
        }
        HostCall::parameter_read { offset, into } => {
            let written = into.write(program.memory(), b"parameter").unwrap();
            program.finish(&[Value::I32(written as i32)]);
            Step::Read { offset }
        }
        HostCall::uptime_us {} => {
            program.finish(&[Value::I64(1 << 40)]);
            Step::Clock
        }
        other => panic!("{other:?}"),
    }
}

/// Runs the exported `main` of a module in the vm and at native speed, in slices of several sizes.
#[track_caller]
fn check(body: &str) -> Vec<Step> {
    let wasm = module(body);
    let mut image = Vec::new();
    translate(&wasm, &host_functions(), &Limits::default(), &mut image).unwrap();
    let image = Image::parse(&image).unwrap();
    let main = image.function("main").unwrap().index;
    let instance = Instance::new(&image, &LIMITS).unwrap();
    let mut expected = Vec::new();
    let mut in_vm = InVm(instance, image);
    if in_vm.0.is_busy() {
        expected = steps(&mut in_vm, PLENTY);
        expected.pop_if(|step| *step == Step::Done);
    }
    in_vm.0.prepare(&in_vm.1, main, &[]).unwrap();
    expected.extend(steps(&mut in_vm, PLENTY));
    for slice in [1, 999, PLENTY] {
        let mut compiled = start(&wasm, &LIMITS).unwrap();
        assert!(compiled.prepare("main"));
        assert_eq!(steps(&mut AtSpeed(compiled), slice), expected, "in slices of {slice}");
    }
    expected
}

#[test]
fn host_calls_read_and_write_the_machines_memory() {
    let expected = check(
        r#"(data (i32.const 16) "before")
           (func (export "main")
             (call $log (i32.const 2) (i32.const 16) (i32.const 6))
             (drop (call $parameter_read (i32.const 3) (i32.const 65530) (i32.const 6)))
             (call $log (i32.const 2) (i32.const 65530) (i32.const 6))
             (i32.store (i32.const 16) (i32.wrap_i64 (i64.shr_u (call $uptime_us) (i64.const 8))))
             (call $log (i32.const 2) (i32.const 16) (i32.const 6)))"#,
    );
    let log = |text: &[u8]| Step::Log(text.to_vec());
    let steps = [
        log(b"before"),
        Step::Read { offset: 3 },
        log(b"parame"),
        Step::Clock,
        log(b"\0\0\0\0re"),
        Step::Done,
    ];
    assert_eq!(expected, steps);
}

#[test]
fn memory_grows_within_the_budget_and_not_beyond() {
    check(
        r#"(func (export "main")
             (i32.store8 (i32.const 0) (i32.add (i32.const 48) (memory.grow (i32.const 1))))
             (i32.store8 (i32.const 1) (i32.add (i32.const 48) (memory.size)))
             (i32.store8 (i32.const 100000) (i32.const 33))
             (call $log (i32.const 2) (i32.const 0) (i32.const 2))
             (call $log (i32.const 2) (i32.const 100000) (i32.const 1)))"#,
    );
}

#[test]
fn the_start_function_runs_before_the_first_call() {
    check(
        r#"(start $begin)
           (func $begin (i32.store8 (i32.const 0) (i32.const 65))
             (call $log (i32.const 2) (i32.const 0) (i32.const 1)))
           (func (export "main") (call $log (i32.const 2) (i32.const 0) (i32.const 1)))"#,
    );
}

#[test]
fn traps_have_the_same_kind() {
    for (body, kind) in [
        ("unreachable", TrapKind::Unreachable),
        ("(drop (i32.load (i32.const 0x7fffffff)))", TrapKind::OutOfBounds),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", TrapKind::DivideByZero),
        ("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", TrapKind::IntegerOverflow),
        ("(drop (i32.trunc_f32_s (f32.const nan)))", TrapKind::InvalidConversion),
        ("(call $main)", TrapKind::StackOverflow),
        ("(call_indirect (i32.const 9))", TrapKind::TableOutOfBounds),
        ("(call_indirect (i32.const 1))", TrapKind::UninitializedElement),
        ("(call_indirect (param i32) (i32.const 1) (i32.const 0))", TrapKind::SignatureMismatch),
    ] {
        let program = format!(
            r#"(table 2 funcref) (elem (i32.const 0) $main)
               (func $main (export "main") {body})"#
        );
        assert_eq!(check(&program), [Step::Trap(kind)], "{body}");
    }
}

#[test]
fn a_trap_names_function_and_place() {
    let wasm = module(r#"(func $inner unreachable) (func (export "main") nop (call $inner))"#);
    let mut compiled = start(&wasm, &LIMITS).unwrap();
    assert!(compiled.prepare("main"));
    let Outcome::Trap(trap) = compiled.run(&mut PLENTY.clone(), SPEED) else { panic!("no trap") };
    assert_eq!(trap.function, 3, "the first behind three imports");
    assert_eq!(wasm[trap.offset as usize], 0x00, "the opcode of `unreachable`");
    let callers: Vec<u32> = compiled.callers().iter().map(|frame| frame.function).collect();
    assert_eq!(callers, [4]);
    assert_eq!(wasm[compiled.callers()[0].offset as usize], 0x10, "the opcode of `call`");
}

#[test]
fn a_machine_dropped_in_the_middle_of_a_call_is_gone() {
    let wasm = module(r#"(func (export "main") (drop (call $uptime_us)))"#);
    let mut compiled = start(&wasm, &LIMITS).unwrap();
    assert!(compiled.prepare("main"));
    assert!(matches!(compiled.run(&mut PLENTY.clone(), SPEED), Outcome::HostCall { .. }));
    assert!(!compiled.prepare("main"), "it is busy");
    drop(compiled);
}

#[test]
fn what_the_engine_cannot_run_is_refused_so_that_the_vm_runs_it() {
    let whole_pages = InstanceConfig { memory_bytes_max: 65_535, ..LIMITS };
    let wasm = module(r#"(func (export "main"))"#);
    assert_eq!(start(&wasm, &whole_pages).err(), Some(EngineError::Memory));
    let hidden = wat::parse_str(r#"(module (memory 1) (func (export "main")))"#).unwrap();
    assert_eq!(start(&hidden, &LIMITS).err(), Some(EngineError::Module));
    let mut compiled = start(&wasm, &LIMITS).unwrap();
    assert!(!compiled.prepare("missing"));
    assert!(!compiled.prepare("memory"));
}
