//! Runs modules that wasm-smith made here and in another engine: results, traps, memory, globals; whole, in
//! small slices, and suspended at random points. Shared with the fuzz target `vm_differential`.

use super::common::Random;
use tenure_vm::{
    ExportKind, Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, TrapKind, Value,
    ValueType, translate,
};

pub(crate) const MEMORY_BYTES: usize = 1 << 20;
/// How often a call is suspended: each time copies all memory, and a long call would never end.
const SUSPENSIONS_MAX: u32 = 500;

/// Another engine with an instance of the module.
pub(crate) trait Peer {
    fn name(&self) -> &'static str;
    /// Calls an export.
    fn call(&mut self, function: &str, arguments: &[Value], results: usize) -> End;
    fn global(&mut self, name: &str) -> Value;
    fn memory(&mut self, name: &str) -> Vec<u8>;
}

/// Makes an instance; `None` if its start traps, or segments do not fit.
pub(crate) type StartPeer = fn(&[u8]) -> Option<Box<dyn Peer>>;

/// A module made of any bytes that ends; nothing where wasm-smith makes none of them.
pub(crate) fn module(bytes: &[u8], floats: bool) -> Option<Vec<u8>> {
    let config = wasm_smith::Config {
        acquire_release_atomics_enabled: false,
        allow_floats: floats,
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
    let mut source = arbitrary::Unstructured::new(bytes);
    let mut module = wasm_smith::Module::new(config, &mut source).ok()?;
    module.ensure_termination(200).ok()?;
    Some(module.to_bytes())
}

/// An input of the fuzz target: how to run, then what to make a module of. Peers that do not make NaNs
/// canonical are asked where there are no floats.
pub(crate) fn input(bytes: &[u8], peers: &[StartPeer]) -> bool {
    let Some((&how, rest)) = bytes.split_first() else { return false };
    let slice = [u64::MAX, 1 << 16, 997, 50, 17, 1][how as usize % 6];
    let Some(wasm) = module(rest, how & 0x80 != 0) else { return false };
    compare(&wasm, how as u64, slice, how & 0x40 != 0, peers)
}

/// A question to an engine, and its answer.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
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

/// A value of the type: small, large, or of any bits.
pub(crate) fn argument(value_type: ValueType, random: &mut Random) -> Value {
    let bits = match random.below(4) {
        0 => 0,
        1 => random.below(64),
        2 => !random.below(64),
        _ => random.number(),
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

/// References are compared by whether they are null.
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

/// Room for every module that is made here.
pub(crate) fn config() -> InstanceConfig {
    InstanceConfig { stack_bytes: 1 << 20, memory_bytes_max: MEMORY_BYTES }
}

impl Ours<'_> {
    fn finish(&mut self) -> End {
        let mut suspensions = 0;
        loop {
            match self.instance.run(&self.image, &mut { self.slice }) {
                Outcome::Done => {
                    return End::Values(self.instance.results(&self.image).map(blurred).collect());
                }
                Outcome::Trap(trap) => return End::Trap(trap_name(trap.kind)),
                Outcome::OutOfFuel => {}
                other => panic!("{other:?}"),
            }
            if self.suspend && suspensions < SUSPENSIONS_MAX {
                suspensions += 1;
                let mut bytes = Vec::new();
                self.instance.suspend(&self.image, &mut bytes);
                self.instance =
                    Instance::resume(&self.image, &bytes, &config()).expect("own bytes");
            }
        }
    }
}

/// Runs a module's exports here and in the peers; whether there was anything to compare.
pub(crate) fn compare(
    wasm: &[u8],
    seed: u64,
    slice: u64,
    suspend: bool,
    peers: &[StartPeer],
) -> bool {
    let mut bytes = Vec::new();
    if let Err(error) = translate(wasm, &NoHostFunctions, &Limits::widest(), &mut bytes) {
        panic!("seed {seed}: {error}");
    }
    let image = Image::parse(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut started: Vec<_> = peers.iter().map(|start| start(wasm)).collect();
    let mut ours = match Instance::new_lazy(&image, &config()) {
        Ok(instance) => Ours { image, instance, slice, suspend },
        Err(_) => {
            let none = started.iter().all(Option::is_none);
            assert!(none, "seed {seed}: only this engine could not start");
            return false;
        }
    };
    if ours.instance.is_busy()
        && let End::Trap(_) = ours.finish()
    {
        let none = started.iter().all(Option::is_none);
        assert!(none, "seed {seed}: only this engine's start function trapped");
        return false;
    }
    let mut peers: Vec<Box<dyn Peer>> = started
        .drain(..)
        .map(|peer| peer.unwrap_or_else(|| panic!("seed {seed}: only a peer could not start")))
        .collect();
    let mut random = Random::new(seed ^ 0xA5A5);
    for export in image.exports() {
        let ExportKind::Function(index) = export.kind else { continue };
        let types = image.signature(index).expect("exported");
        let arguments: Vec<Value> =
            types.params().map(|kind| argument(kind, &mut random)).collect();
        ours.instance.prepare(&ours.image, index, &arguments).expect("idle");
        let end = ours.finish();
        for peer in &mut peers {
            let theirs = peer.call(export.name, &arguments, types.results().len());
            let (name, peer) = (export.name, peer.name());
            // Whose stack is deeper is nobody's fault.
            if [&end, &theirs].contains(&&End::Trap("stack")) {
                return true;
            }
            assert_eq!(end, theirs, "seed {seed}, {name}({arguments:?}), {peer}");
        }
    }
    peers.iter_mut().for_each(|peer| compare_state(&ours, &mut **peer, seed));
    true
}

fn compare_state(ours: &Ours<'_>, peer: &mut dyn Peer, seed: u64) {
    for export in ours.image.exports() {
        let name = export.name;
        match export.kind {
            ExportKind::Global(index) => {
                let value = ours.instance.global(&ours.image, index).map(blurred);
                assert_eq!(value, Some(peer.global(name)), "seed {seed}, {name}, {}", peer.name());
            }
            ExportKind::Memory => {
                let (theirs, committed) = (peer.memory(name), ours.instance.memory());
                let (front, rest) = theirs.split_at(committed.len());
                let same = front == committed && rest.iter().all(|&byte| byte == 0);
                assert!(same, "seed {seed}: memories differ, {}", peer.name());
            }
            _ => {}
        }
    }
}
