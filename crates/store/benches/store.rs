//! The cost of writing, reading, listing and mounting with 10, 1,000 and 100,000 keys present.
//!
//! Times are of this computer with a flash in RAM, so they are the store's own share. Counts of
//! flash operations and bytes are exact and the same on every device.

use std::hint::black_box;
use std::time::Instant;

use tenure_hal::FlashGeometry;
use tenure_hal::simulated::{FlashCounters, RamFlash, Random};
use tenure_store::{Store, TreeId, ValueKind};

const TREE: TreeId = TreeId(1);
const VALUE_BYTES: usize = 32;
const WRITES: u64 = 50_000;
const READS: u64 = 50_000;

/// One figure.
struct Row {
    metric: String,
    unit: &'static str,
    value: f64,
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    for keys in [10, 1_000, 100_000] {
        for Row { metric, unit, value } in measure(keys) {
            let metric = format!("{metric}, {keys} keys");
            if json {
                println!(
                    "{{\"bench\":\"store\",\"target\":\"host\",\"subject\":\"tenure\",\
                     \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.3}}}"
                );
            } else {
                println!("{metric:<48} {value:>14.3} {unit}");
            }
        }
    }
}

/// A flash of half as many bytes again as the keys take, and 256 KiB at least.
fn geometry(keys: u64) -> FlashGeometry {
    let sector_count = 64.max(keys as u32 * 72 / 4096 * 3 / 2);
    FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 }
}

fn path(key: u64) -> String {
    format!("room{}.lamp{}.state", key / 100, key % 100)
}

fn measure(keys: u64) -> Vec<Row> {
    let mut store = Store::format(RamFlash::new(geometry(keys))).unwrap();
    let mut random = Random::new(keys);
    for key in 0..keys {
        let value = value(&mut random);
        store.set(TREE, &path(key), ValueKind::Bytes, &value).unwrap();
    }
    let mut rows = Vec::new();
    let mut row = |metric: &str, unit, value| {
        rows.push(Row { metric: metric.to_string(), unit, value });
    };

    // First as often as it takes to have gone round the ring, then what is measured.
    for _ in 0..WRITES.max(2 * keys) {
        write(&mut store, &mut random, keys);
    }
    store.flash_mut().reset_counters();
    let begin = Instant::now();
    let mut slowest = 0;
    for _ in 0..WRITES {
        let before = store.flash().counters();
        write(&mut store, &mut random, keys);
        let after = store.flash().counters();
        slowest = slowest.max(after.erases - before.erases);
    }
    row("write", "ns", begin.elapsed().as_nanos() as f64 / WRITES as f64);
    let counted = store.flash().counters();
    let per_write = |count: u64| count as f64 / WRITES as f64;
    row("programs per write", "operations", per_write(counted.programs));
    row("bytes programmed per write", "bytes", per_write(counted.program_bytes));
    row("erases per 1,000 writes", "operations", 1000.0 * per_write(counted.erases));
    row("erases of one write at most", "operations", slowest as f64);
    row("flash reads per write", "operations", per_write(counted.reads));

    store.flash_mut().reset_counters();
    let begin = Instant::now();
    for _ in 0..READS {
        let key = random.number() % keys;
        black_box(store.get(TREE, &path(key)).unwrap());
    }
    row("read", "ns", begin.elapsed().as_nanos() as f64 / READS as f64);
    let FlashCounters { reads, read_bytes, .. } = store.flash().counters();
    row("flash reads per read", "operations", reads as f64 / READS as f64);
    row("bytes read per read", "bytes", read_bytes as f64 / READS as f64);

    let begin = Instant::now();
    let lists = 200;
    let children: usize = (0..lists)
        .map(|list| store.children(TREE, &format!("room{}", list % keys.div_ceil(100))))
        .map(|names| names.unwrap().len())
        .sum();
    row("list, per child", "ns", begin.elapsed().as_nanos() as f64 / children as f64);

    let occupancy = store.occupancy();
    let index_bytes = occupancy.index_bytes as f64;
    row("index RAM per 1,000 keys", "bytes", 1000.0 * index_bytes / keys as f64);
    let live = 100.0 * occupancy.stored_bytes as f64 / f64::from(geometry(keys).bytes());
    row("flash that is live", "percent", live);

    let mut flash = store.into_flash();
    flash.reset_counters();
    let begin = Instant::now();
    let (store, report) = Store::mount(flash).unwrap();
    row("mount", "ms", begin.elapsed().as_secs_f64() * 1000.0);
    let counted = store.flash().counters();
    row("programs per mount", "operations", counted.programs as f64);
    row("bytes programmed per mount", "bytes", counted.program_bytes as f64);
    row("erases per mount", "operations", counted.erases as f64);
    let index_bytes = store.occupancy().index_bytes as f64;
    row("index RAM per 1,000 keys, mounted", "bytes", 1000.0 * index_bytes / keys as f64);
    assert_eq!(report.keys as u64, keys);
    rows
}

fn write(store: &mut Store<RamFlash>, random: &mut Random, keys: u64) {
    let key = random.number() % keys;
    let value = value(random);
    store.set(TREE, &path(key), ValueKind::Bytes, &value).unwrap();
}

fn value(random: &mut Random) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|_| random.number() as u8)
}
