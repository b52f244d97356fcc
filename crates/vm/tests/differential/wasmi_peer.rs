//! wasmi as a peer. Shared with the fuzz target `vm_differential`.

use super::compare::{End, Peer};
use tenure_vm::Value;

struct Wasmi {
    store: wasmi::Store<()>,
    instance: wasmi::Instance,
}

pub(crate) fn start(wasm: &[u8]) -> Option<Box<dyn Peer>> {
    let engine = wasmi::Engine::default();
    let module = wasmi::Module::new(&engine, wasm).expect("valid");
    let mut store = wasmi::Store::new(&engine, ());
    let instance = wasmi::Linker::new(&engine).instantiate_and_start(&mut store, &module).ok()?;
    Some(Box::new(Wasmi { store, instance }))
}

impl Peer for Wasmi {
    fn name(&self) -> &'static str {
        "wasmi"
    }

    fn call(&mut self, function: &str, arguments: &[Value], results: usize) -> End {
        let function = self.instance.get_func(&self.store, function).expect("exported");
        let arguments: Vec<wasmi::Val> = arguments.iter().map(|&value| to_peer(value)).collect();
        let mut found = vec![wasmi::Val::I32(0); results];
        match function.call(&mut self.store, &arguments, &mut found) {
            Ok(()) => End::Values(found.iter().map(from_peer).collect()),
            Err(error) => End::Trap(trap_name(&error)),
        }
    }

    fn global(&mut self, name: &str) -> Value {
        let global = self.instance.get_global(&self.store, name).expect("exported");
        from_peer(&global.get(&self.store))
    }

    fn memory(&mut self, name: &str) -> Vec<u8> {
        let memory = self.instance.get_memory(&self.store, name).expect("exported");
        memory.data(&self.store).to_vec()
    }
}

fn trap_name(error: &wasmi::Error) -> &'static str {
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
