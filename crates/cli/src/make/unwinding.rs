//! C's `setjmp` and `longjmp` in WebAssembly without exceptions: what LLVM leaves to emscripten's JavaScript becomes
//! returns and checks.
//!
//! With `-mllvm -enable-emscripten-sjlj` a function that has called `setjmp` makes each further call by an import:
//! `invoke_SIGNATURE(pointer, arguments…)` calls the function at `pointer`, and comes back, too, if something in it has called
//! `longjmp`; what the program does then, LLVM has compiled behind it. `longjmp` itself notes its aim in `__THREW__` and
//! leaves by another import. Here
//!
//! - `longjmp`'s import becomes a function that sets a global, `unwinding`;
//! - a function in the midst of which the program may unwind looks at that global behind each call that may do so, and
//!   returns with zeros for results if it is set;
//! - `invoke_SIGNATURE` becomes a function that makes the call, and if the program unwinds ends that and puts the
//!   pointer of the stack in memory back to where it was;
//! - an exported function in which nobody has ended it stops the machine with a message.
//!
//! Modules that import none of them stay as they are. DWARF's addresses are found again by [`Moved`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use tenure_wire::host_call;
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, CustomSection, DataCountSection, DataSection,
    ElementSection, Encode as _, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Instruction, MemorySection, Module, NameMap,
    NameSection, StartSection, TableSection,
};
use wasmparser::{
    BinaryReaderError, ExternalKind, FuncType, FunctionBody, Operator, Parser, ValType,
};

use super::function_types::FunctionTypes;
use super::leavers::{Leavers, append_zeros};
use super::moved::Moved;
use super::program::{Import, Program};

/// The module that LLVM lets a program import such functions from.
const MODULE: &str = "env";
/// The beginning of the names of functions that make a call.
const INVOKE: &str = "invoke_";
/// The function by which emscripten's `longjmp` leaves.
const THROW: &str = "_emscripten_throw_longjmp";
/// The function by which the SDK's `longjmp` leaves (`sdk/c/src/setjmp.c`): it gives the message for when nobody waits.
const UNWIND: &str = "tenure_unwind";
/// The functions by which emscripten's code reads and sets a second result of a call.
const SECOND: &str = "getTempRet0";
const SET_SECOND: &str = "setTempRet0";
/// LLVM's name for the pointer of the stack in memory.
const STACK_POINTER: &str = "__stack_pointer";
/// The host call that stops a machine with a message.
const ABORT: &str = "abort";

/// Why a module with `setjmp` can't become a machine's code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnwindingError {
    /// It isn't WebAssembly.
    #[error("the compiler's output is no WebAssembly module: {0}")]
    Malformed(#[from] BinaryReaderError),
    /// It has what can't be written anew.
    #[error("the code's longjmp can't be compiled for machines: {0}")]
    Encoding(String),
    /// Its stack isn't where clang's is.
    #[error("the code calls setjmp and has no stack in memory as clang's has")]
    Stack,
}

impl<E: std::fmt::Debug> From<reencode::Error<E>> for UnwindingError {
    fn from(error: reencode::Error<E>) -> Self {
        Self::Encoding(format!("{error:?}"))
    }
}

/// The module in plain WebAssembly; nothing if it neither calls `setjmp` nor `longjmp`.
///
/// # Errors
/// See [`UnwindingError`].
pub(crate) fn lower(module: &[u8]) -> Result<Option<Vec<u8>>, UnwindingError> {
    // The core modules of components import nothing of that kind.
    if Parser::is_component(module) {
        return Ok(None);
    }
    let program = Program::read(module)?;
    let replaced: BTreeMap<u32, Replaced> = (0..)
        .zip(program.imported_functions())
        .filter_map(|(index, (import, kind))| {
            Some((index, Replaced::of(import, program.kind(kind)?)?))
        })
        .collect();
    if replaced.is_empty() {
        return Ok(None);
    }
    Lowering::new(&program, replaced)?.module().map(Some)
}

/// An import that becomes a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaced {
    /// It makes a call.
    Invoke,
    /// The program unwinds from there on.
    Throw,
    /// So it does; the message for when nobody waits is in memory.
    Unwind,
    /// It gives a call's second result.
    Second,
    /// It sets that.
    SetSecond,
}

impl Replaced {
    fn of(import: &Import<'_>, kind: &FuncType) -> Option<Self> {
        let (parameters, results) = (kind.params(), kind.results());
        match import.name {
            _ if import.module != MODULE => None,
            THROW if parameters.is_empty() && results.is_empty() => Some(Self::Throw),
            SECOND if parameters.is_empty() && results == [ValType::I32] => Some(Self::Second),
            SET_SECOND if parameters == [ValType::I32] && results.is_empty() => {
                Some(Self::SetSecond)
            }
            UNWIND if parameters == [ValType::I32; 2] && results.is_empty() => Some(Self::Unwind),
            name if name.starts_with(INVOKE) && parameters.first() == Some(&ValType::I32) => {
                Some(Self::Invoke)
            }
            _ => None,
        }
    }
}

/// The module in the making.
struct Lowering<'a> {
    program: &'a Program<'a>,
    replaced: BTreeMap<u32, Replaced>,
    leavers: Leavers,
    types: FunctionTypes,
    imports: ImportSection,
    /// Where each function of the program is now.
    functions: Vec<u32>,
    /// The functions that are added, behind the program's: type, name, code.
    added: Vec<(u32, String, Function)>,
    /// Where the first of them is.
    first_added: u32,
    /// The functions by which others call exported ones that the program itself calls, too.
    roots: BTreeMap<u32, u32>,
    /// The global that is the pointer of the stack, if it has one.
    stack: Option<u32>,
    /// The global that says whether the program unwinds: the message's address, or 1.
    unwinding: u32,
    /// The global with the message's length.
    length: u32,
    /// The global with the second result of a call.
    second: u32,
    /// The host call that stops the machine with that message.
    abort: Option<u32>,
    moved: Moved,
}

impl<'a> Lowering<'a> {
    fn new(
        program: &'a Program<'a>,
        replaced: BTreeMap<u32, Replaced>,
    ) -> Result<Self, UnwindingError> {
        let is_way_out = |what: &Replaced| matches!(what, Replaced::Throw | Replaced::Unwind);
        let ways_out = replaced.iter().filter(|(_, what)| is_way_out(what));
        let leavers = Leavers::of(program, ways_out.map(|(index, _)| *index))?;
        let globals = program.imported_globals() + program.globals.len() as u32;
        let mut lowering = Self {
            program,
            replaced,
            leavers,
            types: FunctionTypes::of(program)?,
            imports: ImportSection::new(),
            functions: Vec::new(),
            added: Vec::new(),
            first_added: 0,
            roots: BTreeMap::new(),
            stack: stack_pointer(program),
            unwinding: globals,
            length: globals + 1,
            second: globals + 2,
            abort: None,
            moved: Moved::default(),
        };
        lowering.place_functions()?;
        lowering.add_replaced()?;
        lowering.add_roots()?;
        Ok(lowering)
    }

    /// Keeps the other imports, and finds out where all functions are then.
    fn place_functions(&mut self) -> Result<(), UnwindingError> {
        let program = self.program;
        let (mut next, mut index) = (0, 0);
        let mut removed = Vec::new();
        for import in &program.imports {
            if matches!(import.kind, wasmparser::TypeRef::Func(_)) {
                self.functions.push(next);
                index += 1;
                if self.replaced.contains_key(&(index - 1)) {
                    removed.push(index - 1);
                    continue;
                }
                if (import.module, import.name) == (host_call::MODULE, ABORT) {
                    self.abort = Some(next);
                }
                next += 1;
            }
            let kind = reencode::RoundtripReencoder.entity_type(import.kind)?;
            self.imports.import(import.module, import.name, kind);
        }
        let has_message = self.replaced.values().any(|what| *what == Replaced::Unwind);
        if has_message && self.abort.is_none() {
            let kind = self.types.index(FuncType::new([ValType::I32; 2], []))?;
            self.imports.import(host_call::MODULE, ABORT, EntityType::Function(kind));
            self.abort = Some(next);
            next += 1;
        }
        for _ in &program.functions {
            self.functions.push(next);
            next += 1;
        }
        // What stands for the imports comes last, in their order.
        self.first_added = next;
        for (function, place) in removed.into_iter().zip(next..) {
            if let Some(moved) = self.functions.get_mut(function as usize) {
                *moved = place;
            }
        }
        Ok(())
    }

    /// The functions that stand for the imports.
    fn add_replaced(&mut self) -> Result<(), UnwindingError> {
        let program = self.program;
        for (index, (import, kind_index)) in (0..).zip(program.imported_functions()) {
            let (Some(what), Some(kind)) =
                (self.replaced.get(&index).copied(), program.kind(kind_index))
            else {
                continue;
            };
            let function = match what {
                Replaced::Invoke => self.invoke(kind)?,
                _ => self.short(what),
            };
            self.added.push((kind_index, import.name.to_owned(), function));
        }
        Ok(())
    }

    /// Calls the function whose pointer is the first parameter, and ends what unwinds in it.
    fn invoke(&mut self, kind: &FuncType) -> Result<Function, UnwindingError> {
        let arguments = kind.params().iter().copied().skip(1);
        let callee = FuncType::new(arguments, kind.results().iter().copied());
        let callee = self.types.index(callee)?;
        let saved = kind.params().len() as u32;
        let stack = self.stack.ok_or(UnwindingError::Stack)?;
        let mut function = Function::new([(1, wasm_encoder::ValType::I32)]);
        let mut code = function.instructions();
        code.global_get(stack).local_set(saved);
        for argument in 1..saved {
            code.local_get(argument);
        }
        code.local_get(0).call_indirect(0, callee);
        code.global_get(self.unwinding).if_(BlockType::Empty);
        code.i32_const(0).global_set(self.unwinding);
        code.local_get(saved).global_set(stack).end().end();
        Ok(function)
    }

    /// Begins to unwind, or has to do with a second result.
    fn short(&self, what: Replaced) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        match what {
            Replaced::Unwind => {
                code.local_get(1).global_set(self.length);
                code.local_get(0).global_set(self.unwinding)
            }
            Replaced::Second => code.global_get(self.second),
            Replaced::SetSecond => code.local_get(0).global_set(self.second),
            Replaced::Throw | Replaced::Invoke => code.i32_const(1).global_set(self.unwinding),
        };
        code.end();
        function
    }

    /// The functions that others call: the exported ones, and the one that runs at the start.
    fn entries(&self) -> impl Iterator<Item = u32> {
        let exports = self.program.exports.iter();
        let exports = exports.filter(|export| export.kind == ExternalKind::Func);
        exports.map(|export| export.index).chain(self.program.start)
    }

    /// Whether nobody but others calls this function. Then it stops the machine itself if it unwinds.
    fn is_root(&self, function: u32) -> bool {
        !self.leavers.is_called(function) && self.entries().any(|entry| entry == function)
    }

    /// A function for each that others call and the program, too: it calls that, and stops the machine if it unwinds.
    fn add_roots(&mut self) -> Result<(), UnwindingError> {
        let program = self.program;
        let entries: Vec<u32> = self.entries().collect();
        for entry in entries {
            let is_needed = self.leavers.contains(entry) && self.leavers.is_called(entry);
            let kind = program.function_kind(entry).filter(|_| is_needed);
            let Some(kind) = kind.filter(|_| !self.roots.contains_key(&entry)) else { continue };
            let mut function = Function::new([]);
            let mut code = function.instructions();
            for parameter in 0..kind.params().len() as u32 {
                code.local_get(parameter);
            }
            code.call(self.place(entry)).global_get(self.unwinding).if_(BlockType::Empty);
            self.append_stop(&mut function);
            function.instructions().end().end();
            let kind = self.types.index(kind.clone())?;
            let index = self.first_added + self.added.len() as u32;
            self.roots.insert(entry, index);
            self.added.push((kind, "unwinding:root".to_owned(), function));
        }
        Ok(())
    }

    /// Stops the machine, with the message if there is one.
    fn append_stop(&self, function: &mut Function) {
        let mut code = function.instructions();
        if let Some(abort) = self.abort {
            code.global_get(self.unwinding).global_get(self.length).call(abort);
        }
        code.unreachable();
    }

    fn place(&self, function: u32) -> u32 {
        self.functions.get(function as usize).copied().unwrap_or(function)
    }

    /// A function of the program's, and the place of each of its instructions: in it, and in the program's code.
    fn function(
        &self,
        index: u32,
        body: &FunctionBody<'_>,
    ) -> Result<(Function, Vec<(usize, usize)>), UnwindingError> {
        let mut encoder = Renumbered { functions: &self.functions };
        let mut function = encoder.new_function_with_parsed_locals(body)?;
        let operators = body.get_operators_reader()?.into_iter_with_offsets();
        let operators = operators.collect::<Result<Vec<_>, _>>()?;
        let kind = self.program.function_kind(index);
        let is_root = self.is_root(index);
        let checks = self.checks(&operators, is_root);
        // The way out for those that can't go to the function's end: the results aren't there, or it stops the machine.
        let has_results = kind.is_some_and(|kind| !kind.results().is_empty());
        let has_way_out = checks.contains(&true) && (is_root || has_results);
        if has_way_out {
            function.instructions().block(BlockType::Empty);
        }
        let (mut places, mut depth) = (Vec::new(), 0);
        let last = operators.len().saturating_sub(1);
        for (at, ((operator, offset), is_checked)) in operators.into_iter().zip(checks).enumerate()
        {
            places.push((function.byte_len(), offset - self.program.code_at));
            if at == last && has_way_out {
                function.instructions().return_().end();
                match is_root {
                    true => self.append_stop(&mut function),
                    false => append_zeros(&mut function, kind),
                }
            }
            match operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => depth += 1,
                Operator::End => depth = u32::saturating_sub(depth, 1),
                _ => {}
            }
            let further = has_way_out.then_some(depth);
            let instruction = match branch(&operator, further)? {
                Some(branch) => branch,
                None => encoder.instruction(operator)?,
            };
            function.instruction(&instruction);
            if is_checked {
                function.instructions().global_get(self.unwinding).br_if(depth);
            }
        }
        Ok((function, places))
    }

    /// Behind which of a function's instructions it is to look whether the program unwinds. Where it returns anyhow it needn't,
    /// unless it stops the machine then.
    fn checks(&self, operators: &[(Operator<'_>, usize)], is_root: bool) -> Vec<bool> {
        let last = operators.len().saturating_sub(1);
        let returns =
            |at: usize| at == last || matches!(operators.get(at), Some((Operator::Return, _)));
        let operators = operators.iter().enumerate();
        operators
            .map(|(at, (operator, _))| {
                self.leavers.may_be_behind(operator) && (is_root || !returns(at + 1))
            })
            .collect()
    }

    fn module(mut self) -> Result<Vec<u8>, UnwindingError> {
        let (functions, code) = self.code()?;
        let program = self.program;
        let mut encoder = Renumbered { functions: &self.functions };
        let mut module = Module::new();
        module.section(self.types.section());
        if !self.imports.is_empty() {
            module.section(&self.imports);
        }
        module.section(&functions);
        let mut tables = TableSection::new();
        for table in &program.tables {
            encoder.parse_table(&mut tables, table.clone())?;
        }
        if !tables.is_empty() {
            module.section(&tables);
        }
        let mut memories = MemorySection::new();
        for memory in &program.memories {
            memories.memory(encoder.memory_type(*memory)?);
        }
        if !memories.is_empty() {
            module.section(&memories);
        }
        module.section(&self.globals()?).section(&self.exports()?);
        if let Some(start) = program.start {
            let function_index = self.root_of(start);
            module.section(&StartSection { function_index });
        }
        let mut elements = ElementSection::new();
        for element in &program.elements {
            encoder.parse_element(&mut elements, element.clone())?;
        }
        if !elements.is_empty() {
            module.section(&elements);
        }
        let mut data = DataSection::new();
        for segment in &program.data {
            encoder.parse_data(&mut data, segment.clone())?;
        }
        if !data.is_empty() {
            module.section(&DataCountSection { count: data.len() });
        }
        module.section(&code);
        if !data.is_empty() {
            module.section(&data);
        }
        self.add_customs(&mut module);
        Ok(module.finish())
    }

    fn code(&mut self) -> Result<(FunctionSection, CodeSection), UnwindingError> {
        let program = self.program;
        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        let mut place = 0;
        let own = program.bodies.iter().zip(&program.functions);
        for (index, (body, kind)) in (program.imported_count()..).zip(own) {
            let (function, places) = self.function(index, body)?;
            let length = function.byte_len() as u32;
            let mut head = Vec::new();
            length.encode(&mut head);
            let start = place + head.len() as u32;
            for (to, from) in places {
                self.moved.push(start + to as u32, from as u32);
            }
            place = start + length;
            functions.function(*kind);
            code.function(&function);
        }
        // From there on the code is none of the program's.
        self.moved.push(place, 0);
        for (kind, _, function) in &self.added {
            functions.function(*kind);
            code.function(function);
        }
        let mut head = Vec::new();
        code.len().encode(&mut head);
        self.moved.shift(head.len() as u32);
        Ok((functions, code))
    }

    fn globals(&self) -> Result<GlobalSection, UnwindingError> {
        let mut globals = GlobalSection::new();
        let mut encoder = Renumbered { functions: &self.functions };
        for global in &self.program.globals {
            encoder.parse_global(&mut globals, global.clone())?;
        }
        let kind =
            GlobalType { val_type: wasm_encoder::ValType::I32, mutable: true, shared: false };
        for _ in [self.unwinding, self.length, self.second] {
            globals.global(kind, &ConstExpr::i32_const(0));
        }
        Ok(globals)
    }

    fn exports(&self) -> Result<ExportSection, UnwindingError> {
        let mut exports = ExportSection::new();
        let mut encoder = Renumbered { functions: &self.functions };
        for export in &self.program.exports {
            match export.kind {
                ExternalKind::Func => {
                    exports.export(export.name, ExportKind::Func, self.root_of(export.index));
                }
                _ => encoder.parse_export(&mut exports, *export)?,
            }
        }
        Ok(exports)
    }

    /// Where the function is that others call for this one.
    fn root_of(&self, function: u32) -> u32 {
        self.roots.get(&function).copied().unwrap_or_else(|| self.place(function))
    }

    /// Names, where the code was, and what debuggers want to know.
    fn add_customs(&self, module: &mut Module) {
        for (name, data) in &self.program.customs {
            if *name != "name" {
                module.section(&CustomSection { name: (*name).into(), data: (*data).into() });
            }
        }
        let data = self.moved.to_bytes();
        module.section(&CustomSection { name: Moved::SECTION.into(), data: data.into() });
        let own = self.program.function_names().into_iter();
        let own = own.map(|(index, name)| (self.place(index), name));
        let added = self.added.iter().map(|(_, name, _)| name.clone());
        // In the order of their indices.
        let names: BTreeMap<u32, String> = own.chain((self.first_added..).zip(added)).collect();
        let mut functions = NameMap::new();
        for (index, name) in &names {
            functions.append(*index, name);
        }
        let mut section = NameSection::new();
        section.functions(&functions);
        module.section(&section);
    }
}

/// The global that is the pointer of the stack in memory: the one of that name or, without names, the first, where the
/// linker puts it.
fn stack_pointer(program: &Program<'_>) -> Option<u32> {
    let named = program.global_names().into_iter().find(|(_, name)| name == STACK_POINTER);
    let index = named.map_or(program.imported_globals(), |(index, _)| index);
    let global = program.globals.get(index.checked_sub(program.imported_globals())? as usize)?;
    (global.ty.mutable && global.ty.content_type == ValType::I32).then_some(index)
}

/// A branch in a function with `depth` open blocks around which there is one more now, if its aim is further out by that: the
/// function's end.
fn branch<'a>(
    operator: &Operator<'a>,
    depth: Option<u32>,
) -> Result<Option<Instruction<'a>>, BinaryReaderError> {
    let Some(depth) = depth else { return Ok(None) };
    let further = |aim: u32| if aim >= depth { aim + 1 } else { aim };
    Ok(match operator {
        Operator::Br { relative_depth } => Some(Instruction::Br(further(*relative_depth))),
        Operator::BrIf { relative_depth } => Some(Instruction::BrIf(further(*relative_depth))),
        Operator::BrTable { targets } => {
            let aims = targets.targets().map(|aim| aim.map(further));
            let aims = aims.collect::<Result<Vec<u32>, _>>()?;
            Some(Instruction::BrTable(Cow::Owned(aims), further(targets.default())))
        }
        _ => None,
    })
}

/// Encodes the program, whose functions are elsewhere.
struct Renumbered<'m> {
    functions: &'m [u32],
}

impl Reencode for Renumbered<'_> {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<Infallible>> {
        Ok(self.functions.get(function as usize).copied().unwrap_or(function))
    }
}

#[cfg(test)]
mod tests;
