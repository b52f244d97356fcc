//! The part of a module that its translation remembers between bodies: types and counts, no names, no code.

use alloc::vec::Vec;

use super::{
    constant,
    reader::{Checked, Reader, Verdict},
    types::reference_type,
};
use crate::{
    error::{Invalid, Malformed},
    value::{FunctionType, ValueType},
};

/// log2 of the size of a page, unless a custom one is declared.
pub(crate) const PAGE_SHIFT: u8 = 16;

/// Where a type's parameters and results stand in the module's bytes.
#[derive(Clone, Copy)]
pub(crate) struct TypeEntry {
    pub(crate) params_at: u32,
    pub(crate) params: u16,
    pub(crate) results_at: u32,
    pub(crate) results: u16,
    /// The first type equal to this one: two functions have the same type if these agree.
    pub(crate) canonical: u16,
}

impl TypeEntry {
    /// Byte offset of the return link in the frame of a function of this type, behind parameters and results.
    pub(crate) fn link(&self) -> u16 {
        self.params.max(self.results) * 8
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) element: ValueType,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) pages_min: u32,
    pub(crate) pages_max: Option<u32>,
    pub(crate) page_shift: u8,
}

#[derive(Clone, Copy)]
pub(crate) struct Global {
    pub(crate) value_type: ValueType,
    pub(crate) mutable: bool,
    /// The value it starts with, as a slot.
    pub(crate) initial: u64,
}

/// A section met before it can be written: how many entries, and where they begin.
#[derive(Clone, Copy, Default)]
pub(crate) struct Section {
    pub(crate) count: u32,
    pub(crate) at: usize,
}

/// A module without its code.
pub(crate) struct Module<'a> {
    pub(crate) bytes: &'a [u8],
    verdict: &'a Verdict,
    pub(crate) types: Vec<TypeEntry>,
    /// The most parameters or results of a type.
    pub(crate) arity_max: usize,
    /// Type of each function, imported ones first.
    pub(crate) functions: Vec<u16>,
    /// Host's number of each imported function.
    pub(crate) imports: Vec<u16>,
    pub(crate) tables: Vec<Table>,
    pub(crate) memory: Option<Memory>,
    pub(crate) globals: Vec<Global>,
    pub(crate) imported_globals: u32,
    pub(crate) start: Option<u32>,
    pub(crate) exports: Section,
    pub(crate) elements: Section,
    pub(crate) element_types: Vec<ValueType>,
    pub(crate) code: Section,
    pub(crate) data: Section,
    pub(crate) data_count: Option<u32>,
    /// Bit set of the functions that `ref.func` may name (wasm 2.0 §3.4.10).
    pub(crate) declared: Vec<u32>,
}

impl<'a> Module<'a> {
    pub(crate) fn new(bytes: &'a [u8], verdict: &'a Verdict) -> Module<'a> {
        Module {
            bytes,
            verdict,
            types: Vec::new(),
            arity_max: 0,
            functions: Vec::new(),
            imports: Vec::new(),
            tables: Vec::new(),
            memory: None,
            globals: Vec::new(),
            imported_globals: 0,
            start: None,
            exports: Section::default(),
            elements: Section::default(),
            element_types: Vec::new(),
            code: Section::default(),
            data: Section::default(),
            data_count: None,
            declared: Vec::new(),
        }
    }

    pub(crate) fn reader(&self, at: usize) -> Reader<'a> {
        Reader::new(self.bytes, self.verdict).at(at)
    }

    pub(crate) fn type_entry(&self, index: u32) -> Option<TypeEntry> {
        self.types.get(index as usize).copied()
    }

    pub(crate) fn function_type(&self, entry: TypeEntry) -> FunctionType<'a> {
        let bytes = |at: u32, length: u16| {
            self.bytes.get(at as usize..at as usize + length as usize).unwrap_or(&[])
        };
        FunctionType::new(
            bytes(entry.params_at, entry.params),
            bytes(entry.results_at, entry.results),
        )
    }

    pub(crate) fn type_of_function(&self, function: u32) -> Option<TypeEntry> {
        let index = *self.functions.get(function as usize)?;
        self.type_entry(index as u32)
    }

    /// Notes that `ref.func` may name a function, which there is.
    pub(crate) fn declare(&mut self, function: u32, reader: &Reader<'_>) -> Checked<()> {
        if self.declared.is_empty() {
            let words = self.functions.len().div_ceil(32);
            reader.reserve(&mut self.declared, words)?;
            self.declared.resize(words, 0);
        }
        self.declared[function as usize / 32] |= 1 << (function % 32);
        Ok(())
    }

    pub(crate) fn is_declared(&self, function: u32) -> bool {
        self.declared
            .get(function as usize / 32)
            .is_some_and(|word| word >> (function % 32) & 1 != 0)
    }
}

/// How an element segment is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentMode {
    Passive,
    Declared,
    /// Copied to a table at a start index when an instance is made.
    Active {
        table: u32,
        offset: u32,
    },
}

/// An element segment whose items are still to be read.
pub(crate) struct ElementSegment {
    pub(crate) mode: SegmentMode,
    pub(crate) element: ValueType,
    pub(crate) items: u32,
    expressions: bool,
}

impl ElementSegment {
    /// The next item, as a slot: a function's number plus one, or zero for null.
    pub(crate) fn item(&self, reader: &mut Reader<'_>, module: &Module<'_>) -> Checked<u32> {
        if self.expressions {
            return Ok(constant(reader, self.element, module)? as u32);
        }
        let function = reader.u32()?;
        if function as usize >= module.functions.len() {
            return reader.error(Invalid::UnknownFunction);
        }
        Ok(function + 1)
    }
}

/// Reads the head of an element segment (wasm 2.0 §5.5.12).
pub(crate) fn element_segment(
    reader: &mut Reader<'_>,
    module: &Module<'_>,
) -> Checked<ElementSegment> {
    let flags = reader.u32()?;
    if flags > 7 {
        return reader.error(Malformed::ElementKind);
    }
    let (passive, explicit, expressions) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    let mode = if passive {
        if explicit { SegmentMode::Declared } else { SegmentMode::Passive }
    } else {
        let table = if explicit { reader.u32()? } else { 0 };
        if table as usize >= module.tables.len() {
            return reader.error(Invalid::UnknownTable);
        }
        let offset = constant(reader, ValueType::I32, module)? as u32;
        SegmentMode::Active { table, offset }
    };
    let mut element = ValueType::FuncRef;
    if passive || explicit {
        if expressions {
            element = reference_type(reader)?;
        } else if reader.byte()? != 0 {
            return reader.error(Malformed::ElementKind);
        }
    }
    if let SegmentMode::Active { table, .. } = mode
        && module.tables[table as usize].element != element
    {
        return reader.error(Invalid::TypeMismatch);
    }
    Ok(ElementSegment { mode, element, items: reader.u32()?, expressions })
}
