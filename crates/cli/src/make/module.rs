//! The facts that a WebAssembly module tells of itself, and the module without the parts that no device needs.

use crate::make::foreign_abort;
use tenure_wire::host_call::{self, HostCallInfo, TABLE, WasmType};
use wasmparser::{
    CompositeInnerType, Export, ExternalKind, FuncType, MemoryType, Parser, Payload, TypeRef,
    ValType,
};

/// The facts of a module that packing needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The functions that can be called: exported, without parameters and results.
    pub functions: Vec<String>,
    /// The exported functions that can't be called, since they have parameters or results.
    pub uncallable: Vec<String>,
    /// The linear memory it starts with, in bytes.
    pub memory_bytes: u64,
    /// The module without custom sections, with all that starts it in its start function, and without exports of that.
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
        "the code needs {module}.{name}, which no device has; {}", instead(.module, .name)
    )]
    Import {
        /// The module it imports from.
        module: String,
        /// The import.
        name: String,
    },
    /// It calls the host in a way that doesn't fit.
    #[error("the code calls {name} with parameters that don't fit; build it with this SDK")]
    Signature {
        /// The import.
        name: String,
    },
    /// It exports a function that a loader runs once, of a type that nobody can run.
    #[error(
        "the code exports {name} with parameters or results, and it is to run at the start without any; \
         give it another name, or the type `(func)`"
    )]
    Constructor {
        /// The export.
        name: String,
    },
}

/// The advice for one who has to do without an import.
fn instead(module: &str, name: &str) -> &'static str {
    match (module, name) {
        ("wasi_unstable", _) => {
            "it was built for WASI as it was before preview 1: build it with a compiler of 2020 or later, for \
             wasm32-wasip1"
        }
        ("env", "seed") => {
            "AssemblyScript imports it for Math.random: a project with `language = \"assemblyscript\"` has one of the \
             device's; or pass --use seed=FUNCTION to asc"
        }
        (
            "env",
            "trace" | "console.log" | "console.debug" | "console.info" | "console.warn"
            | "console.error",
        ) => {
            "AssemblyScript imports it, and a browser would bring it: a project with `language = \"assemblyscript\"` \
             writes it to the log"
        }
        ("env", "abort") => "its type isn't that of AssemblyScript's `abort`, which is taken",
        ("env", name) if is_of_emscripten(name) => {
            "emscripten's JavaScript would bring it: build without exceptions (-fno-exceptions), or by clang with \
             `library = \"standard\"` in tenure.toml"
        }
        _ => "what machines can ask of a device stands in tenure.h and in the crate `tenure`",
    }
}

/// Whether emscripten's runtime has a function of that name.
fn is_of_emscripten(name: &str) -> bool {
    ["emscripten_", "_emscripten_", "invoke_", "__cxa_", "__syscall_"]
        .iter()
        .any(|start| name.starts_with(start))
        || ["getTempRet0", "setTempRet0"].contains(&name)
}

impl Module {
    /// Reads a module; it isn't validated.
    ///
    /// # Errors
    /// See [`ModuleError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ModuleError> {
        let replaced = foreign_abort::replace(bytes)?;
        let bytes = replaced.as_deref().unwrap_or(bytes);
        let mut module = Self { code: bytes.get(..8).unwrap_or(bytes).into(), ..Self::default() };
        let mut types = Types::default();
        let (mut exports, mut bodies, mut start) = (Vec::new(), Vec::new(), None);
        let mut sections: Vec<(u8, Vec<u8>)> = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section()
                && id != CUSTOM_SECTION
                && let Some(content) = bytes.get(range)
            {
                sections.push((id, content.to_vec()));
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
                    types.imported = types.functions.len();
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
                        exports.push(export?);
                    }
                }
                Payload::StartSection { func, .. } => start = Some(func),
                Payload::CodeSectionEntry(body) => bodies.push(body.range().len()),
                _ => {}
            }
        }
        start_once(&mut sections, &mut exports, &types, &bodies, start)?;
        sections.iter().for_each(|(id, content)| append_section(&mut module.code, *id, content));
        let functions = exports.iter().filter(|export| export.kind == ExternalKind::Func);
        let (callable, uncallable) =
            functions.partition::<Vec<_>, _>(|export| types.takes_nothing(export.index));
        let names = |exports: Vec<&Export>| exports.iter().map(|it| it.name.to_owned()).collect();
        (module.functions, module.uncallable) = (names(callable), names(uncallable));
        Ok(module)
    }
}

/// The functions that a loader calls once, in the order of preference: `_initialize` calls the constructors itself
/// (WASI's "Application ABI"), which linkers export beside it under the other name.
const CONSTRUCTORS: [&str; 2] = ["_initialize", "__wasm_call_ctors"];

/// Makes the module's start function one that runs all that starts it, once and in order: the start function that it
/// has, then what a loader calls. No caller can run the latter again. An empty one goes without.
///
/// # Errors
/// [`ModuleError::Constructor`].
fn start_once(
    sections: &mut Vec<(u8, Vec<u8>)>,
    exports: &mut Vec<Export<'_>>,
    types: &Types,
    bodies: &[usize],
    start: Option<u32>,
) -> Result<(), ModuleError> {
    let is_constructor = |export: &Export<'_>| {
        export.kind == ExternalKind::Func && CONSTRUCTORS.contains(&export.name)
    };
    let mut constructors = exports.iter().filter(|export| is_constructor(export));
    if let Some(odd) = constructors.find(|export| !types.takes_nothing(export.index)) {
        return Err(ModuleError::Constructor { name: odd.name.into() });
    }
    let function = |name: &&str| {
        let found = exports.iter().find(|export| is_constructor(export) && export.name == *name);
        found.map(|export| export.index)
    };
    let Some(constructor) = CONSTRUCTORS.iter().find_map(function) else { return Ok(()) };
    exports.retain(|export| !is_constructor(export));
    if let Some((_, content)) = sections.iter_mut().find(|(id, _)| *id == EXPORT_SECTION) {
        *content = export_section(exports);
    }
    let body = (constructor as usize).checked_sub(types.imported).and_then(|body| bodies.get(body));
    let is_empty = body.is_some_and(|bytes| *bytes <= EMPTY_BODY_BYTES);
    let function = match start {
        _ if is_empty => return Ok(()),
        Some(start) if start == constructor => return Ok(()),
        Some(start) => append_function(sections, types, bodies.len(), [start, constructor]),
        None => constructor as usize,
    };
    let mut content = Vec::new();
    append_number(&mut content, function);
    sections.retain(|(id, _)| *id != START_SECTION);
    let at = sections.iter().position(|(id, _)| *id == EXPORT_SECTION).map_or(0, |at| at + 1);
    sections.insert(at, (START_SECTION, content));
    Ok(())
}

fn export_section(exports: &[Export<'_>]) -> Vec<u8> {
    let mut content = Vec::new();
    append_number(&mut content, exports.len());
    for export in exports {
        append_number(&mut content, export.name.len());
        content.extend(export.name.as_bytes());
        content.push(kind_byte(export.kind));
        append_number(&mut content, export.index as usize);
    }
    content
}

/// Appends a function that calls those of `calls`, which take and return nothing, one after the other, to a module with
/// `count` functions of its own; returns its index.
fn append_function(
    sections: &mut [(u8, Vec<u8>)],
    types: &Types,
    count: usize,
    calls: [u32; 2],
) -> usize {
    let mut body = vec![NO_LOCALS];
    for function in calls {
        body.push(CALL);
        append_number(&mut body, function as usize);
    }
    body.push(END);
    let [first, _] = calls;
    let kind = types.functions.get(first as usize).copied().unwrap_or_default();
    for (id, content) in sections {
        let mut item = Vec::new();
        match *id {
            FUNCTION_SECTION => append_number(&mut item, kind as usize),
            CODE_SECTION => {
                append_number(&mut item, body.len());
                item.extend(&body);
            }
            _ => continue,
        }
        *content = longer(content, count, &item);
    }
    types.imported + count
}

/// The content of a section of `count` items with one more.
pub(crate) fn longer(content: &[u8], count: usize, item: &[u8]) -> Vec<u8> {
    let mut longer = Vec::new();
    append_number(&mut longer, count + 1);
    longer.extend(content.iter().skip_while(|byte| **byte >= 0x80).skip(1));
    longer.extend(item);
    longer
}

/// The byte of an export's kind (wasm spec §5.5.10).
fn kind_byte(kind: ExternalKind) -> u8 {
    match kind {
        ExternalKind::Func => 0,
        ExternalKind::Table => 1,
        ExternalKind::Memory => 2,
        ExternalKind::Global => 3,
        ExternalKind::Tag => 4,
    }
}

/// Appends a section: its id, its length, its content.
pub(crate) fn append_section(code: &mut Vec<u8>, id: u8, content: &[u8]) {
    code.push(id);
    append_number(code, content.len());
    code.extend(content);
}

/// Appends a number (LEB128, wasm spec §5.2.2).
pub(crate) fn append_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The ids of sections (wasm spec §5.5.2).
const FUNCTION_SECTION: u8 = 3;
const EXPORT_SECTION: u8 = 7;
const START_SECTION: u8 = 8;
const CODE_SECTION: u8 = 10;
/// The bytes of a function's body (wasm spec §5.4, §5.5.13).
const NO_LOCALS: u8 = 0;
const CALL: u8 = 0x10;
const END: u8 = 0x0b;
/// A function without variables and instructions.
const EMPTY_BODY_BYTES: usize = 2;
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
    /// How many are imported.
    imported: usize,
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
