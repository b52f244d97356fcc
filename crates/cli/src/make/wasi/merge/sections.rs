//! The sections of the module in the making.

use std::collections::BTreeMap;

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    ConstExpr, CustomSection, DataCountSection, DataSection, ElementSection, Encode, ExportKind,
    ExportSection, GlobalSection, GlobalType, Instruction, MemorySection, MemoryType, Module,
    NameMap, NameSection, StartSection, TableSection, ValType,
};
use wasmparser::{DataKind, ExternalKind, Operator};

use super::{Merger, Moved, Program, RUN, START_FUNCTION, WasiError};

impl Merger<'_> {
    pub(super) fn finish(mut self, settings: &[u8]) -> Result<Vec<u8>, WasiError> {
        for (kind, _, function) in &self.helpers {
            self.functions.function(*kind);
            self.code.function(function);
        }
        let mut head = Vec::new();
        self.code.len().encode(&mut head);
        self.moved.shift(head.len() as u32);
        let (data, data_count) = self.data(settings)?;
        let mut module = Module::new();
        module.section(self.types.section()).section(&self.imports).section(&self.functions);
        let mut encoder = self.program_encoder();
        let mut tables = TableSection::new();
        for table in &self.program.tables {
            encoder.parse_table(&mut tables, table.clone())?;
        }
        module.section(&tables).section(&self.memory_section()).section(&self.globals()?);
        module.section(&self.exports()?);
        if self.command.is_none() {
            let start = self.helpers_at + self.helpers.len() as u32 - 1;
            module.section(&StartSection { function_index: start });
        }
        let mut elements = ElementSection::new();
        for element in &self.program.elements {
            encoder.parse_element(&mut elements, element.clone())?;
        }
        module.section(&elements).section(&DataCountSection { count: data_count });
        module.section(&self.code).section(&data);
        self.add_customs(&mut module);
        Ok(module.finish())
    }

    fn memory_section(&self) -> MemorySection {
        let bytes =
            |pages: u64| u64::from(self.places.base) + (pages << self.memory.page_bytes_log2);
        let most = self.memory.pages_max.map(|pages| bytes(pages).min(u32::MAX.into()));
        let mut section = MemorySection::new();
        section.memory(MemoryType {
            minimum: bytes(self.pages().into()),
            maximum: most,
            memory64: false,
            shared: false,
            // Pages of one byte: the program's pages are what it makes of them.
            page_size_log2: Some(0),
        });
        section
    }

    fn globals(&self) -> Result<GlobalSection, WasiError> {
        let mut globals = GlobalSection::new();
        let mut encoder = self.program_encoder();
        for global in &self.program.globals {
            encoder.parse_global(&mut globals, global.clone())?;
        }
        for global in &self.adapter.module.globals {
            reencode::RoundtripReencoder.parse_global(&mut globals, global.clone())?;
        }
        let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        for value in [self.pages() as i32, 0, 0] {
            globals.global(kind, &ConstExpr::i32_const(value));
        }
        Ok(globals)
    }

    /// A command offers its runs, and a library its functions.
    fn exports(&self) -> Result<ExportSection, WasiError> {
        let mut exports = ExportSection::new();
        let mut encoder = self.program_encoder();
        for export in &self.program.exports {
            let is_offered = self.command.is_none() && !Program::is_of_the_abi(export.name);
            if is_offered || export.kind == ExternalKind::Memory {
                encoder.parse_export(&mut exports, *export)?;
            }
        }
        for (index, (_, name, _)) in (self.helpers_at..).zip(&self.helpers) {
            if name == RUN || name == START_FUNCTION {
                exports.export(name, ExportKind::Func, index);
            }
        }
        Ok(exports)
    }

    /// The program's data, the adapter's and the settings.
    fn data(&self, settings: &[u8]) -> Result<(DataSection, u32), WasiError> {
        let mut section = DataSection::new();
        for data in &self.program.data {
            match &data.kind {
                // Each run begins with them.
                DataKind::Active { offset_expr, .. } if self.command.is_none() => {
                    let place = self.moved_place(offset_expr)?;
                    section.active(0, &place, data.data.iter().copied());
                }
                _ => {
                    section.passive(data.data.iter().copied());
                }
            }
        }
        for data in &self.adapter.module.data {
            reencode::RoundtripReencoder.parse_data(&mut section, data.clone())?;
        }
        let place = ConstExpr::i32_const(self.places.settings as i32);
        section.active(0, &place, settings.iter().copied());
        let count = section.len();
        Ok((section, count))
    }

    /// The place of a segment, moved up.
    fn moved_place(&self, place: &wasmparser::ConstExpr<'_>) -> Result<ConstExpr, WasiError> {
        let mut operators = place.get_operators_reader();
        if let Operator::I32Const { value } = operators.read()?
            && let Operator::End = operators.read()?
        {
            return Ok(ConstExpr::i32_const(value.wrapping_add(self.places.base as i32)));
        }
        let mut bytes = Vec::new();
        let mut encoder = self.program_encoder();
        let mut operators = place.get_operators_reader();
        while !operators.eof() {
            match operators.read()? {
                Operator::End => {}
                operator => encoder.instruction(operator)?.encode(&mut bytes),
            }
        }
        Instruction::I32Const(self.places.base as i32).encode(&mut bytes);
        Instruction::I32Add.encode(&mut bytes);
        Ok(ConstExpr::raw(bytes))
    }

    /// Names, where the code was, and what debuggers want to know.
    fn add_customs(&self, module: &mut Module) {
        let names = self.names();
        let mut functions = NameMap::new();
        for (index, name) in &names {
            functions.append(*index, name);
        }
        let mut section = NameSection::new();
        section.functions(&functions);
        let mut has_lines = false;
        let mut earlier = None;
        for (name, data) in &self.program.customs {
            match *name {
                "name" => {}
                Moved::SECTION => earlier = Some(Moved::from_bytes(data)),
                name => {
                    has_lines |= name.starts_with(".debug");
                    module.section(&CustomSection { name: name.into(), data: (*data).into() });
                }
            }
        }
        if has_lines {
            let moved = earlier.map(|earlier| self.moved.behind(&earlier));
            let data = moved.as_ref().unwrap_or(&self.moved).to_bytes();
            module.section(&CustomSection { name: Moved::SECTION.into(), data: data.into() });
        }
        module.section(&section);
    }

    fn names(&self) -> BTreeMap<u32, String> {
        let mut names = BTreeMap::new();
        for (index, name) in self.adapter.module.function_names() {
            if let Some(index) = self.adapter_functions.get(&index) {
                names.insert(*index, name);
            }
        }
        for (index, name) in self.program.function_names() {
            if let Some(index) = self.program_functions.get(index as usize) {
                names.insert(*index, name);
            }
        }
        for (index, (_, name, _)) in (self.helpers_at..).zip(&self.helpers) {
            names.insert(index, name.clone());
        }
        names
    }
}
