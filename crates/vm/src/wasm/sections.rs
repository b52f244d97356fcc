//! The sections of a module, in order (wasm 2.0 §5.5).

use super::{
    constant::constant,
    module::{Global, Memory, Module, PAGE_SHIFT, Section, Table, TypeEntry, element_segment},
    reader::{Checked, Reader, Verdict},
    types::{reference_type, value_type},
};
use crate::{
    error::{Feature, Invalid, Limit, Malformed, TranslateErrorKind},
    limits::Limits,
    translate::{HostFunctions, MemoryType, TableType},
    value::{Value, ValueType},
};

const VERSION: [u8; 4] = [1, 0, 0, 0];

/// Ids in the order in which sections must come; the data count stands before the code.
const ORDER: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11];

/// Reads and checks everything but function bodies and the contents of data segments; `body` is called
/// for the code section, when all that bodies may refer to is known.
pub(crate) fn read_module<'a>(
    bytes: &'a [u8],
    verdict: &'a Verdict,
    host: &dyn HostFunctions,
    limits: &Limits,
    bodies: &mut dyn FnMut(&Module<'a>, Reader<'a>) -> Checked<()>,
) -> Checked<Module<'a>> {
    let mut reader = Reader::new(bytes, verdict);
    let mut module = Module::new(bytes, verdict);
    if bytes.len() > limits.module_bytes {
        return reader.error(Limit::ModuleBytes);
    }
    if reader.take(4)? != b"\0asm" {
        return reader.at(0).error(Malformed::Magic);
    }
    if reader.take(4)? != VERSION {
        return reader.at(4).error(Malformed::Version);
    }
    let mut next = 0;
    while !reader.is_empty() {
        let start = reader;
        let id = reader.byte()?;
        let length = reader.u32()? as usize;
        let mut section = reader.part(length)?;
        if id == 0 {
            section.name()?;
            continue;
        }
        let Some(place) = ORDER.iter().position(|&known| known == id) else {
            return start.error(if id == 13 {
                TranslateErrorKind::Unsupported(Feature::Exceptions)
            } else {
                Malformed::SectionId.into()
            });
        };
        if place < next {
            return start.error(Malformed::SectionOrder);
        }
        next = place + 1;
        if id > 9 && id != 12 {
            check_before_code(&module, &section, id)?;
        }
        read_section(id, &mut section, &mut module, host, limits, bodies)?;
        if id != 10 && !section.is_empty() {
            return section.error(Malformed::SectionSize);
        }
    }
    check_complete(&module, &reader)?;
    Ok(module)
}

fn read_section<'a>(
    id: u8,
    section: &mut Reader<'a>,
    module: &mut Module<'a>,
    host: &dyn HostFunctions,
    limits: &Limits,
    bodies: &mut dyn FnMut(&Module<'a>, Reader<'a>) -> Checked<()>,
) -> Checked<()> {
    if id == 8 {
        return start_section(section, module);
    }
    let count = section.u32()?;
    let entries = Section { count, at: section.offset() };
    match id {
        1 => types(section, module, count, limits),
        2 => imports(section, module, count, host, limits),
        3 => functions(section, module, count, limits),
        4 => tables(section, module, count, limits),
        5 => memories(section, module, count, limits),
        6 => globals(section, module, count, limits),
        7 => {
            module.exports = entries;
            exports(section, module, count, limits)
        }
        9 => {
            module.elements = entries;
            elements(section, module, count, limits)
        }
        12 => {
            module.data_count = Some(count);
            Ok(())
        }
        10 => {
            module.code = entries;
            bodies(module, *section)
        }
        _ => {
            module.data = entries;
            data(section, module, count, limits)
        }
    }
}

fn check_before_code(module: &Module<'_>, section: &Reader<'_>, id: u8) -> Checked<()> {
    if id == 11 && module.code.count == 0 && module.functions.len() > module.imports.len() {
        return section.error(Malformed::CodeCount);
    }
    Ok(())
}

fn check_complete(module: &Module<'_>, reader: &Reader<'_>) -> Checked<()> {
    if module.code.count as usize != module.functions.len() - module.imports.len() {
        return reader.error(Malformed::CodeCount);
    }
    if module.data_count.is_some_and(|count| count != module.data.count) {
        return reader.error(Malformed::DataCount);
    }
    Ok(())
}

fn limited(reader: &Reader<'_>, count: u64, max: u64, limit: Limit) -> Checked<()> {
    if count > max { reader.error(limit) } else { Ok(()) }
}

fn types(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    limited(reader, count as u64, limits.types.min(u16::MAX as u32) as u64, Limit::Types)?;
    reader.reserve(&mut module.types, count as usize)?;
    for index in 0..count {
        match reader.byte()? {
            0x60 => {}
            0x4E..=0x50 | 0x5E | 0x5F => return reader.error(Feature::GarbageCollection),
            0x5D => return reader.error(Feature::StackSwitching),
            _ => return reader.error(Malformed::FunctionType),
        }
        let (params_at, params) = type_list(reader, limits)?;
        let (results_at, results) = type_list(reader, limits)?;
        let mut entry =
            TypeEntry { params_at, params, results_at, results, canonical: index as u16 };
        let signature = module.function_type(entry);
        if let Some(same) =
            module.types.iter().find(|&&other| module.function_type(other) == signature)
        {
            entry.canonical = same.canonical;
        }
        module.arity_max = module.arity_max.max(params.max(results) as usize);
        module.types.push(entry);
    }
    Ok(())
}

fn type_list(reader: &mut Reader<'_>, limits: &Limits) -> Checked<(u32, u16)> {
    let count = reader.u32()?;
    limited(reader, count as u64, limits.locals.min(u16::MAX as u32) as u64, Limit::Locals)?;
    let at = reader.offset() as u32;
    for _ in 0..count {
        value_type(reader)?;
    }
    Ok((at, count as u16))
}

/// The type of a block: by index, or of at most one result (wasm 2.0 §5.4.1).
pub(crate) fn block_type(reader: &mut Reader<'_>, module: &Module<'_>) -> Checked<TypeEntry> {
    let none = TypeEntry { params_at: 0, params: 0, results_at: 0, results: 0, canonical: 0 };
    match reader.peek() {
        Some(0x40) => {
            reader.byte()?;
            Ok(none)
        }
        // A single byte with the sign bit set is a value type.
        Some(byte) if byte & 0xC0 == 0x40 => {
            let results_at = reader.offset() as u32;
            value_type(reader)?;
            Ok(TypeEntry { results_at, results: 1, ..none })
        }
        _ => {
            let start = *reader;
            let index = reader.i33()?;
            if index < 0 {
                return start.error(Malformed::BlockType);
            }
            match u32::try_from(index).ok().and_then(|index| module.type_entry(index)) {
                Some(entry) => Ok(entry),
                None => start.error(Invalid::UnknownType),
            }
        }
    }
}

fn imports(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    host: &dyn HostFunctions,
    limits: &Limits,
) -> Checked<()> {
    limited(reader, count as u64, limits.imports as u64, Limit::Imports)?;
    for _ in 0..count {
        let start = *reader;
        let from = reader.name()?;
        let name = reader.name()?;
        match reader.byte()? {
            0 => {
                let index = function_type_index(reader, module)?;
                let signature = module.function_type(module.types[index as usize]);
                let Some(number) = host.resolve(from, name, &signature) else {
                    return start.error(TranslateErrorKind::UnknownImport);
                };
                start.reserve(&mut module.functions, 1)?;
                module.functions.push(index);
                start.reserve(&mut module.imports, 1)?;
                module.imports.push(number);
            }
            1 => {
                let declared = table_type(reader, limits)?;
                let asked =
                    TableType { element: declared.element, min: declared.min, max: declared.max };
                let Some(given) = host.table(from, name, &asked) else {
                    return start.error(Feature::ImportedTable);
                };
                start.reserve(&mut module.tables, 1)?;
                module.tables.push(Table {
                    element: given.element,
                    min: given.min,
                    max: given.max,
                });
            }
            2 => {
                let declared = memory_type(reader, limits)?;
                let asked = MemoryType {
                    pages_min: declared.pages_min,
                    pages_max: declared.pages_max,
                    page_bytes: 1 << declared.page_shift,
                };
                let Some(given) = host.memory(from, name, &asked) else {
                    return start.error(Feature::ImportedMemory);
                };
                let given = Memory {
                    pages_min: given.pages_min,
                    pages_max: given.pages_max,
                    page_shift: declared.page_shift,
                };
                add_memory(&start, module, given)?;
            }
            3 => {
                let value_type = value_type(reader)?;
                let mutable = mutability(reader)?;
                let given = host.global(from, name, value_type, mutable).filter(|value| {
                    // A function of another module has no number in this one.
                    value.value_type() == value_type && !matches!(value, Value::FuncRef(Some(_)))
                });
                let Some(value) = given else {
                    return start.error(Feature::ImportedGlobal);
                };
                let initial = value.to_slot();
                start.reserve(&mut module.globals, 1)?;
                module.globals.push(Global { value_type, mutable, initial });
                module.imported_globals += 1;
            }
            4 => return start.error(Feature::ImportedTag),
            _ => return start.error(Malformed::ImportKind),
        }
    }
    Ok(())
}

fn function_type_index(reader: &mut Reader<'_>, module: &Module<'_>) -> Checked<u16> {
    let index = reader.u32()?;
    if index as usize >= module.types.len() {
        return reader.error(Invalid::UnknownType);
    }
    Ok(index as u16)
}

fn functions(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    let all = count as u64 + module.functions.len() as u64;
    limited(reader, all, limits.functions.min(u16::MAX as u32) as u64, Limit::Functions)?;
    reader.reserve(&mut module.functions, count as usize)?;
    for _ in 0..count {
        let index = function_type_index(reader, module)?;
        module.functions.push(index);
    }
    Ok(())
}

/// Limits of a table or memory (wasm 2.0 §5.3.7): flags, minimum, maximum.
fn size_limits(reader: &mut Reader<'_>, memory: bool) -> Checked<(u8, u64, Option<u64>)> {
    let start = *reader;
    let flags = reader.byte()?;
    if flags & 2 != 0 && flags < 16 {
        return start.error(Feature::Threads);
    }
    if flags & 4 != 0 && flags < 16 {
        return start.error(Feature::Memory64);
    }
    if flags > 15 || (flags & 8 != 0 && !memory) {
        return start.error(Malformed::LimitsFlags);
    }
    let min = reader.u32()? as u64;
    let max = if flags & 1 != 0 { Some(reader.u32()? as u64) } else { None };
    Ok((flags, min, max))
}

fn table_type(reader: &mut Reader<'_>, limits: &Limits) -> Checked<Table> {
    let element = reference_type(reader)?;
    let (_, min, max) = size_limits(reader, false)?;
    if max.is_some_and(|max| min > max) {
        return reader.error(Invalid::LimitsOrder);
    }
    limited(reader, min, limits.table_elements as u64, Limit::TableElements)?;
    Ok(Table { element, min: min as u32, max: max.map(|max| max as u32) })
}

fn tables(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    for _ in 0..count {
        let all = module.tables.len() as u64 + 1;
        limited(reader, all, limits.tables as u64, Limit::Tables)?;
        // An initialiser follows the type (wasm 3.0 §5.5.7).
        if reader.peek() == Some(0x40) {
            return reader.error(Feature::FunctionReferences);
        }
        let table = table_type(reader, limits)?;
        reader.reserve(&mut module.tables, 1)?;
        module.tables.push(table);
    }
    Ok(())
}

fn memory_type(reader: &mut Reader<'_>, limits: &Limits) -> Checked<Memory> {
    let (flags, min, max) = size_limits(reader, true)?;
    let page_shift = if flags & 8 != 0 {
        match reader.u32()? {
            shift @ (0 | 16) => shift as u8,
            shift if shift < 64 => return reader.error(Invalid::PageSize),
            _ => return reader.error(Malformed::LimitsFlags),
        }
    } else {
        PAGE_SHIFT
    };
    if min.max(max.unwrap_or(0)) > (1 << 32) >> page_shift {
        return reader.error(Invalid::MemorySize);
    }
    if max.is_some_and(|max| min > max) {
        return reader.error(Invalid::LimitsOrder);
    }
    limited(reader, min << page_shift, limits.memory_bytes, Limit::MemoryBytes)?;
    Ok(Memory { pages_min: min as u32, pages_max: max.map(|max| max as u32), page_shift })
}

fn add_memory(reader: &Reader<'_>, module: &mut Module<'_>, memory: Memory) -> Checked<()> {
    if module.memory.is_some() {
        return reader.error(Feature::MultipleMemories);
    }
    module.memory = Some(memory);
    Ok(())
}

fn memories(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    for _ in 0..count {
        let memory = memory_type(reader, limits)?;
        add_memory(reader, module, memory)?;
    }
    Ok(())
}

fn mutability(reader: &mut Reader<'_>) -> Checked<bool> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => reader.error(Malformed::Mutability),
    }
}

fn globals(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    let all = count as u64 + module.globals.len() as u64;
    limited(reader, all, limits.globals.min(8191) as u64, Limit::Globals)?;
    reader.reserve(&mut module.globals, count as usize)?;
    for _ in 0..count {
        let value_type = value_type(reader)?;
        let mutable = mutability(reader)?;
        let initial = constant(reader, value_type, module)?;
        if value_type == ValueType::FuncRef && initial != 0 {
            module.declare(initial as u32 - 1, reader)?;
        }
        module.globals.push(Global { value_type, mutable, initial });
    }
    Ok(())
}

fn exports(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    limited(reader, count as u64, limits.exports as u64, Limit::Exports)?;
    let first = *reader;
    for index in 0..count {
        let start = *reader;
        let name = reader.name()?;
        let kind = reader.byte()?;
        let item = reader.u32()? as usize;
        match kind {
            0 if item >= module.functions.len() => return start.error(Invalid::UnknownFunction),
            0 => module.declare(item as u32, &start)?,
            1 if item >= module.tables.len() => return start.error(Invalid::UnknownTable),
            2 if item > 0 || module.memory.is_none() => return start.error(Invalid::UnknownMemory),
            3 if item >= module.globals.len() => return start.error(Invalid::UnknownGlobal),
            1..=3 => {}
            _ => return start.error(Malformed::ExportKind),
        }
        let mut earlier = first;
        for _ in 0..index {
            if earlier.name()? == name {
                return start.error(Invalid::DuplicateExport);
            }
            earlier.byte()?;
            earlier.u32()?;
        }
    }
    Ok(())
}

fn start_section(reader: &mut Reader<'_>, module: &mut Module<'_>) -> Checked<()> {
    let function = reader.u32()?;
    match module.type_of_function(function) {
        None => reader.error(Invalid::UnknownFunction),
        Some(entry) if entry.params != 0 || entry.results != 0 => {
            reader.error(Invalid::StartFunction)
        }
        Some(_) => {
            module.start = Some(function);
            Ok(())
        }
    }
}

fn elements(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    limited(reader, count as u64, limits.segments as u64, Limit::Segments)?;
    reader.reserve(&mut module.element_types, count as usize)?;
    for _ in 0..count {
        let segment = element_segment(reader, module)?;
        for _ in 0..segment.items {
            let item = segment.item(reader, module)?;
            if segment.element == ValueType::FuncRef && item != 0 {
                module.declare(item - 1, reader)?;
            }
        }
        module.element_types.push(segment.element);
    }
    Ok(())
}

/// Where an active data segment goes; `None` for a passive one (wasm 2.0 §5.5.14).
pub(crate) fn data_segment<'a>(
    reader: &mut Reader<'a>,
    module: &Module<'_>,
) -> Checked<(Option<u32>, &'a [u8])> {
    let start = *reader;
    let place = match reader.u32()? {
        1 => None,
        kind @ (0 | 2) => {
            let memory = if kind == 2 { reader.u32()? } else { 0 };
            if memory != 0 || module.memory.is_none() {
                return start.error(Invalid::UnknownMemory);
            }
            Some(constant(reader, ValueType::I32, module)? as u32)
        }
        _ => return start.error(Malformed::DataKind),
    };
    let length = reader.u32()? as usize;
    Ok((place, reader.take(length)?))
}

fn data(
    reader: &mut Reader<'_>,
    module: &mut Module<'_>,
    count: u32,
    limits: &Limits,
) -> Checked<()> {
    limited(reader, count as u64, limits.segments as u64, Limit::Segments)?;
    for _ in 0..count {
        data_segment(reader, module)?;
    }
    Ok(())
}
