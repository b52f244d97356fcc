//! The most that the compiler of native speed takes: of each shape of function the largest module that it is given, and the
//! processor time and memory of the process that compiles it.
//!
//! `cargo xtask bench compiler`. A shape is a function with a size, the largest that passes, repeated as often as passes.

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio, exit};

use rustix::time::{ClockId, clock_gettime};
use tenure_bench_report::{Program, Row, Rows};
use tenure_board_linux::{NativeSpeed, compile_for_a_device};
use tenure_kernel::{Code, Engine as _};
use tenure_wire::{Digest, VerifyingKey};

/// Says that this is the process that compiles.
const CHILD: &str = "TENURE_BENCH_COMPILES";
/// The longest function, and module, that is compiled at all.
const FUNCTION_BYTES_MAX: usize = 16 * 1024;
const MODULE_BYTES_MAX: usize = 512 * 1024;
/// The values of the types that shapes use.
const VALUES: usize = 1_000;

/// The text of a function of a size.
type Shape = fn(usize) -> String;

const SHAPES: [(&str, Shape); 19] = [
    ("empty functions", |_| "(func)".into()),
    ("branches", |size| format!("(func {})", "i32.const 1 br_if 0 ".repeat(size))),
    ("indirect calls", |size| {
        format!("(func {})", "i32.const 0 call_indirect (type $none) ".repeat(size))
    }),
    ("elements of tables", |size| {
        format!("(func {})", "i32.const 0 table.get 0 drop ".repeat(size))
    }),
    ("loops in loops", |size| nested(1, size, size)),
    ("loops in loops, 80 variables", |size| nested(80, size, size)),
    ("loops in loops, 1,000 variables", |size| nested(VALUES, size, size)),
    ("loops that end at once, 100 variables", |size| nested(100, size, 0)),
    ("loops that end at once, 1,000 variables", |size| nested(VALUES, size, 0)),
    ("loops, 100 variables", |size| {
        let step = |at| format!("loop {} i32.const 1 br_if 0 end ", set(at, 100));
        format!("(func {} {})", variables(100), (0..size).map(step).collect::<String>())
    }),
    ("conditions, 100 variables", |size| {
        let step = |at| format!("i32.const 0 i32.load if {} end ", set(at, 100));
        let all: String = (0..100).map(|at| set(at, 100)).collect();
        format!("(func {} {} {all})", variables(100), (0..size).map(step).collect::<String>())
    }),
    ("conditions in conditions", |size| {
        let ends: String = (0..size).map(|at| format!("{} end ", set(at, 2))).collect();
        format!("(func {} {} {ends})", variables(2), "i32.const 0 i32.load if ".repeat(size))
    }),
    ("a table of branches, 80 variables", |size| {
        let targets: String = (0..size).map(|at| format!("{at} ")).collect();
        let ends: String = (0..size).map(|at| format!("end {} ", set(at, 80))).collect();
        let blocks = "block ".repeat(size);
        format!("(func {} {blocks} i32.const 0 i32.load br_table {targets} {ends})", variables(80))
    }),
    ("tables of branches", |size| {
        let targets: String = (0..61).map(|at| format!("{at} ")).collect();
        let table = format!("block i32.const 0 i32.load br_table {targets} end ");
        format!("(func {} {} {})", "block ".repeat(60), table.repeat(size), "end ".repeat(60))
    }),
    ("calls over 800 values", |size| {
        let set: String =
            (0..800).map(|at| format!("i32.const 0 i64.load local.set {at} ")).collect();
        let kept: String =
            (0..800).map(|at| format!("i32.const 0 local.get {at} i64.store ")).collect();
        format!("(func {} {set} {} {kept})", variables(800), "call $nothing ".repeat(size))
    }),
    ("results of calls", |size| {
        format!("(func (type $many) {} return)", "call $given ".repeat(size))
    }),
    ("functions for others, 1,000 results", |_| {
        "(func $NAME (type $many) unreachable) (elem declare func $NAME)".into()
    }),
    ("functions for others, 1,000 parameters", |_| {
        "(func $NAME (type $taken)) (elem declare func $NAME)".into()
    }),
    ("divisions", |size| {
        let step = "local.get 0 local.get 1 i64.div_s local.set 0 ";
        format!("(func {} {})", variables(2), step.repeat(size))
    }),
];

fn variables(count: usize) -> String {
    format!("(local {})", "i64 ".repeat(count))
}

/// Sets a variable of `count` to another one.
fn set(at: usize, count: usize) -> String {
    format!("local.get {} local.set {} ", (at * 7 + 1) % count, at % count)
}

/// Loops in one another around something with all variables, of which `back` go back.
fn nested(count: usize, loops: usize, back: usize) -> String {
    let all: String = (0..count).map(|at| set(at, count)).collect();
    let ends = "i32.const 1 br_if 0 end ".repeat(back) + &"end ".repeat(loops - back);
    format!("(func {} {} {all} {ends})", variables(count), "loop ".repeat(loops))
}

fn module(shape: Shape, size: usize, times: usize) -> Vec<u8> {
    let function = shape(size);
    let functions: String =
        (0..times).map(|number| function.replace("NAME", &format!("f{number}"))).collect();
    let values = "i64 ".repeat(VALUES);
    let text = format!(
        r#"(module (type $none (func)) (type $many (func (result {values})))
             (type $taken (func (param {values})))
             (memory (export "memory") 1) (table 8 funcref)
             (func $nothing) (func $given (type $many) unreachable) {functions})"#
    );
    wat::parse_str(text).unwrap_or_default()
}

/// Whether a device gives that module to its compiler.
fn passes(wasm: &[u8]) -> bool {
    let mut engine = NativeSpeed::new(|| Command::new("/nowhere"));
    let (package, tenant) = (Digest([0; 32]), VerifyingKey([0; 32]));
    !wasm.is_empty() && !engine.is_prepared(&package, &tenant, Code::WebAssembly(wasm))
}

/// The largest number up to `bound` for which that is so, if it is so for one and for none above another.
fn largest(bound: usize, is_so: impl Fn(usize) -> bool) -> usize {
    let (mut most, mut above) = (1_usize, bound + 1);
    while most + 1 < above {
        let middle = most.midpoint(above);
        match is_so(middle) {
            true => most = middle,
            false => above = middle,
        }
    }
    most
}

fn main() -> ExitCode {
    if env::var_os(CHILD).is_some() {
        let is_compiled = compile_for_a_device();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let took = clock_gettime(ClockId::ProcessCPUTime);
        println!("{} {} {}", took.tv_sec, took.tv_nsec, peak.unwrap_or_default());
        exit(i32::from(!is_compiled));
    }
    let program = Program {
        help: "Measures what the compiler of native speed takes at most.\n\nUsage: compiler [--json]\n",
        targets: &["host"],
    };
    program.run(|_, rows| {
        measure(rows);
        Ok(())
    })
}

fn measure(rows: &mut Rows) {
    for (name, shape) in SHAPES {
        let has_size = shape(1) != shape(2);
        let size_max = if has_size { FUNCTION_BYTES_MAX } else { 1 };
        let size = largest(size_max, |size| passes(&module(shape, size, 1)));
        let bytes = module(shape, size, 2).len() - module(shape, size, 1).len();
        let times = largest(MODULE_BYTES_MAX / bytes, |times| passes(&module(shape, size, times)));
        let wasm = module(shape, size, times);
        let (bench, target) = ("compiler".to_string(), "host".to_string());
        let mut show = |metric: &str, unit, value| {
            let (bench, target, subject) = (bench.clone(), target.clone(), name.into());
            rows.push(Row { bench, target, subject, metric: metric.into(), unit, value });
        };
        show("size of a function", "", size as f64);
        show("functions", "", times as f64);
        show("module", "bytes", wasm.len() as f64);
        match compile(&wasm) {
            Some((processor_s, peak_kb)) => {
                show("processor", "s", processor_s);
                show("memory", "MB", peak_kb / 1024.0);
            }
            None => show("ended at its limits", "", 1.0),
        }
    }
}

/// Compiles a module in a process like a device's; the seconds of a processor that took, and the memory in KB; `None` if the
/// process was ended.
fn compile(wasm: &[u8]) -> Option<(f64, f64)> {
    let (mut ours, theirs) = UnixStream::pair().ok()?;
    let mut command = Command::new(env::current_exe().ok()?);
    command.env(CHILD, "true").stdin(OwnedFd::from(theirs)).stdout(Stdio::piped());
    let child = command.spawn().ok()?;
    drop(command);
    ours.write_all(wasm).and_then(|()| ours.shutdown(Shutdown::Write)).ok()?;
    let mut code = Vec::new();
    ours.read_to_end(&mut code).ok()?;
    let output = child.wait_with_output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse::<f64>().ok());
    let (seconds, nanoseconds, peak) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some((seconds + nanoseconds * 1e-9, peak))
}
