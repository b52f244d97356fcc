//! Instances that import from each other, as the suite's scripts make them: a call of another instance's
//! function is a host call, shared memories and globals are copied before and after.
//!
//! Runs on a bare machine as well: see `tests/device`.

use alloc::{
    borrow::ToOwned,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cell::{Cell, RefCell};

use tenure_vm::{
    ExportKind, FunctionIndex, FunctionType, HostFunctions, Image, Instance, InstanceConfig,
    Limits, MemoryType, Outcome, StartError, TableType, Value, ValueType, translate,
};

/// Why a directive did not do what it says; the text is for whoever reads the test's output.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(#[allow(dead_code)] String),
    Trap(String),
}

/// The meaning of a host number.
#[derive(Clone)]
enum HostFunction {
    /// Prints, says the suite; nothing to see here.
    Print,
    /// A function of another instance.
    Of { instance: usize, function: FunctionIndex },
}

struct Linked {
    image: Vec<u8>,
    instance: Instance,
    host: Vec<HostFunction>,
    /// Instances that share a memory have the same number here.
    memory: Option<usize>,
    /// Mutable globals of others: own number, instance, number there.
    globals: Vec<(u32, usize, u32)>,
}

pub(crate) struct Linker {
    instances: Vec<Linked>,
    names: BTreeMap<String, usize>,
    registered: BTreeMap<String, usize>,
    current: Option<usize>,
    slice: u64,
}

/// Answers the translator's questions, and remembers the answers.
struct Imports<'l> {
    linker: &'l Linker,
    functions: RefCell<Vec<HostFunction>>,
    memory: RefCell<Option<Option<usize>>>,
    globals: RefCell<Vec<(u32, usize, u32)>>,
    globals_seen: Cell<u32>,
}

const SPECTEST_PRINTS: [(&str, &[ValueType]); 7] = [
    ("print", &[]),
    ("print_i32", &[ValueType::I32]),
    ("print_i64", &[ValueType::I64]),
    ("print_f32", &[ValueType::F32]),
    ("print_f64", &[ValueType::F64]),
    ("print_i32_f32", &[ValueType::I32, ValueType::F32]),
    ("print_f64_f64", &[ValueType::F64, ValueType::F64]),
];

impl Imports<'_> {
    fn export(&self, module: &str, name: &str) -> Option<(usize, ExportKind)> {
        let index = *self.linker.registered.get(module)?;
        let image = Image::parse(&self.linker.instances[index].image).ok()?;
        let export = image.exports().find(|export| export.name == name)?;
        Some((index, export.kind))
    }

    fn limits_fit(given: (u32, Option<u32>), asked: (u32, Option<u32>)) -> bool {
        given.0 >= asked.0
            && match (given.1, asked.1) {
                (_, None) => true,
                (Some(given), Some(asked)) => given <= asked,
                (None, Some(_)) => false,
            }
    }
}

impl HostFunctions for Imports<'_> {
    fn resolve(&self, module: &str, name: &str, signature: &FunctionType<'_>) -> Option<u16> {
        let function = if module == "spectest" {
            let (_, params) = SPECTEST_PRINTS.iter().find(|(known, _)| *known == name)?;
            signature.is(params, &[]).then_some(HostFunction::Print)?
        } else {
            let (instance, kind) = self.export(module, name)?;
            let ExportKind::Function(function) = kind else { return None };
            let image = Image::parse(&self.linker.instances[instance].image).ok()?;
            if image.signature(function)? != *signature {
                return None;
            }
            HostFunction::Of { instance, function }
        };
        let mut functions = self.functions.borrow_mut();
        functions.push(function);
        Some(functions.len() as u16 - 1)
    }

    fn global(&self, module: &str, name: &str, _: ValueType, mutable: bool) -> Option<Value> {
        let own = self.globals_seen.replace(self.globals_seen.get() + 1);
        if module == "spectest" {
            return Some(match name {
                _ if mutable => return None,
                "global_i32" => Value::I32(666),
                "global_i64" => Value::I64(666),
                "global_f32" => Value::F32(666.6f32.to_bits()),
                "global_f64" => Value::F64(666.6f64.to_bits()),
                _ => return None,
            });
        }
        let (index, kind) = self.export(module, name)?;
        let ExportKind::Global(global) = kind else { return None };
        let linked = &self.linker.instances[index];
        let image = Image::parse(&linked.image).ok()?;
        if image.is_global_mutable(global)? != mutable {
            return None;
        }
        if mutable {
            self.globals.borrow_mut().push((own, index, global));
        }
        linked.instance.global(&image, global)
    }

    fn memory(&self, module: &str, name: &str, asked: &MemoryType) -> Option<MemoryType> {
        let (given, shared) = if module == "spectest" {
            (name == "memory").then_some(())?;
            (MemoryType { pages_min: 1, pages_max: Some(2), page_bytes: 65536 }, None)
        } else {
            let (index, kind) = self.export(module, name)?;
            (kind == ExportKind::Memory).then_some(())?;
            let linked = &self.linker.instances[index];
            let image = Image::parse(&linked.image).ok()?;
            let mut given = image.memory_type()?;
            given.pages_min = linked.instance.memory_pages();
            (given, linked.memory)
        };
        let fits = given.page_bytes == asked.page_bytes
            && Self::limits_fit(
                (given.pages_min, given.pages_max),
                (asked.pages_min, asked.pages_max),
            );
        fits.then(|| {
            *self.memory.borrow_mut() = Some(shared);
            given
        })
    }

    fn table(&self, module: &str, name: &str, asked: &TableType) -> Option<TableType> {
        let given = if module == "spectest" {
            (name == "table").then_some(())?;
            TableType { element: ValueType::FuncRef, min: 10, max: Some(20) }
        } else {
            let (index, kind) = self.export(module, name)?;
            let ExportKind::Table(table) = kind else { return None };
            let linked = &self.linker.instances[index];
            let image = Image::parse(&linked.image).ok()?;
            let mut given = image.table_type(table)?;
            given.min = linked.instance.table_size(table)?;
            given
        };
        let fits = given.element == asked.element
            && Self::limits_fit((given.min, given.max), (asked.min, asked.max));
        fits.then_some(given)
    }
}

impl Linker {
    pub(crate) fn new() -> Linker {
        Linker {
            instances: Vec::new(),
            names: BTreeMap::new(),
            registered: BTreeMap::new(),
            current: None,
            slice: 1,
        }
    }

    pub(crate) fn validate(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.image(bytes).map(drop)
    }

    /// Translates a module; what its imports turned out to be.
    fn image<'l>(&'l self, bytes: &[u8]) -> Result<(Vec<u8>, Imports<'l>), Failure> {
        let mut image = Vec::new();
        let imports = Imports {
            linker: self,
            functions: RefCell::default(),
            memory: RefCell::default(),
            globals: RefCell::default(),
            globals_seen: Cell::new(0),
        };
        let limits = Limits { function_bytes: 8 << 20, ..Limits::widest() };
        translate(bytes, &imports, &limits, &mut image)
            .map_err(|error| Failure::Refused(error.to_string()))?;
        Image::parse(&image).map_err(|error| panic!("own image refused: {error}")).map(drop)?;
        Ok((image, imports))
    }

    pub(crate) fn instantiate(
        &mut self,
        name: Option<String>,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (image, imports) = self.image(bytes)?;
        let (host, shared) = (imports.functions.into_inner(), imports.memory.into_inner());
        let globals = imports.globals.into_inner();
        let view = Image::parse(&image).expect("parsed before");
        let stack_bytes = 256 * 1024 + view.fixed_bytes() as usize;
        let config = InstanceConfig { stack_bytes, memory_bytes_max: 1 << 29 };
        let instance = Instance::new_lazy(&view, &config).map_err(|error| match error {
            StartError::DataOutOfBounds => Failure::Trap("out of bounds memory access".into()),
            StartError::ElementsOutOfBounds => Failure::Trap("out of bounds table access".into()),
            other => Failure::Refused(other.to_string()),
        })?;
        let index = self.instances.len();
        let busy = instance.is_busy();
        let memory = match shared {
            Some(Some(group)) => Some(group),
            _ => Some(index),
        };
        self.instances.push(Linked { image, instance, host, memory, globals });
        if let Some(Some(group)) = shared {
            self.join_memory(index, group);
        }
        if busy {
            self.finish(index)?;
        }
        self.current = Some(index);
        if let Some(name) = name {
            self.names.insert(name, index);
        }
        Ok(())
    }

    /// A new instance that imports a memory sees its contents, under its own data.
    fn join_memory(&mut self, index: usize, group: usize) {
        let owner = self.instances[group].instance.memory().to_vec();
        let linked = &mut self.instances[index];
        let own = linked.instance.memory().to_vec();
        if let Some(all) = linked.instance.memory_range_mut(0, owner.len().max(own.len()) as u32) {
            for (at, byte) in all.iter_mut().enumerate() {
                let written = own.get(at).copied().unwrap_or(0);
                *byte = if written != 0 { written } else { owner.get(at).copied().unwrap_or(0) };
            }
        }
        self.share_memory(index);
    }

    /// Copies an instance's memory to those that share it.
    fn share_memory(&mut self, index: usize) {
        let Some(group) = self.instances[index].memory else { return };
        let sharing: Vec<usize> = (0..self.instances.len())
            .filter(|&other| other != index && self.instances[other].memory == Some(group))
            .collect();
        if sharing.is_empty() {
            return;
        }
        let bytes = self.instances[index].instance.memory().to_vec();
        let pages = self.instances[index].instance.memory_pages();
        for other in sharing {
            let linked = &mut self.instances[other];
            let image = Image::parse(&linked.image).expect("parsed before");
            let more = pages.saturating_sub(linked.instance.memory_pages());
            linked.instance.grow_memory(&image, more);
            if let Some(range) = linked.instance.memory_range_mut(0, bytes.len() as u32) {
                range.copy_from_slice(&bytes);
            }
        }
    }

    /// Reads other instances' variables before, and writes them after, the instance runs.
    fn fetch_globals(&mut self, index: usize) {
        for (own, other, theirs) in self.instances[index].globals.clone() {
            let value = self.value_of_global(other, theirs);
            self.set_global(index, own, value);
        }
    }

    fn store_globals(&mut self, index: usize) {
        for (own, other, theirs) in self.instances[index].globals.clone() {
            let value = self.value_of_global(index, own);
            self.set_global(other, theirs, value);
        }
    }

    fn value_of_global(&self, index: usize, global: u32) -> Option<Value> {
        let linked = &self.instances[index];
        let image = Image::parse(&linked.image).expect("parsed before");
        linked.instance.global(&image, global)
    }

    fn set_global(&mut self, index: usize, global: u32, value: Option<Value>) {
        let linked = &mut self.instances[index];
        let image = Image::parse(&linked.image).expect("parsed before");
        assert!(value.is_some_and(|value| linked.instance.set_global(&image, global, value)));
    }

    pub(crate) fn register(&mut self, name: &str, module: Option<&str>) {
        if let Some(index) = self.find(module) {
            self.registered.insert(name.to_owned(), index);
        }
    }

    fn find(&self, module: Option<&str>) -> Option<usize> {
        match module {
            Some(name) => self.names.get(name).copied(),
            None => self.current,
        }
    }

    pub(crate) fn global(&mut self, module: Option<&str>, name: &str) -> Result<Value, Failure> {
        let missing = || Failure::Refused("no such global".into());
        let found = self.find(module).ok_or_else(missing)?;
        self.fetch_globals(found);
        let linked = &self.instances[found];
        let image = Image::parse(&linked.image).expect("parsed before");
        let export = image.exports().find(|export| export.name == name).ok_or_else(missing)?;
        let ExportKind::Global(index) = export.kind else { return Err(missing()) };
        linked.instance.global(&image, index).ok_or_else(missing)
    }

    pub(crate) fn invoke(
        &mut self,
        module: Option<&str>,
        name: &str,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Failure> {
        let missing = || Failure::Refused(format!("no function {name}"));
        let index = self.find(module).ok_or_else(missing)?;
        let image = Image::parse(&self.instances[index].image).expect("parsed before");
        let function = image.function(name).ok_or_else(missing)?.index;
        self.call(index, function, arguments)
    }

    fn call(
        &mut self,
        index: usize,
        function: FunctionIndex,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Failure> {
        let linked = &mut self.instances[index];
        let image = Image::parse(&linked.image).expect("parsed before");
        linked
            .instance
            .prepare(&image, function, arguments)
            .map_err(|error| Failure::Refused(error.to_string()))?;
        self.fetch_globals(index);
        let outcome = self.finish(index);
        self.share_memory(index);
        self.store_globals(index);
        outcome
    }

    /// Runs in slices of changing size until the call is done.
    fn finish(&mut self, index: usize) -> Result<Vec<Value>, Failure> {
        loop {
            self.slice =
                self.slice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut fuel = match self.slice >> 61 {
                0 => 1,
                1..=3 => self.slice >> 50 & 1023,
                _ => 1 << 16,
            };
            let linked = &mut self.instances[index];
            let token = Image::parse(&linked.image).expect("parsed before").token();
            let image = Image::reopen(&linked.image, &token).expect("parsed before");
            match linked.instance.run(&image, &mut fuel) {
                Outcome::Done => return Ok(linked.instance.results(&image).collect()),
                Outcome::OutOfFuel => {}
                Outcome::Trap(trap) => return Err(Failure::Trap(trap.kind.to_string())),
                Outcome::HostCall { function } => match linked.host[function as usize].clone() {
                    HostFunction::Print => {
                        linked.instance.finish_host_call(&[]).expect("no results")
                    }
                    HostFunction::Of { instance, function } => {
                        self.call_other(index, instance, function)?
                    }
                },
            }
        }
    }

    fn call_other(
        &mut self,
        index: usize,
        other: usize,
        function: FunctionIndex,
    ) -> Result<(), Failure> {
        self.share_memory(index);
        let image = Image::parse(&self.instances[other].image).expect("parsed before");
        let types = image.signature(function).expect("resolved before");
        let slots = self.instances[index].instance.host_arguments();
        let arguments: Vec<Value> = types
            .params()
            .zip(slots)
            .map(|(value_type, &slot)| match value_type {
                ValueType::I32 => Value::I32(slot as i32),
                ValueType::I64 => Value::I64(slot as i64),
                ValueType::F32 => Value::F32(slot as u32),
                ValueType::F64 => Value::F64(slot),
                ValueType::FuncRef => Value::FuncRef((slot as u32).checked_sub(1)),
                ValueType::ExternRef => Value::ExternRef((slot as u32).checked_sub(1)),
            })
            .collect();
        let outcome = self.call(other, function, &arguments);
        let instance = &mut self.instances[index].instance;
        match outcome {
            Ok(results) => instance.finish_host_call(&results).expect("types agree"),
            Err(failure) => {
                instance.abandon();
                return Err(failure);
            }
        }
        Ok(())
    }
}
