//! Times on this machine. All subjects run one guest in turn, several rounds; the fastest round counts,
//! because a shared machine only ever adds to it.

use std::{hint::black_box, time::Instant};

use tenure_vm::{
    Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, Value, translate,
};

use tenure_bench_report::Row;

const ROUNDS: usize = 80;

macro_rules! guests {
    ($($name:ident: $native:ident, $repetitions:literal;)*) => {
        unsafe extern "C" { $(fn $native(repetitions: u32) -> u32;)* }

        pub fn measure() -> Vec<Row> {
            let mut rows = Vec::new();
            $(
                let wasm = include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".wasm"));
                // SAFETY: plain C functions of the guests' sources.
                guest(&mut rows, stringify!($name), wasm, &|n| unsafe { $native(n) }, $repetitions);
            )*
            rows
        }
    };
}

// Repetitions that take an interpreter about a millisecond: less than what the system lets it run at once.
guests! {
    mark: native_mark, 5;
    fib: native_fib, 5;
    sha256: native_sha256, 1;
    sieve: native_sieve, 5;
    crc32: native_crc32, 10;
}

type Subject<'s> = (&'static str, Box<dyn FnMut(u32) -> u32 + 's>);

fn guest(
    rows: &mut Vec<Row>,
    name: &str,
    wasm: &[u8],
    native: &dyn Fn(u32) -> u32,
    repetitions: u32,
) {
    let mut subjects: Vec<Subject<'_>> = vec![
        ("native", Box::new(native)),
        ("tenure", tenure(wasm, u64::MAX)),
        ("tenure, slices of 10,000", tenure(wasm, 10_000)),
        ("wasmi", wasmi(wasm, false)),
        ("wasmi, fuel", wasmi(wasm, true)),
        ("tinywasm", tinywasm(wasm)),
        // As `boards/linux` configures it for machines that ask for native speed.
        ("wasmtime, fuel", wasmtime(wasm, Code::Native)),
        ("pulley, fuel", wasmtime(wasm, Code::Pulley)),
    ];
    let mut best = vec![f64::INFINITY; subjects.len()];
    let expected = native(repetitions);
    for _ in 0..ROUNDS {
        for ((subject, run), best) in subjects.iter_mut().zip(&mut best) {
            let start = Instant::now();
            let result = run(black_box(repetitions));
            *best = best.min(start.elapsed().as_secs_f64());
            assert_eq!(result, expected, "{subject} computes {name} wrongly");
        }
    }
    for ((subject, _), &seconds) in subjects.iter().zip(&best) {
        for (metric, unit, value) in [
            ("time", "us", seconds * 1e6 / repetitions as f64),
            ("time_over_native", "ratio", seconds / best[0]),
        ] {
            rows.push(Row {
                bench: format!("vm/{name}"),
                target: "host".into(),
                subject: (*subject).into(),
                metric: metric.into(),
                unit,
                value,
            });
        }
    }
}

fn tenure(wasm: &[u8], slice: u64) -> Box<dyn FnMut(u32) -> u32> {
    let mut image = Vec::new();
    translate(wasm, &NoHostFunctions, &Limits::default(), &mut image).expect("the guest is valid");
    let image: &'static [u8] = image.leak();
    let image = Image::parse(image).expect("just made");
    let config = InstanceConfig { stack_bytes: 4096, memory_bytes_max: 1 << 20 };
    let mut instance = Instance::new(&image, &config).expect("small enough");
    let function = image.function("run").expect("guests export it").index;
    Box::new(move |repetitions| {
        instance.prepare(&image, function, &[Value::I32(repetitions as i32)]).expect("idle");
        loop {
            match instance.run(&image, &mut { slice }) {
                Outcome::Done => break,
                Outcome::OutOfFuel => {}
                other => panic!("{other:?}"),
            }
        }
        match instance.results(&image).next() {
            Some(Value::I32(result)) => result as u32,
            other => panic!("{other:?}"),
        }
    })
}

fn wasmi(wasm: &[u8], fuel: bool) -> Box<dyn FnMut(u32) -> u32> {
    let mut config = wasmi::Config::default();
    config.consume_fuel(fuel);
    let engine = wasmi::Engine::new(&config);
    let module = wasmi::Module::new(&engine, wasm).expect("valid");
    let mut store = wasmi::Store::new(&engine, ());
    if fuel {
        store.set_fuel(u64::MAX).expect("metered");
    }
    let instance =
        wasmi::Linker::new(&engine).instantiate_and_start(&mut store, &module).expect("no imports");
    let run = instance.get_typed_func::<u32, u32>(&store, "run").expect("exported");
    Box::new(move |repetitions| run.call(&mut store, repetitions).expect("no trap"))
}

fn tinywasm(wasm: &[u8]) -> Box<dyn FnMut(u32) -> u32> {
    let module = ::tinywasm::parse_bytes(wasm).expect("valid");
    let mut store = ::tinywasm::Store::default();
    let instance =
        ::tinywasm::ModuleInstance::instantiate(&mut store, &module, None).expect("no imports");
    let run = instance.func::<i32, i32>(&store, "run").expect("exported");
    Box::new(move |repetitions| run.call(&mut store, repetitions as i32).expect("no trap") as u32)
}

/// The target that Cranelift translates to.
#[derive(PartialEq, Eq)]
enum Code {
    Native,
    Pulley,
}

fn wasmtime(wasm: &[u8], code: Code) -> Box<dyn FnMut(u32) -> u32> {
    let mut config = ::wasmtime::Config::new();
    config.consume_fuel(true);
    if code == Code::Pulley {
        config.target("pulley64").expect("supported");
    }
    let engine = ::wasmtime::Engine::new(&config).expect("supported");
    let module = ::wasmtime::Module::new(&engine, wasm).expect("valid");
    let mut store = ::wasmtime::Store::new(&engine, ());
    store.set_fuel(u64::MAX).expect("metered");
    let instance = ::wasmtime::Instance::new(&mut store, &module, &[]).expect("no imports");
    let run = instance.get_typed_func::<u32, u32>(&mut store, "run").expect("exported");
    Box::new(move |repetitions| run.call(&mut store, repetitions).expect("no trap"))
}
