//! Random modules of wasm-smith do the same here as in wasmi: results, traps, memory, globals; whole, in
//! small slices, and suspended at random points.
//!
//! The corpus is fixed; `TENURE_VM_SEEDS=FROM..TO` tries more. About one seed in five thousand fails without
//! a fault: wasm-smith does not make the NaN canonical that `f64.promote_f32` gives, and wasm lets engines
//! differ in its payload (seed 6294). The fuzz target `vm_differential` steers by coverage, and takes wasmtime
//! along; its seeds are replayed here.

mod common;
#[path = "differential/compare.rs"]
mod compare;
#[path = "differential/wasmi_peer.rs"]
mod wasmi_peer;

use common::Random;

fn compare(wasm: &[u8], seed: u64, slice: u64, suspend: bool) -> bool {
    compare::compare(wasm, seed, slice, suspend, &[wasmi_peer::start])
}

/// A module of the given seed.
fn module(seed: u64) -> Option<Vec<u8>> {
    let mut random = Random::new(seed);
    let bytes: Vec<u8> = (0..2048).map(|_| random.number() as u8).collect();
    compare::module(&bytes, true)
}

fn check(seeds: std::ops::Range<u64>) {
    let mut compared = 0;
    for seed in seeds.clone() {
        let Some(wasm) = module(seed) else { continue };
        let slice = [u64::MAX, 1 << 20, 300, 1, 17][seed as usize % 5];
        compared += compare(&wasm, seed, slice, seed % 2 == 0) as u32;
    }
    println!("{compared} of {} modules compared", seeds.end - seeds.start);
    assert!(compared as u64 > (seeds.end - seeds.start) / 4);
}

#[test]
fn random_modules_same_as_peer() {
    let range = std::env::var("TENURE_VM_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    check(range.unwrap_or(0..300));
}

/// Makes the corpus anew: `cargo test -p tenure-vm --test differential -- --ignored write_corpus`.
#[test]
#[ignore = "writes files"]
fn write_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    std::fs::create_dir_all(folder).expect("writable");
    for seed in 1000..1040 {
        let Some(wasm) = module(seed) else { continue };
        std::fs::write(format!("{folder}/{seed}.wasm"), wasm).expect("writable");
    }
}

/// The corpus: modules that every version must agree on, whatever wasm-smith makes of a seed.
#[test]
fn corpus_same_as_peer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is in the repository")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for (index, file) in files.iter().enumerate() {
        let wasm = std::fs::read(file).expect("readable");
        for slice in [u64::MAX, 1, 50] {
            compare(&wasm, index as u64, slice, slice == 50);
        }
    }
}

/// Inputs of the fuzz target, from which libFuzzer starts.
#[test]
fn seeds_of_the_fuzz_target_same_as_peer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/vm_differential");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the seeds are in the repository")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "only {} seeds", files.len());
    for file in files {
        let bytes = std::fs::read(&file).expect("readable");
        compare::input(&bytes, &[wasmi_peer::start]);
    }
}
