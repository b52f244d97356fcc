//! Random modules of wasm-smith do the same here as in wasmi: results, traps, memory, globals; whole, in
//! small slices, and suspended at random points.
//!
//! The corpus is fixed; `TENURE_VM_SEEDS=FROM..TO` tries more.

mod common;

use common::Random;
use tenure_vm::{
    ExportKind, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, TrapKind, Value,
    ValueType, translate,
};

const MEMORY_BYTES: usize = 1 << 20;

/// A module of the given seed that ends; nothing where wasm-smith makes none of it.
fn module(seed: u64) -> Option<Vec<u8>> {
    let mut random = Random::new(seed);
    let bytes: Vec<u8> = (0..2048).map(|_| random.next() as u8).collect();
    let config = wasm_smith::Config {
        acquire_release_atomics_enabled: false,
        canonicalize_nans: true,
        compact_imports_enabled: false,
        exceptions_enabled: false,
        export_everything: true,
        extended_const_enabled: false,
        gc_enabled: false,
        max_data_segments: 4,
        max_element_segments: 4,
        max_funcs: 8,
        max_imports: 0,
        max_memory32_bytes: MEMORY_BYTES as u64,
        max_table_elements: 100,
        max_tables: 3,
        memory64_enabled: false,
        memory_max_size_required: true,
        min_funcs: 1,
        relaxed_simd_enabled: false,
        simd_enabled: false,
        table_max_size_required: true,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..wasm_smith::Config::default()
    };
    let mut source = wasm_smith_source(&bytes);
    let mut module = wasm_smith::Module::new(config, &mut source).ok()?;
    module.ensure_termination(200).ok()?;
    Some(module.to_bytes())
}

fn wasm_smith_source(bytes: &[u8]) -> arbitrary::Unstructured<'_> {
    arbitrary::Unstructured::new(bytes)
}

/// What both engines are asked to compute, and what they say.
#[derive(Debug, PartialEq)]
enum End {
    Values(Vec<Value>),
    Trap(&'static str),
}

fn trap_name(kind: TrapKind) -> &'static str {
    match kind {
        TrapKind::Unreachable => "unreachable",
        TrapKind::OutOfBounds => "memory",
        TrapKind::DivideByZero => "division",
        TrapKind::IntegerOverflow => "overflow",
        TrapKind::InvalidConversion => "conversion",
        TrapKind::StackOverflow => "stack",
        TrapKind::TableOutOfBounds => "table",
        TrapKind::UninitializedElement => "null",
        TrapKind::SignatureMismatch => "signature",
        _ => "other",
    }
}

fn peer_trap_name(error: &wasmi::Error) -> &'static str {
    use wasmi::TrapCode::*;
    match error.as_trap_code() {
        Some(UnreachableCodeReached) => "unreachable",
        Some(MemoryOutOfBounds) => "memory",
        Some(IntegerDivisionByZero) => "division",
        Some(IntegerOverflow) => "overflow",
        Some(BadConversionToInteger) => "conversion",
        Some(StackOverflow) => "stack",
        Some(TableOutOfBounds) => "table",
        Some(IndirectCallToNull) => "null",
        Some(BadSignature) => "signature",
        _ => "other",
    }
}

fn argument(value_type: ValueType, random: &mut Random) -> Value {
    let bits = match random.below(4) {
        0 => 0,
        1 => random.below(64) as u64,
        2 => !(random.below(64) as u64),
        _ => random.next(),
    };
    match value_type {
        ValueType::I32 => Value::I32(bits as i32),
        ValueType::I64 => Value::I64(bits as i64),
        // wasm-smith makes NaNs canonical after operations, not arguments.
        ValueType::F32 => Value::F32((bits as i32 as f32).to_bits()),
        ValueType::F64 => Value::F64((bits as i64 as f64).to_bits()),
        ValueType::FuncRef => Value::FuncRef(None),
        ValueType::ExternRef => Value::ExternRef(None),
    }
}

fn to_peer(value: Value) -> wasmi::Val {
    match value {
        Value::I32(value) => wasmi::Val::I32(value),
        Value::I64(value) => wasmi::Val::I64(value),
        Value::F32(bits) => wasmi::Val::F32(wasmi::F32::from_bits(bits)),
        Value::F64(bits) => wasmi::Val::F64(wasmi::F64::from_bits(bits)),
        Value::FuncRef(_) => wasmi::Val::FuncRef(wasmi::Nullable::Null),
        Value::ExternRef(_) => wasmi::Val::ExternRef(wasmi::Nullable::Null),
    }
}

/// References are compared by whether they are null.
fn from_peer(value: &wasmi::Val) -> Value {
    match value {
        wasmi::Val::I32(value) => Value::I32(*value),
        wasmi::Val::I64(value) => Value::I64(*value),
        wasmi::Val::F32(value) => Value::F32(value.to_bits()),
        wasmi::Val::F64(value) => Value::F64(value.to_bits()),
        wasmi::Val::FuncRef(reference) => Value::FuncRef((!reference.is_null()).then_some(0)),
        wasmi::Val::ExternRef(reference) => Value::ExternRef((!reference.is_null()).then_some(0)),
        other => panic!("{other:?}"),
    }
}

fn blurred(value: Value) -> Value {
    match value {
        Value::FuncRef(Some(_)) => Value::FuncRef(Some(0)),
        Value::ExternRef(Some(_)) => Value::ExternRef(Some(0)),
        other => other,
    }
}

struct Ours<'i> {
    image: Image<'i>,
    instance: Instance,
    /// Fuel at a time, and whether to suspend between slices.
    slice: u64,
    suspend: bool,
}

fn config() -> InstanceConfig {
    InstanceConfig { stack_bytes: 1 << 20, memory_bytes_max: MEMORY_BYTES }
}

impl Ours<'_> {
    fn finish(&mut self) -> End {
        loop {
            match self.instance.run(&self.image, &mut { self.slice }) {
                Outcome::Done => {
                    return End::Values(self.instance.results(&self.image).map(blurred).collect());
                }
                Outcome::Trap(trap) => return End::Trap(trap_name(trap.kind)),
                Outcome::OutOfFuel => {}
                other => panic!("{other:?}"),
            }
            if self.suspend {
                let mut bytes = Vec::new();
                self.instance.suspend(&self.image, &mut bytes);
                self.instance =
                    Instance::resume(&self.image, &bytes, &config()).expect("own bytes");
            }
        }
    }
}

/// Runs a module's exports in both engines; whether there was anything to compare.
fn compare(wasm: &[u8], seed: u64, slice: u64, suspend: bool) -> bool {
    let mut bytes = Vec::new();
    if let Err(error) = translate(wasm, &NoHostFunctions, &Limits::widest(), &mut bytes) {
        panic!("seed {seed}: {error}");
    }
    let image = Image::parse(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let engine = wasmi::Engine::default();
    let module = wasmi::Module::new(&engine, wasm).expect("valid");
    let mut store = wasmi::Store::new(&engine, ());
    let started = wasmi::Linker::new(&engine).instantiate_and_start(&mut store, &module);
    let mut ours = match Instance::new_lazy(&image, &config()) {
        Ok(instance) => Ours { image, instance, slice, suspend },
        Err(_) => {
            assert!(started.is_err(), "seed {seed}: only this engine could not start");
            return false;
        }
    };
    if ours.instance.is_busy() {
        let end = ours.finish();
        if let End::Trap(_) = end {
            assert!(started.is_err(), "seed {seed}: only this engine's start function trapped");
            return false;
        }
    }
    let Ok(peer) = started else { panic!("seed {seed}: only the peer could not start") };
    let mut random = Random::new(seed ^ 0xA5A5);
    for export in image.exports() {
        let ExportKind::Function(index) = export.kind else { continue };
        let types = image.signature(index).expect("exported");
        let arguments: Vec<Value> =
            types.params().map(|kind| argument(kind, &mut random)).collect();
        let function = peer.get_func(&store, export.name).expect("exported");
        let mut results: Vec<wasmi::Val> = types.results().map(|_| wasmi::Val::I32(0)).collect();
        let peers_arguments: Vec<wasmi::Val> =
            arguments.iter().map(|&value| to_peer(value)).collect();
        let theirs = match function.call(&mut store, &peers_arguments, &mut results) {
            Ok(()) => End::Values(results.iter().map(from_peer).collect()),
            Err(error) => End::Trap(peer_trap_name(&error)),
        };
        ours.instance.prepare(&ours.image, index, &arguments).expect("idle");
        let end = ours.finish();
        assert_eq!(end, theirs, "seed {seed}, {}({arguments:?})", export.name);
        if end == End::Trap("stack") {
            return true;
        }
    }
    compare_state(&ours, &peer, &store, seed);
    true
}

fn compare_state(ours: &Ours<'_>, peer: &wasmi::Instance, store: &wasmi::Store<()>, seed: u64) {
    for export in ours.image.exports() {
        match export.kind {
            ExportKind::Global(index) => {
                let value = ours.instance.global(&ours.image, index).map(blurred);
                let global = peer.get_global(store, export.name).expect("exported");
                assert_eq!(
                    value,
                    Some(from_peer(&global.get(store))),
                    "seed {seed}, {}",
                    export.name
                );
            }
            ExportKind::Memory => {
                let memory = peer.get_memory(store, export.name).expect("exported");
                let (theirs, committed) = (memory.data(store), ours.instance.memory());
                let (front, rest) = theirs.split_at(committed.len());
                assert!(front == committed, "seed {seed}: memories differ");
                assert!(
                    rest.iter().all(|&byte| byte == 0),
                    "seed {seed}: memories differ at the end"
                );
            }
            _ => {}
        }
    }
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
