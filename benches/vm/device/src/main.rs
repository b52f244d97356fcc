//! Counts what the engine costs on a bare RV32: instructions of guests, of starting and installing
//! machines and of an empty call, and bytes of RAM. Prints `METRIC SUBJECT VALUE` lines.
#![no_std]
#![no_main]

extern crate alloc;

mod heap;
mod machine;

use alloc::vec::Vec;
use core::hint::black_box;

use tenure_bench_report::line;
use tenure_vm::{
    Breach, Compiled, Entry, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome,
    Stay, Value, Wall, translate,
};

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

macro_rules! guests {
    ($($name:ident: $native:ident, $compiled:ident, $unchecked:ident, $repetitions:literal;)*) => {
        unsafe extern "C" { $(
            fn $native(repetitions: u32) -> u32;
            fn $compiled(words: *mut usize);
            fn $unchecked(words: *mut usize);
        )* }
        fn all() {
            $({
                let wasm = include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".wasm"));
                // SAFETY: plain C functions of the guests' sources.
                guest(stringify!($name), wasm, |n| unsafe { $native(n) }, [$compiled, $unchecked], $repetitions);
            })*
        }
    };
}

guests! {
    mark: native_mark, compiled_mark, compiled_mark_unchecked, 2;
    fib: native_fib, compiled_fib, compiled_fib_unchecked, 1;
    sha256: native_sha256, compiled_sha256, compiled_sha256_unchecked, 1;
    sieve: native_sieve, compiled_sieve, compiled_sieve_unchecked, 1;
    crc32: native_crc32, compiled_crc32, compiled_crc32_unchecked, 1;
}

/// A module with an empty function and a page of memory.
const TINY: [u8; 38] = *b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\x07\x07\x01\x03run\0\0\x0a\x04\x01\x02\0\x0b";

fn run() {
    all();
    tiny();
}

fn report(metric: &str, subject: &str, value: u32) {
    line(machine::write, &[metric, " ", subject], &[value]);
}

fn config() -> InstanceConfig {
    InstanceConfig { stack_bytes: 2048, memory_bytes_max: 128 * 1024 }
}

/// Compiled code's entry.
type Enter = unsafe extern "C" fn(*mut usize);

/// The wall between the engine and the rest: nothing here.
struct Open(Option<Enter>);

impl Wall for Open {
    fn confine(&mut self, mut stay: Stay<'_>) -> Result<(), Breach> {
        let enter = match stay.enter {
            Entry::Interpreter(enter) => enter,
            Entry::Compiled { .. } => self.0.unwrap(),
        };
        // SAFETY: the words name what `stay` borrows, and the code was compiled from the guest's image.
        unsafe { enter(stay.expose()) };
        Ok(())
    }
}

fn execute(instance: &mut Instance, image: &Image<'_>, slice: u64, enter: Option<Enter>) -> u64 {
    let mut used = 0;
    loop {
        let mut fuel = slice;
        let outcome = match enter {
            Some(enter) => {
                let mut open = Open(Some(enter));
                instance
                    .run_behind(image, &mut fuel, &mut Compiled::new(&mut open, &[], 0))
                    .unwrap()
            }
            None => instance.run(image, &mut fuel),
        };
        used += slice - fuel;
        match outcome {
            Outcome::Done => return used,
            Outcome::OutOfFuel => {}
            _ => panic!("a guest failed"),
        }
    }
}

fn guest(
    name: &str,
    wasm: &[u8],
    native: impl Fn(u32) -> u32,
    [compiled, unchecked]: [Enter; 2],
    repetitions: u32,
) {
    let mut expected = 0;
    native(1);
    let once = machine::instructions(|| expected = native(black_box(repetitions)));
    let expected_none = machine::instructions(|| {
        black_box(native(black_box(0)));
    });
    report("native", name, (once - expected_none) / repetitions);

    let mut image = Vec::with_capacity(wasm.len() * 4 + 256);
    let live = HEAP.live();
    HEAP.reset_peak();
    let install = machine::instructions(|| {
        translate(black_box(wasm), &NoHostFunctions, &Limits::default(), &mut image).unwrap();
    });
    report("install", name, install);
    report("install_ram", name, (HEAP.peak() - live) as u32);
    report("wasm_bytes", name, wasm.len() as u32);
    report("image_bytes", name, image.len() as u32);
    let mut parsed = None;
    let parse = machine::instructions(|| parsed = Some(Image::parse(black_box(&image)).unwrap()));
    report("parse", name, parse);
    let image = parsed.unwrap();

    let mut instance = None;
    let live = HEAP.live();
    let start = machine::instructions(|| {
        instance = Some(Instance::new_lazy(black_box(&image), &config()).unwrap());
    });
    report("start", name, start);
    let mut instance = instance.unwrap();
    let memory = instance.memory().len();
    let ram = HEAP.live() - live + size_of::<Instance>() - memory - config().stack_bytes;
    report("ram", name, ram as u32);

    let function = image.function("run").unwrap().index;
    let mut interpreted = 0;
    for (metric, slice, enter) in [
        ("instructions", u64::MAX, None),
        ("instructions_in_slices", 10_000, None),
        ("compiled", u64::MAX, Some(compiled)),
        ("compiled_in_slices", 10_000, Some(compiled)),
        ("unchecked", u64::MAX, Some(unchecked)),
    ] {
        // Without metering the interpreter never lets compiled code go on.
        if cfg!(unmetered) && enter.is_some() {
            continue;
        }
        // Once to commit memory, once to count.
        let mut counts = [0; 2];
        let mut fuel = [0; 2];
        for (round, times) in [0, repetitions].into_iter().enumerate() {
            instance.prepare(&image, function, &[Value::I32(times as i32)]).unwrap();
            counts[round] = machine::instructions(|| {
                fuel[round] = execute(&mut instance, &image, slice, enter)
            });
        }
        assert_eq!(instance.results(&image).next(), Some(Value::I32(expected as i32)), "{name}");
        report(metric, name, (counts[1] - counts[0]) / repetitions);
        let used = fuel[1] - fuel[0];
        match metric {
            // The first run commits memory besides.
            "instructions" => report("fuel", name, (used / repetitions as u64) as u32),
            "instructions_in_slices" => interpreted = used,
            _ => assert_eq!(used, interpreted, "{name}, {metric}: fuel"),
        }
    }
}

fn tiny() {
    let mut image = Vec::new();
    let install = machine::instructions(|| {
        translate(black_box(&TINY), &NoHostFunctions, &Limits::default(), &mut image).unwrap();
    });
    report("install", "tiny", install);
    let image = Image::parse(&image).unwrap();
    let mut instance = None;
    let start = machine::instructions(|| {
        instance = Some(Instance::new_lazy(black_box(&image), &config()).unwrap());
    });
    report("start", "tiny", start);
    let mut instance = instance.unwrap();
    let function = image.function("run").unwrap().index;
    let empty = machine::instructions(|| {
        instance.prepare(black_box(&image), function, &[]).unwrap();
        let mut fuel = 1000;
        black_box(instance.run(&image, &mut fuel));
    });
    report("empty_call", "tiny", empty);
}

/// Ends the run.
fn finish(good: bool) -> ! {
    machine::exit(good)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    line(machine::write, &["failed"], &[]);
    finish(false)
}
