//! Host calls that a component imports (`tenure:machine/host`): from what the canonical ABI makes of their WIT to what a device
//! takes. The rules are those of `xtask/src/generate/wit.rs`.

use tenure_wire::host_call::{HostCallInfo, ParameterKind, ResultKind, WasmType};
use wasm_encoder::{BlockType, Function, ValType};
use wasmparser::FuncType;

/// The functions of the adapter that give and take what is behind a pointer.
pub(super) const FUNCTIONS: [&str; 3] = [ROOM, FILLED, STATUS];
const ROOM: &str = "component:room";
const FILLED: &str = "component:filled";
const STATUS: &str = "component:status";

/// The call that fills the whole of its buffer, and returns 0.
const FILLS_ALL: &str = "random";

/// Where the functions that a lowered call needs are in the module.
#[derive(Clone, Copy)]
pub(super) struct Lowering {
    /// The import of the host call.
    pub(super) import: u32,
    /// The function that moves an address.
    pub(super) moved: u32,
    pub(super) room: u32,
    pub(super) filled: u32,
    pub(super) status: u32,
}

impl Lowering {
    /// With the adapter's functions as `find` finds them.
    pub(super) fn new<E>(
        import: u32,
        moved: u32,
        find: impl Fn(&str) -> Result<u32, E>,
    ) -> Result<Self, E> {
        let (room, filled, status) = (find(ROOM)?, find(FILLED)?, find(STATUS)?);
        Ok(Self { import, moved, room, filled, status })
    }
}

/// The type by which a device has the call.
pub(super) fn raw_kind(call: &HostCallInfo) -> FuncType {
    let kind = |it| match it {
        WasmType::I32 => wasmparser::ValType::I32,
        WasmType::I64 => wasmparser::ValType::I64,
    };
    FuncType::new(call.wasm_parameters().map(kind), call.wasm_result().map(kind))
}

/// The slots of a parameter, flattened: of an option its case, and then its value.
fn slots(kind: ParameterKind) -> usize {
    match kind {
        ParameterKind::Word | ParameterKind::Buffer => 1,
        ParameterKind::Text | ParameterKind::Bytes => 2,
        ParameterKind::Optional => 3,
    }
}

/// The type by which a component's core module imports it: parameters flattened, and behind them where a `result` goes.
pub(super) fn lowered_kind(call: &HostCallInfo) -> FuncType {
    use wasmparser::ValType::{I32, I64};
    let count: usize = call.parameters.iter().map(|parameter| slots(parameter.kind)).sum();
    match call.result {
        ResultKind::Nothing => FuncType::new(vec![I32; count], []),
        ResultKind::Status => FuncType::new(vec![I32; count + 1], []),
        ResultKind::Time => FuncType::new(vec![I32; count], [I64]),
    }
}

/// The function that a component's import becomes.
pub(super) fn lowered(call: &HostCallInfo, lowering: Lowering) -> Function {
    let Lowering { import, moved, room, filled, status } = lowering;
    let mut function = Function::new([]);
    let mut code = function.instructions();
    let mut slot = 0;
    let mut capacity = None;
    for parameter in call.parameters {
        match parameter.kind {
            ParameterKind::Word => {
                code.local_get(slot);
            }
            ParameterKind::Text | ParameterKind::Bytes => {
                code.local_get(slot).call(moved).local_get(slot + 1);
            }
            ParameterKind::Optional => {
                code.local_get(slot).if_(BlockType::Result(ValType::I32));
                code.local_get(slot + 1).call(moved).else_().i32_const(0).end();
                code.local_get(slot + 2);
            }
            ParameterKind::Buffer => {
                capacity = Some(slot);
                code.local_get(slot).call(room).call(moved).local_get(slot);
            }
        }
        slot += slots(parameter.kind) as u32;
    }
    code.call(import);
    // The last parameter is where the result goes.
    let into = slot;
    match (call.result, capacity) {
        (ResultKind::Status, Some(capacity)) => {
            let is_whole = i32::from(call.name == FILLS_ALL);
            code.local_get(capacity).i32_const(is_whole).local_get(into).call(filled);
        }
        (ResultKind::Status, None) => {
            code.local_get(into).call(status);
        }
        _ => {}
    }
    code.end();
    function
}

#[cfg(test)]
mod tests {
    use tenure_wire::host_call::{TABLE, WIT};
    use wit_parser::Resolve;
    use wit_parser::abi::{AbiVariant, WasmType as Core};

    use super::*;

    /// The package as it is published, and what `wit-parser` makes of each function for a module that imports it.
    #[test]
    fn calls_are_lowered_as_the_published_package_is() {
        let text = include_str!("../../../../../sdk/wit/generated/machine.wit");
        let mut resolve = Resolve::default();
        let package = resolve.push_str("machine.wit", text).unwrap();
        let interface = resolve.packages[package].interfaces[WIT.interface];
        let functions = &resolve.interfaces[interface].functions;
        assert_eq!(functions.len(), TABLE.len());
        for call in TABLE {
            let function = &functions[call.name.replace('_', "-").as_str()];
            let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
            let core = |kind: &Core| match kind {
                Core::I64 | Core::PointerOrI64 => wasmparser::ValType::I64,
                Core::F32 => wasmparser::ValType::F32,
                Core::F64 => wasmparser::ValType::F64,
                Core::I32 | Core::Pointer | Core::Length => wasmparser::ValType::I32,
            };
            let expected = FuncType::new(
                signature.params.iter().map(core),
                signature.results.iter().map(core),
            );
            assert_eq!(lowered_kind(call), expected, "{}", call.name);
            assert_eq!(
                signature.retptr,
                call.result == ResultKind::Status,
                "{} returns by a pointer",
                call.name
            );
        }
    }
}
