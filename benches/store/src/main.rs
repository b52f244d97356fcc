//! `tenure-bench-store [--json] [host]`: the store beside its peers, on the same work and the same
//! simulated flash, in one run.
//!
//! Every subject overwrites random keys of those that it holds, one at a time and each durable by
//! itself, and reads random keys. Counts of flash operations are exact; times are of this computer
//! with the flash in RAM.

mod subjects;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use subjects::{Ekv, KEY_BYTES, Key, SequentialStorage, Subject, Tenure, VALUE_BYTES};
use tenure_bench_report::{Program, Row, Rows};
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::Random;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const WRITES: u64 = 3_000;
const READS: u64 = 3_000;
const HELP: &str = "\
Usage: tenure-bench-store [--json] [host]

Writes and reads with 10, 1,000 and 100,000 keys present, by the store and by its peers.

  --json   one object a line: bench, target, subject, metric, unit, value
";

fn main() -> ExitCode {
    Program { help: HELP, targets: &["host"] }.run(|_, rows| {
        for keys in [10, 1_000, 100_000] {
            let geometry = geometry(keys);
            measure(|| Tenure::new(geometry), "tenure", keys, rows);
            measure(|| Ekv::new(geometry), "ekv", keys, rows);
            // It searches a key by reading through its pages: with 100,000 keys that takes hours.
            if keys < 100_000 {
                let cached = || SequentialStorage::new(geometry, keys as usize);
                measure(cached, "sequential-storage", keys, rows);
            }
        }
        Ok(())
    })
}

/// A flash of twice what the records take, and of 256 KiB at least.
fn geometry(keys: u64) -> FlashGeometry {
    let sector_count = 64.max(keys as u32 * 72 / 4096 * 2);
    FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 }
}

fn measure<S: Subject>(make: impl FnOnce() -> S, name: &str, keys: u64, rows: &mut Rows) {
    let mut print = |metric: &str, unit, value: f64| {
        rows.push(Row {
            bench: "store-peers".into(),
            target: "host".into(),
            subject: name.into(),
            metric: format!("{metric}, {keys} keys"),
            unit,
            value,
        });
    };
    let mut random = Random::new(keys);
    let all: Vec<(Key, [u8; VALUE_BYTES])> =
        (0..keys).map(|number| (key(number), value(&mut random))).collect();
    let heap_before = HEAP.current_usage();
    let mut subject = Box::new(make());
    subject.fill(&all);
    let heap_bytes = HEAP.current_usage() - heap_before - geometry(keys).bytes() as usize;
    print("RAM, flash not counted", "bytes", heap_bytes as f64);
    // As often as it takes to have gone round the flash.
    for _ in 0..WRITES.max(2 * keys) {
        subject.set(&key(random.below(keys)), &value(&mut random));
    }

    subject.reset_counters();
    let begin = Instant::now();
    for _ in 0..WRITES {
        subject.set(&key(random.below(keys)), &value(&mut random));
    }
    print("write", "ns", begin.elapsed().as_nanos() as f64 / WRITES as f64);
    let counted = subject.counters();
    let per_write = |count: u64| count as f64 / WRITES as f64;
    print("programs per write", "operations", per_write(counted.programs));
    print("bytes programmed per write", "bytes", per_write(counted.program_bytes));
    print("erases per 1,000 writes", "operations", 1000.0 * per_write(counted.erases));
    print("flash reads per write", "operations", per_write(counted.reads));

    subject.reset_counters();
    let begin = Instant::now();
    for _ in 0..READS {
        black_box(subject.get(&key(random.below(keys))));
    }
    print("read", "ns", begin.elapsed().as_nanos() as f64 / READS as f64);
    let counted = subject.counters();
    print("flash reads per read", "operations", counted.reads as f64 / READS as f64);
    print("bytes read per read", "bytes", counted.read_bytes as f64 / READS as f64);
}

fn key(number: u64) -> Key {
    let text = format!("room{:06}.lamp{:02}.state", number / 100, number % 100);
    text.into_bytes().try_into().expect("KEY_BYTES is its length")
}

const _: () = assert!(KEY_BYTES == "room000000.lamp00.state".len());

fn value(random: &mut Random) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|_| random.number() as u8)
}
