//! What a WebAssembly module tells of itself, and the module without what no device needs.

use tenure_wire::host_call::{self, HostCallInfo, TABLE, WasmType};
use wasmparser::{
    CompositeInnerType, ExternalKind, FuncType, MemoryType, Parser, Payload, TypeRef, ValType,
};

/// What packing needs to know of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The functions that can be called: exported, without parameters and results.
    pub functions: Vec<String>,
    /// The linear memory it starts with, in bytes.
    pub memory_bytes: u64,
    /// The module without custom sections.
    pub code: Vec<u8>,
}

/// Why a module can't be a machine's code.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// It isn't WebAssembly.
    #[error("the compiler's output is no WebAssembly module: {0}")]
    Malformed(#[from] wasmparser::BinaryReaderError),
    /// It needs what no device has.
    #[error(
        "the code needs {module}.{name}, which no device has; what machines can ask of a device \
         stands in tenure.h and in the crate `tenure`"
    )]
    Import {
        /// The module it imports from.
        module: String,
        /// What it imports.
        name: String,
    },
    /// It calls the host in a way that doesn't fit.
    #[error("the code calls {name} with parameters that don't fit; build it with this SDK")]
    Signature {
        /// What it imports.
        name: String,
    },
}

impl Module {
    /// Reads a module; it isn't validated.
    ///
    /// # Errors
    /// See [`ModuleError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ModuleError> {
        let mut module = Self { code: bytes.get(..8).unwrap_or(bytes).into(), ..Self::default() };
        let mut types = Types::default();
        let mut exports = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section()
                && id != CUSTOM_SECTION
                && let Some(content) = bytes.get(range)
            {
                module.append_section(id, content);
            }
            match payload {
                Payload::TypeSection(section) => types.read_types(section)?,
                Payload::ImportSection(section) => {
                    for import in section {
                        let import = import?;
                        types.check_import(import.module, import.name, import.ty)?;
                    }
                }
                Payload::FunctionSection(section) => {
                    for index in section {
                        types.functions.push(index?);
                    }
                }
                Payload::MemorySection(section) => {
                    for memory in section {
                        module.memory_bytes += initial_bytes(&memory?);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            exports.push((export.name.to_owned(), export.index));
                        }
                    }
                }
                _ => {}
            }
        }
        let callable = exports.into_iter().filter(|(_, index)| types.takes_nothing(*index));
        module.functions = callable.map(|(name, _)| name).collect();
        Ok(module)
    }

    /// Appends a section: its id, its length (LEB128, wasm spec §5.5.2), its content.
    fn append_section(&mut self, id: u8, content: &[u8]) {
        self.code.push(id);
        let mut length = content.len();
        while length >= 0x80 {
            self.code.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        self.code.push(length as u8);
        self.code.extend(content);
    }
}

/// The id of sections that mean nothing to who runs a module (wasm spec §5.5.3).
const CUSTOM_SECTION: u8 = 0;

fn initial_bytes(memory: &MemoryType) -> u64 {
    memory.initial.saturating_mul(1 << memory.page_size_log2.unwrap_or(16))
}

/// The types of a module's functions.
#[derive(Default)]
struct Types {
    types: Vec<Option<FuncType>>,
    /// The type of each function, imported ones first.
    functions: Vec<u32>,
}

impl Types {
    fn read_types(
        &mut self,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), ModuleError> {
        for group in section {
            for subtype in group?.into_types() {
                self.types.push(match subtype.composite_type.inner {
                    CompositeInnerType::Func(function) => Some(function),
                    _ => None,
                });
            }
        }
        Ok(())
    }

    fn check_import(&mut self, module: &str, name: &str, kind: TypeRef) -> Result<(), ModuleError> {
        let call = TABLE.iter().find(|call| module == host_call::MODULE && call.name == name);
        let (Some(call), TypeRef::Func(index)) = (call, kind) else {
            return Err(ModuleError::Import { module: module.into(), name: name.into() });
        };
        self.functions.push(index);
        match self.types.get(index as usize) {
            Some(Some(function)) if fits(function, call) => Ok(()),
            _ => Err(ModuleError::Signature { name: name.into() }),
        }
    }

    fn takes_nothing(&self, function: u32) -> bool {
        let index = self.functions.get(function as usize);
        let function = index.and_then(|index| self.types.get(*index as usize)?.as_ref());
        function
            .is_some_and(|function| function.params().is_empty() && function.results().is_empty())
    }
}

fn fits(function: &FuncType, call: &HostCallInfo) -> bool {
    let value_type = |wasm_type| match wasm_type {
        WasmType::I32 => ValType::I32,
        WasmType::I64 => ValType::I64,
    };
    call.wasm_parameters().map(value_type).eq(function.params().iter().copied())
        && call.wasm_result().map(value_type).into_iter().eq(function.results().iter().copied())
}
