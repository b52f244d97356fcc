//! One module of two: the program, with its memory moved up, and the parts of the adapter that it uses below.

mod encoders;
mod sections;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tenure_wire::host_call::{self, HostCallInfo, TABLE};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{CodeSection, Encode, EntityType, Function, FunctionSection, ImportSection};
use wasmparser::{DataKind, FuncType, FunctionBody, Operator, TypeRef};

use super::adapter::{self, Adapter, Chosen};
use super::component::{self, ASYNC, Command, REALLOC, RETURNED, adapter_name};
use super::helpers::{self, Memory, Places};
use super::host_calls::{self, Lowering};
use super::layout::{FILES_BYTES, TASKS_BYTES, WORD_RESULT};
use super::{ProgramOutput, RUN, Wasi, WasiError};
use crate::make::function_types::FunctionTypes;
use crate::make::leavers::{Leavers, append_zeros};
use crate::make::moved::Moved;
use crate::make::pack::START_FUNCTION;
use crate::make::program::{Import, Program};
use encoders::{AdapterEncoder, MemoryCalls, MemoryUses, ProgramEncoder};

/// How a run begins, as the adapter numbers it.
const CAUSE_START: i32 = 0;
const CAUSE_CALL: i32 = 1;
const CAUSE_LIBRARY: i32 = 2;

/// The adapter's functions for a task: it begins, goes on, and hears of an event.
const TASK_BEGIN: &str = "async:begin";
const TASK_RESUME: &str = "async:resume";
const EVENT_OF: &str = "async:event-of";
const EVENT_SAYS: &str = "async:event-says";
/// The bits of what a task returns that say whether it is done: 0 if it is.
const TASK_BITS: i32 = 15;

/// Makes one module of a program and what it uses of the adapter.
pub(super) fn merge(
    program: &Program<'_>,
    adapter: &Adapter,
    settings: &[u8],
    wasi: &Wasi,
) -> Result<Vec<u8>, WasiError> {
    let command = program.command();
    check(program, command)?;
    let names = adapter_functions(program, command, adapter)?;
    let chosen = adapter.choose(&names.iter().map(|name| &**name).collect::<Vec<&str>>())?;
    let files_bytes = if chosen.has_files { FILES_BYTES } else { 0 };
    let tasks_bytes = if chosen.has_tasks { TASKS_BYTES } else { 0 };
    let has_result = wasi.output == ProgramOutput::Result;
    let rooms = (files_bytes, tasks_bytes);
    let places = Places::new(adapter.memory_bytes, settings.len() as u32, has_result, rooms);
    let mut settings = settings.to_vec();
    if let Some(word) = settings.chunks_exact_mut(4).nth(WORD_RESULT as usize) {
        word.copy_from_slice(&places.result.to_le_bytes());
    }
    let mut merger = Merger::new(program, command, adapter, &chosen, places)?;
    merger.add_questions()?;
    merger.add_user_map()?;
    merger.encode_functions()?;
    match command {
        Some(command) => merger.add_runs(command, wasi.start)?,
        None => merger.add_start()?,
    }
    merger.finish(&settings)
}

fn check(program: &Program<'_>, command: Option<Command>) -> Result<(), WasiError> {
    let imports_memory = program.imports.iter().any(|it| matches!(it.kind, TypeRef::Memory(_)));
    let is_odd = |memory: &wasmparser::MemoryType| memory.memory64 || memory.shared;
    if imports_memory || program.memories.len() > 1 || program.memories.iter().any(is_odd) {
        return Err(WasiError::Memory);
    }
    let is_odd = |command: Command| {
        let results: &[_] = if command.returns_result { &[wasmparser::ValType::I32] } else { &[] };
        let kind = program.function_kind(command.function);
        kind.is_none_or(|kind| !kind.params().is_empty() || kind.results() != results)
    };
    if command.is_some_and(is_odd) {
        return Err(WasiError::Command);
    }
    Ok(())
}

/// The adapter's functions that a program needs beside those that begin and end it.
fn adapter_functions<'a>(
    program: &Program<'a>,
    command: Option<Command>,
    adapter: &Adapter,
) -> Result<Vec<Cow<'a, str>>, WasiError> {
    let mut names = Vec::new();
    for (import, _) in program.imported_functions() {
        if let Some(name) = adapter_name(import.module, import.name) {
            if adapter.module.exported_function(&name).is_none() {
                return Err(unknown(import));
            }
            names.push(name);
        } else if component::host_call(import.module, import.name).is_some() {
            names.extend(host_calls::FUNCTIONS.map(Cow::Borrowed));
        } else if component::is_interface(import.module) {
            return Err(unknown(import));
        }
    }
    if command.is_some_and(|command| command.returns_result) {
        names.push(Cow::Borrowed(RETURNED));
    }
    if command.is_some_and(|command| command.callback.is_some()) {
        names.extend([TASK_RESUME, EVENT_OF, EVENT_SAYS].map(Cow::Borrowed));
    }
    if names.iter().any(|name| name.starts_with(ASYNC)) {
        names.push(Cow::Borrowed(TASK_BEGIN));
    }
    Ok(names)
}

/// The refusal of an import that nothing is known of.
fn unknown(import: &Import<'_>) -> WasiError {
    match component::is_interface(import.module) {
        true => WasiError::Interface {
            interface: import.module.to_owned(),
            function: import.name.to_owned(),
            instead: component::instead(import.module),
        },
        false => WasiError::Unknown { name: import.name.to_owned() },
    }
}

/// The module in the making.
struct Merger<'a> {
    program: &'a Program<'a>,
    adapter: &'a Adapter,
    chosen: &'a Chosen,
    places: Places,
    /// The function that is the program, if it is a command's.
    command: Option<Command>,
    types: FunctionTypes,
    imports: ImportSection,
    functions: FunctionSection,
    code: CodeSection,
    /// Where each function of the program's, and of the adapter's, is in the module.
    program_functions: Vec<u32>,
    adapter_functions: BTreeMap<u32, u32>,
    /// Those between, with their types; they come last.
    helpers: Vec<(u32, String, Function)>,
    helpers_at: u32,
    memory: Memory,
    memory_calls: MemoryCalls,
    /// The globals that say whether the program has exited, and whether it has run before.
    exited: u32,
    has_run: u32,
    adapter_globals_at: u32,
    moved: Moved,
}

impl<'a> Merger<'a> {
    fn new(
        program: &'a Program<'a>,
        command: Option<Command>,
        adapter: &'a Adapter,
        chosen: &'a Chosen,
        places: Places,
    ) -> Result<Self, WasiError> {
        let declared = program.memories.first();
        let globals = program.imported_globals() + program.globals.len() as u32;
        let adapter_globals = adapter.module.globals.len() as u32;
        let own_globals_at = globals + adapter_globals;
        let memory = Memory {
            base: places.base,
            page_bytes_log2: declared.and_then(|memory| memory.page_size_log2).unwrap_or(16),
            pages: own_globals_at,
            pages_max: declared.and_then(|memory| memory.maximum),
        };
        let mut merger = Self {
            program,
            adapter,
            chosen,
            places,
            command,
            types: FunctionTypes::of(program)?,
            imports: ImportSection::new(),
            functions: FunctionSection::new(),
            code: CodeSection::new(),
            program_functions: Vec::new(),
            adapter_functions: BTreeMap::new(),
            helpers: Vec::new(),
            helpers_at: 0,
            memory,
            memory_calls: MemoryCalls::default(),
            exited: own_globals_at + 1,
            has_run: own_globals_at + 2,
            adapter_globals_at: globals,
            moved: Moved::default(),
        };
        merger.add_imports()?;
        Ok(merger)
    }

    /// All that both import, but for WASI's functions and the adapter's questions; and thereby where all functions are.
    fn add_imports(&mut self) -> Result<(), WasiError> {
        let mut next = 0;
        let program = self.program;
        for import in &program.imports {
            let is_function = matches!(import.kind, TypeRef::Func(_));
            if is_function {
                self.program_functions.push(next);
            }
            if adapter_name(import.module, import.name).is_some()
                || program.is_notice_of_growth(import)
            {
                continue;
            }
            if let Some(call) = component::host_call(import.module, import.name) {
                let kind = self.types.index(host_calls::raw_kind(call))?;
                self.imports.import(host_call::MODULE, call.name, EntityType::Function(kind));
            } else {
                let kind = reencode::RoundtripReencoder.entity_type(import.kind)?;
                self.imports.import(import.module, import.name, kind);
            }
            next += u32::from(is_function);
        }
        let adapter = self.adapter;
        for (function, (import, _)) in (0..).zip(adapter.module.imported_functions()) {
            if !self.chosen.all.contains(&function) || adapter.question(function).is_some() {
                continue;
            }
            let kind = self.types.index(adapter.kind(function)?.clone())?;
            self.imports.import(import.module, import.name, EntityType::Function(kind));
            self.adapter_functions.insert(function, next);
            next += 1;
        }
        for _ in &self.program.functions {
            self.program_functions.push(next);
            next += 1;
        }
        let imported = adapter.module.imported_count();
        for function in self.chosen.all.range(imported..) {
            self.adapter_functions.insert(*function, next);
            next += 1;
        }
        self.helpers_at = next;
        Ok(())
    }

    /// Adds a function between both; returns its index.
    fn add_helper(
        &mut self,
        name: &str,
        parameters: &[wasmparser::ValType],
        results: &[wasmparser::ValType],
        function: Function,
    ) -> Result<u32, WasiError> {
        let kind = FuncType::new(parameters.iter().copied(), results.iter().copied());
        let kind = self.types.index(kind)?;
        let index = self.helpers_at + self.helpers.len() as u32;
        self.helpers.push((kind, name.to_owned(), function));
        Ok(index)
    }

    /// The answers to what the adapter asks.
    fn add_questions(&mut self) -> Result<(), WasiError> {
        let Places { settings, files, tasks, base, .. } = self.places;
        let chosen = self.chosen;
        for function in &chosen.all {
            let answer = match self.adapter.question(*function) {
                Some("settings") => settings,
                Some("files") => files,
                Some("tasks") => tasks,
                Some("realloc") => {
                    let realloc = self.realloc(*function)?;
                    self.adapter_functions.insert(*function, realloc);
                    continue;
                }
                Some(_) => base,
                None => continue,
            };
            let results = [wasmparser::ValType::I32];
            let index = self.add_helper("wasi:place", &[], &results, helpers::constant(answer))?;
            self.adapter_functions.insert(*function, index);
        }
        Ok(())
    }

    /// The program's function that gives memory, which `question` of the adapter's is.
    fn realloc(&self, question: u32) -> Result<u32, WasiError> {
        let function = self.program.exported_function(REALLOC).ok_or(WasiError::Realloc)?;
        if self.program.function_kind(function) != Some(self.adapter.kind(question)?) {
            return Err(WasiError::Realloc);
        }
        Ok(self.program_function(function))
    }

    /// The functions by which the program's memory is sized, filled and copied, and which stand for its imports.
    fn add_user_map(&mut self) -> Result<(), WasiError> {
        use wasmparser::ValType::I32;
        let moved = helpers::moved_address(self.places.base);
        let moved = self.add_helper("wasi:address", &[I32], &[I32], moved)?;
        let uses = MemoryUses::of(self.program)?;
        let memory = self.memory;
        if uses.size {
            self.memory_calls.size =
                self.add_helper("wasi:memory.size", &[], &[I32], memory.size())?;
        }
        if uses.grow {
            let grow = memory.grow();
            self.memory_calls.grow = self.add_helper("wasi:memory.grow", &[I32], &[I32], grow)?;
        }
        let three = [I32; 3];
        if uses.copy {
            let copy = Memory::copy(moved);
            self.memory_calls.copy = self.add_helper("wasi:memory.copy", &three, &[], copy)?;
        }
        if uses.fill {
            let fill = Memory::fill(moved);
            self.memory_calls.fill = self.add_helper("wasi:memory.fill", &three, &[], fill)?;
        }
        for segment in uses.init {
            let init = Memory::init(moved, segment);
            let init = self.add_helper("wasi:memory.init", &three, &[], init)?;
            self.memory_calls.init.insert(segment, init);
        }
        let program = self.program;
        for (function, (import, kind)) in program.imported_functions().enumerate() {
            let kind = program.kind(kind);
            let Some(place) = self.program_functions.get(function).copied() else { continue };
            let index = if let Some(name) = adapter_name(import.module, import.name) {
                self.function_of_wasi(import, &name, kind)?
            } else if program.is_notice_of_growth(import) {
                let mut nothing = Function::new([]);
                nothing.instructions().end();
                self.add_helper(import.name, &[I32], &[], nothing)?
            } else if let Some(call) = component::host_call(import.module, import.name) {
                self.lowered_host_call(call, import, place, moved, kind)?
            } else {
                let call = TABLE.iter().find(|call| call.name == import.name);
                match call.filter(|_| import.module == host_call::MODULE) {
                    Some(call) => self.host_call(call, place, moved, kind)?,
                    None => continue,
                }
            };
            if let Some(place) = self.program_functions.get_mut(function) {
                *place = index;
            }
        }
        Ok(())
    }

    /// The function that is one of WASI's, which the adapter has as `name`.
    fn function_of_wasi(
        &mut self,
        import: &Import<'_>,
        name: &str,
        kind: Option<&FuncType>,
    ) -> Result<u32, WasiError> {
        let function = self.chosen.function(name).map_err(|_| unknown(import))?;
        if kind != Some(self.adapter.kind(function)?) {
            return Err(signature(import));
        }
        let index = self.adapter_functions.get(&function).copied();
        let index = index.ok_or_else(|| unknown(import))?;
        if EXITS.contains(&name) && self.command.is_some() {
            let exit = helpers::exit(index, self.exited);
            return self.add_helper("wasi:proc_exit", &[wasmparser::ValType::I32], &[], exit);
        }
        Ok(index)
    }

    /// A host call that a component imports; `place` is the import of what a device has.
    fn lowered_host_call(
        &mut self,
        call: &HostCallInfo,
        import: &Import<'_>,
        place: u32,
        moved: u32,
        kind: Option<&FuncType>,
    ) -> Result<u32, WasiError> {
        let lowered = host_calls::lowered_kind(call);
        if kind != Some(&lowered) {
            return Err(signature(import));
        }
        let lowering = Lowering::new(place, moved, |name| self.adapter_function(name))?;
        let function = host_calls::lowered(call, lowering);
        let name = format!("tenure:{}", call.name);
        self.add_helper(&name, lowered.params(), lowered.results(), function)
    }

    /// A host call of the program's own. One of another type than it has is refused later, by its name.
    fn host_call(
        &mut self,
        call: &HostCallInfo,
        import: u32,
        moved: u32,
        kind: Option<&FuncType>,
    ) -> Result<u32, WasiError> {
        let slots: usize = call.parameters.iter().map(|parameter| parameter.kind.slots()).sum();
        let Some(kind) = kind.filter(|kind| kind.params().len() == slots) else {
            return Ok(import);
        };
        let function = helpers::host_call(call, import, moved);
        let name = format!("tenure:{}", call.name);
        self.add_helper(&name, kind.params(), kind.results(), function)
    }

    fn encode_functions(&mut self) -> Result<(), WasiError> {
        let program = self.program;
        let is_exit = |import: &Import<'_>| {
            let name = adapter_name(import.module, import.name);
            self.command.is_some() && name.is_some_and(|name| EXITS.contains(&name.as_ref()))
        };
        let imports = (0..).zip(program.imported_functions());
        let imported: BTreeSet<u32> =
            imports.filter(|(_, (import, _))| is_exit(import)).map(|(index, _)| index).collect();
        let exits = Leavers::of(program, imported)?;
        let mut place = 0;
        for (body, kind) in program.bodies.iter().zip(&program.functions) {
            self.functions.function(*kind);
            let function = self.encode_function(body, program.kind(*kind), &exits, &mut place)?;
            self.code.function(&function);
        }
        // From there on the code is none of the program's.
        self.moved.push(place, 0);
        let adapter = self.adapter;
        let imported = adapter.module.imported_count();
        for function in self.chosen.all.range(imported..) {
            let kind = self.types.index(adapter.kind(*function)?.clone())?;
            self.functions.function(kind);
            let body = adapter.module.bodies.get((function - imported) as usize);
            if let Some(body) = body {
                self.encode_adapter_function(body)?;
            }
        }
        Ok(())
    }

    /// Encodes a function of the program's; `place` is where it will be in the code section's content, and is moved behind it.
    fn encode_function(
        &mut self,
        body: &FunctionBody<'_>,
        kind: Option<&FuncType>,
        exits: &Leavers,
        place: &mut u32,
    ) -> Result<Function, WasiError> {
        let exited = self.exited;
        let code_at = self.program.code_at;
        let mut encoder = self.program_encoder();
        let mut function = encoder.new_function_with_parsed_locals(body)?;
        let mut operators = body.get_operators_reader()?;
        let mut places = Vec::new();
        while !operators.eof() {
            let (operator, offset) = operators.read_with_offset()?;
            places.push((function.byte_len(), offset - code_at));
            let may_exit = exits.may_be_behind(&operator);
            function.instruction(&encoder.instruction(operator)?);
            if may_exit {
                return_if_exited(&mut function, exited, kind);
            }
        }
        let length = function.byte_len() as u32;
        let mut head = Vec::new();
        length.encode(&mut head);
        let start = *place + head.len() as u32;
        for (to, from) in places {
            self.moved.push(start + to as u32, from as u32);
        }
        *place = start + length;
        Ok(function)
    }

    fn encode_adapter_function(&mut self, body: &FunctionBody<'_>) -> Result<(), WasiError> {
        let mut kinds = BTreeMap::new();
        for (index, kind) in self.adapter.module.types.iter().enumerate() {
            if let Some(kind) = kind {
                // Types of blocks; most of them are there already.
                kinds.insert(index as u32, kind.clone());
            }
        }
        let mut operators = body.get_operators_reader()?;
        let mut used = BTreeMap::new();
        while !operators.eof() {
            if let Operator::Block { blockty }
            | Operator::Loop { blockty }
            | Operator::If { blockty } = operators.read()?
                && let wasmparser::BlockType::FuncType(index) = blockty
                && let Some(kind) = kinds.get(&index)
            {
                used.insert(index, self.types.index(kind.clone())?);
            }
        }
        let mut encoder = AdapterEncoder {
            functions: &self.adapter_functions,
            globals_at: self.adapter_globals_at,
            types: used,
        };
        let mut function = encoder.new_function_with_parsed_locals(body)?;
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            function.instruction(&encoder.instruction(operators.read()?)?);
        }
        self.code.function(&function);
        Ok(())
    }

    fn program_encoder(&self) -> ProgramEncoder<'_> {
        ProgramEncoder {
            functions: &self.program_functions,
            base: self.places.base,
            calls: &self.memory_calls,
            keeps_data: self.command.is_some(),
        }
    }

    /// The adapter's function of that name, where it is in the module.
    fn adapter_function(&self, name: &str) -> Result<u32, WasiError> {
        let function = self.chosen.function(name)?;
        let index = self.adapter_functions.get(&function).copied();
        index.ok_or_else(|| WasiError::Unknown { name: name.into() })
    }

    fn program_function(&self, function: u32) -> u32 {
        self.program_functions.get(function as usize).copied().unwrap_or(function)
    }

    /// The functions that run a command: for a call, and as the machine starts.
    fn add_runs(&mut self, command: Command, starts: bool) -> Result<(), WasiError> {
        let call = self.run(command, CAUSE_CALL)?;
        self.add_helper(RUN, &[], &[], call)?;
        if starts {
            let start = self.run(command, CAUSE_START)?;
            self.add_helper(START_FUNCTION, &[], &[], start)?;
        }
        Ok(())
    }

    /// A run: memory and globals as they are at the beginning, then the program, then what is left to do.
    fn run(&self, command: Command, cause: i32) -> Result<Function, WasiError> {
        let state = command.callback.map(|_| (1, wasm_encoder::ValType::I32));
        let mut function = Function::new(state);
        function.instructions().global_get(self.has_run).if_(wasm_encoder::BlockType::Empty);
        self.memory.clear(&mut function);
        function.instructions().end().i32_const(1).global_set(self.has_run);
        function.instructions().i32_const(0).global_set(self.exited);
        function.instructions().i32_const(self.pages() as i32).global_set(self.memory.pages);
        let mut encoder = self.program_encoder();
        for (index, global) in (self.program.imported_globals()..).zip(&self.program.globals) {
            if global.ty.mutable {
                append_constant(&mut encoder, &mut function, &global.init_expr)?;
                function.instructions().global_set(index);
            }
        }
        for (segment, data) in (0..).zip(&self.program.data) {
            let DataKind::Active { offset_expr, .. } = &data.kind else { continue };
            append_constant(&mut encoder, &mut function, offset_expr)?;
            let mut code = function.instructions();
            code.i32_const(self.places.base as i32).i32_add();
            code.i32_const(0).i32_const(data.data.len() as i32).memory_init(0, segment);
        }
        let mut code = function.instructions();
        code.i32_const(cause).call(self.adapter_function(adapter::BEGIN)?);
        if self.chosen.has(TASK_BEGIN) {
            code.call(self.adapter_function(TASK_BEGIN)?);
        }
        if let Some(start) = self.program.start {
            code.call(self.program_function(start));
        }
        // Of a component's program the host calls that first; a command of preview 1 does it by itself.
        if let Some(initialize) = self.program.exported_function(INITIALIZE)
            && command.returns_result
        {
            code.call(self.program_function(initialize));
        }
        code.global_get(self.exited).i32_eqz().if_(wasm_encoder::BlockType::Empty);
        code.call(self.program_function(command.function));
        match command.callback {
            Some(callback) => self.go_on(callback, &mut function)?,
            None if command.returns_result => {
                code.call(self.adapter_function(RETURNED)?);
            }
            None => {}
        }
        let mut code = function.instructions();
        code.end();
        code.call(self.adapter_function(adapter::END)?).end();
        Ok(function)
    }

    /// A task goes on until it is done, or the program has exited: what it returned is on the stack.
    fn go_on(&self, callback: u32, function: &mut Function) -> Result<(), WasiError> {
        use wasm_encoder::BlockType::Empty;
        const STATE: u32 = 0;
        let mut code = function.instructions();
        code.local_set(STATE).block(Empty).loop_(Empty);
        code.local_get(STATE).i32_const(TASK_BITS).i32_and().i32_eqz();
        code.global_get(self.exited).i32_or().br_if(1);
        code.local_get(STATE).call(self.adapter_function(TASK_RESUME)?);
        code.call(self.adapter_function(EVENT_OF)?).call(self.adapter_function(EVENT_SAYS)?);
        code.call(self.program_function(callback)).local_set(STATE).br(0).end().end();
        Ok(())
    }

    /// The start function of a library.
    fn add_start(&mut self) -> Result<(), WasiError> {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.i32_const(CAUSE_LIBRARY).call(self.adapter_function(adapter::BEGIN)?);
        if let Some(start) = self.program.start {
            code.call(self.program_function(start));
        }
        code.end();
        self.add_helper("wasi:start", &[], &[], function)?;
        Ok(())
    }

    /// The program's pages at the beginning.
    fn pages(&self) -> u32 {
        self.program.memories.first().map_or(0, |memory| memory.initial as u32)
    }
}

/// The function that a module exports for its constructors, if it is no command of preview 1.
const INITIALIZE: &str = "_initialize";

/// The functions of WASI that end a program.
const EXITS: [&str; 5] = [
    "proc_exit",
    "wasi:cli/exit@0.2#exit",
    "wasi:cli/exit@0.2#exit-with-code",
    "wasi:cli/exit@0.3#exit",
    "wasi:cli/exit@0.3#exit-with-code",
];

/// The refusal of an import that has another type.
fn signature(import: &Import<'_>) -> WasiError {
    WasiError::Signature { name: format!("{}.{}", import.module, import.name) }
}

/// Returns, with zeros for results, if the program has exited.
fn return_if_exited(function: &mut Function, exited: u32, kind: Option<&FuncType>) {
    function.instructions().global_get(exited).if_(wasm_encoder::BlockType::Empty);
    append_zeros(function, kind);
    function.instructions().return_().end();
}

/// Appends a constant's instructions.
fn append_constant(
    encoder: &mut ProgramEncoder<'_>,
    function: &mut Function,
    constant: &wasmparser::ConstExpr<'_>,
) -> Result<(), WasiError> {
    let mut operators = constant.get_operators_reader();
    while !operators.eof() {
        match operators.read()? {
            Operator::End => {}
            operator => {
                function.instruction(&encoder.instruction(operator)?);
            }
        }
    }
    Ok(())
}
