//! wasmtime as a peer, with canonical NaNs as ours are.

use tenure_vm::Value;
use wasmtime::{Config, Engine, HeapType, Instance, Module, OptLevel, Ref, Store, Trap, Val};

use super::compare::{End, Peer};

struct Wasmtime {
    store: Store<()>,
    instance: Instance,
}

pub(crate) fn start(wasm: &[u8]) -> Option<Box<dyn Peer>> {
    let mut config = Config::new();
    config.cranelift_nan_canonicalization(true);
    // Its compiler is what takes longest of an input.
    config.cranelift_opt_level(OptLevel::None);
    config.wasm_tail_call(true);
    config.wasm_custom_page_sizes(true);
    let engine = Engine::new(&config).expect("supported");
    let module = Module::new(&engine, wasm).expect("valid");
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).ok()?;
    Some(Box::new(Wasmtime { store, instance }))
}

impl Peer for Wasmtime {
    fn name(&self) -> &'static str {
        "wasmtime"
    }

    fn call(&mut self, function: &str, arguments: &[Value], results: usize) -> End {
        let function = self.instance.get_func(&mut self.store, function).expect("exported");
        let arguments: Vec<Val> = arguments.iter().map(|&value| to_peer(value)).collect();
        let mut found = vec![Val::I32(0); results];
        match function.call(&mut self.store, &arguments, &mut found) {
            Ok(()) => End::Values(found.iter().map(from_peer).collect()),
            Err(error) => End::Trap(error.downcast_ref().map_or("other", trap_name)),
        }
    }

    fn global(&mut self, name: &str) -> Value {
        let global = self.instance.get_global(&mut self.store, name).expect("exported");
        from_peer(&global.get(&mut self.store))
    }

    fn memory(&mut self, name: &str) -> Vec<u8> {
        let memory = self.instance.get_memory(&mut self.store, name).expect("exported");
        memory.data(&self.store).to_vec()
    }
}

fn trap_name(trap: &Trap) -> &'static str {
    match trap {
        Trap::UnreachableCodeReached => "unreachable",
        Trap::MemoryOutOfBounds => "memory",
        Trap::IntegerDivisionByZero => "division",
        Trap::IntegerOverflow => "overflow",
        Trap::BadConversionToInteger => "conversion",
        Trap::StackOverflow => "stack",
        Trap::TableOutOfBounds => "table",
        Trap::IndirectCallToNull => "null",
        Trap::BadSignature => "signature",
        _ => "other",
    }
}

fn to_peer(value: Value) -> Val {
    match value {
        Value::I32(value) => Val::I32(value),
        Value::I64(value) => Val::I64(value),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::FuncRef(_) => Val::null_ref(&HeapType::Func),
        Value::ExternRef(_) => Val::null_ref(&HeapType::Extern),
    }
}

/// References are compared by whether they are null.
fn from_peer(value: &Val) -> Value {
    match value {
        Val::I32(value) => Value::I32(*value),
        Val::I64(value) => Value::I64(*value),
        Val::F32(bits) => Value::F32(*bits),
        Val::F64(bits) => Value::F64(*bits),
        value => match value.ref_() {
            Some(Ref::Func(reference)) => Value::FuncRef(reference.is_some().then_some(0)),
            Some(reference) => Value::ExternRef((!reference.is_null()).then_some(0)),
            None => panic!("{value:?}"),
        },
    }
}
