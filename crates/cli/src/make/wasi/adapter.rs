//! The adapter: a module that `cargo xtask generate` compiles of `sdk/wasi`, and of which a program gets what it uses.
//!
//! There are two, so that a program for preview 1 pays nothing for what components take: neither their constants, which aren't
//! left out, nor that functions are shared.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{ExternalKind, FuncType, Operator};

use super::WasiError;
use crate::make::program::Program;

/// The module for preview 1.
pub(super) const PREVIEW_1: &[u8] =
    include_bytes!("../../../../../sdk/wasi/generated/adapter.wasm");
/// The module for components, which has preview 1, too.
pub(super) const COMPONENTS: &[u8] =
    include_bytes!("../../../../../sdk/wasi/generated/component-adapter.wasm");

/// The module that the adapter's questions to who links it are imported from.
const MERGER: &str = "merger";
/// The mark of functions for programs that have standard streams alone.
const STREAMS: &str = "streams:";
/// The export that says where the adapter's own memory ends.
const MEMORY_END: &str = "__heap_base";

/// The adapter's functions that a program doesn't import: they are called when it begins and ends.
pub(super) const BEGIN: &str = "begin";
pub(super) const END: &str = "end";
/// The one that begins a program that is a component's.
pub(super) const COMPONENT_BEGIN: &str = "component:begin";

/// The adapter.
pub(super) struct Adapter {
    pub(super) module: Program<'static>,
    /// The functions that each function of its own calls, by their indices.
    calls: BTreeMap<u32, BTreeSet<u32>>,
    /// Bytes of its memory: stack, variables, constants.
    pub(super) memory_bytes: u32,
}

/// The adapter's functions for one program.
pub(super) struct Chosen {
    /// The adapter's function for each name.
    functions: BTreeMap<String, u32>,
    /// All that come along, imported ones among them, in the order of their indices.
    pub(super) all: BTreeSet<u32>,
    /// Whether room for open files is needed.
    pub(super) has_files: bool,
    /// Whether room for streams, futures and subtasks is needed.
    pub(super) has_tasks: bool,
}

impl Chosen {
    /// Whether the function of that name is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The adapter's function of that name.
    pub(super) fn function(&self, name: &str) -> Result<u32, WasiError> {
        let found = self.functions.get(name).copied();
        found.ok_or_else(|| WasiError::Unknown { name: name.into() })
    }
}

impl Adapter {
    pub(super) fn read(bytes: &'static [u8]) -> Result<Self, WasiError> {
        let module = Program::read(bytes)?;
        let mut calls = BTreeMap::new();
        for (body, function) in module.bodies.iter().zip(module.imported_count()..) {
            let mut called = BTreeSet::new();
            let mut operators = body.get_operators_reader()?;
            while !operators.eof() {
                match operators.read()? {
                    Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                        called.insert(function_index);
                    }
                    // The check of `cargo xtask generate` holds that there are none.
                    Operator::CallIndirect { .. } => {
                        return Err(WasiError::Encoding("the adapter calls by pointers".into()));
                    }
                    _ => {}
                }
            }
            calls.insert(function, called);
        }
        let memory_bytes = memory_end(&module)?;
        Ok(Self { module, calls, memory_bytes })
    }

    /// The functions for a program that imports those of `names`.
    pub(super) fn choose(&self, names: &[&str]) -> Result<Chosen, WasiError> {
        let small = self.chosen(names, true)?;
        if self.asks(&small.all, "files") { self.chosen(names, false) } else { Ok(small) }
    }

    fn chosen(&self, names: &[&str], streams_alone: bool) -> Result<Chosen, WasiError> {
        let mut functions = BTreeMap::new();
        // Functions of preview 1 have plain names.
        let is_component = names.iter().any(|name| name.contains(':'));
        let begin = if is_component { COMPONENT_BEGIN } else { BEGIN };
        let named = names.iter().map(|name| (*name, *name));
        for (name, wanted) in named.chain([(BEGIN, begin), (END, END)]) {
            let small =
                streams_alone.then(|| self.module.exported_function(&format!("{STREAMS}{wanted}")));
            let function = small.flatten().or_else(|| self.module.exported_function(wanted));
            let function = function.ok_or_else(|| WasiError::Unknown { name: name.into() })?;
            functions.insert(name.to_owned(), function);
        }
        let mut all = BTreeSet::new();
        let mut left: Vec<u32> = functions.values().copied().collect();
        while let Some(function) = left.pop() {
            if all.insert(function) {
                left.extend(self.calls.get(&function).into_iter().flatten());
            }
        }
        let has_tasks = self.asks(&all, "tasks");
        Ok(Chosen { functions, all, has_files: !streams_alone, has_tasks })
    }

    /// Whether one of the functions asks for a room.
    fn asks(&self, functions: &BTreeSet<u32>, room: &str) -> bool {
        functions.iter().any(|function| self.question(*function) == Some(room))
    }

    /// The question to who links that an imported function of the adapter is.
    pub(super) fn question(&self, function: u32) -> Option<&str> {
        let (import, _) = self.module.imported_functions().nth(function as usize)?;
        (import.module == MERGER).then_some(import.name)
    }

    /// The type of one of its functions.
    pub(super) fn kind(&self, function: u32) -> Result<&FuncType, WasiError> {
        let kind = self.module.function_kind(function);
        kind.ok_or_else(|| WasiError::Encoding("the adapter has a function without a type".into()))
    }
}

/// Where the adapter's own memory ends.
fn memory_end(module: &Program<'_>) -> Result<u32, WasiError> {
    let is_it = |export: &&wasmparser::Export<'_>| {
        export.kind == ExternalKind::Global && export.name == MEMORY_END
    };
    let global = module.exports.iter().find(is_it).map(|export| export.index as usize);
    let global = global.and_then(|global| module.globals.get(global));
    let value = global.map(|global| global.init_expr.get_operators_reader().read());
    match value.transpose()? {
        Some(Operator::I32Const { value }) => Ok(value as u32),
        _ => Err(WasiError::Encoding("the adapter doesn't say where its memory ends".into())),
    }
}
