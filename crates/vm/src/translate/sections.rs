//! The sections after the code in an image: segments, types, functions, exports, globals, tables.

use super::function::Frame;
use crate::{
    error::TranslateErrorKind,
    image::{Footer, FunctionEntry, ImageWriter, NONE, Range},
    wasm::{Module, Refused, SegmentMode, data_segment, element_segment},
};

/// Why the rest could not be written: the module, met again, or the sink.
pub(super) enum Stop {
    Refused(Refused),
    Sink(TranslateErrorKind),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

impl From<TranslateErrorKind> for Stop {
    fn from(kind: TranslateErrorKind) -> Stop {
        Stop::Sink(kind)
    }
}

/// A function whose code is written: what the table of functions says of it beside its type.
pub(super) struct Placed {
    /// Where its code begins.
    pub(super) code: u32,
    pub(super) frame: Frame,
}

type Written<T> = Result<T, Stop>;

pub(super) fn write(
    module: &Module<'_>,
    functions: &[Placed],
    digest: &[u8; 32],
    writer: &mut ImageWriter<'_>,
) -> Written<Footer> {
    let code_end = writer.position();
    let memory = module.memory;
    Ok(Footer {
        data: data(module, writer)?,
        elements: elements(module, writer)?,
        types: types(module, writer)?,
        functions: function_table(module, functions, writer)?,
        exports: exports(module, writer)?,
        globals: globals(module, writer)?,
        tables: tables(module, writer)?,
        code_end,
        start: module.start.unwrap_or(NONE),
        pages_min: memory.map_or(0, |memory| memory.pages_min),
        pages_max: memory.and_then(|memory| memory.pages_max).unwrap_or(NONE),
        page_shift: memory.map_or(0, |memory| memory.page_shift as u32),
        memories: memory.is_some() as u32,
        digest: *digest,
    })
}

/// The bytes of all segments, then their descriptions: read twice instead of remembered.
fn data(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let count = module.data.count;
    let mut at = writer.position();
    let mut reader = module.reader(module.data.at);
    for _ in 0..count {
        writer.write(data_segment(&mut reader, module)?.1)?;
    }
    writer.align()?;
    let range = Range { at: writer.position(), count };
    let mut reader = module.reader(module.data.at);
    for _ in 0..count {
        let (address, bytes) = data_segment(&mut reader, module)?;
        for word in [address.is_some() as u32, address.unwrap_or(0), at, bytes.len() as u32] {
            writer.word(word)?;
        }
        at += bytes.len() as u32;
    }
    Ok(range)
}

fn elements(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let count = module.elements.count;
    let mut at = writer.position();
    let mut reader = module.reader(module.elements.at);
    for _ in 0..count {
        let segment = element_segment(&mut reader, module)?;
        for _ in 0..segment.items {
            writer.word(segment.item(&mut reader, module)?)?;
        }
    }
    let range = Range { at: writer.position(), count };
    let mut reader = module.reader(module.elements.at);
    for _ in 0..count {
        let segment = element_segment(&mut reader, module)?;
        for _ in 0..segment.items {
            segment.item(&mut reader, module)?;
        }
        let (mode, table, offset) = match segment.mode {
            SegmentMode::Passive => (0, 0, 0),
            SegmentMode::Active { table, offset } => (1, table, offset),
            SegmentMode::Declared => (2, 0, 0),
        };
        for word in [mode | table << 16, offset, at, segment.items] {
            writer.word(word)?;
        }
        at += segment.items * 4;
    }
    Ok(range)
}

fn types(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let mut at = writer.position();
    let bytes = |from: u32, count: u16| {
        module.bytes.get(from as usize..from as usize + count as usize).unwrap_or(&[])
    };
    for entry in &module.types {
        writer.write(bytes(entry.params_at, entry.params))?;
        writer.write(bytes(entry.results_at, entry.results))?;
    }
    writer.align()?;
    let range = Range { at: writer.position(), count: module.types.len() as u32 };
    for entry in &module.types {
        writer.word(at)?;
        writer.word(entry.params as u32 | (entry.results as u32) << 16)?;
        at += entry.params as u32 + entry.results as u32;
    }
    Ok(range)
}

fn function_table(
    module: &Module<'_>,
    functions: &[Placed],
    writer: &mut ImageWriter<'_>,
) -> Written<Range> {
    let range = Range { at: writer.position(), count: functions.len() as u32 };
    for (index, Placed { code, frame }) in functions.iter().enumerate() {
        let Some(entry) = module.type_of_function(index as u32) else { continue };
        let function = FunctionEntry {
            code: *code,
            frame_bytes: frame.frame_bytes,
            link: entry.link(),
            zeros: frame.zeros,
            canonical: entry.canonical,
            params: entry.params,
            results: entry.results,
        };
        writer.write(&function.to_bytes())?;
    }
    Ok(range)
}

fn exports(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let range = Range { at: writer.position(), count: module.exports.count };
    let mut reader = module.reader(module.exports.at);
    for _ in 0..range.count {
        let start = reader;
        let name = reader.name()?;
        let Ok(length) = u16::try_from(name.len()) else {
            return Ok(start.error(crate::error::Limit::Exports)?);
        };
        let kind = reader.byte()?;
        let index = reader.u32()?;
        writer.word(kind as u32 | (length as u32) << 16)?;
        writer.word(index)?;
        writer.write(name.as_bytes())?;
        writer.align()?;
    }
    Ok(range)
}

fn globals(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let range = Range { at: writer.position(), count: module.globals.len() as u32 };
    for global in &module.globals {
        writer.write(&global.initial.to_le_bytes())?;
        writer.word(global.value_type as u32 | (global.mutable as u32) << 8)?;
        writer.word(0)?;
    }
    Ok(range)
}

fn tables(module: &Module<'_>, writer: &mut ImageWriter<'_>) -> Written<Range> {
    let range = Range { at: writer.position(), count: module.tables.len() as u32 };
    for table in &module.tables {
        writer.word(table.element as u32)?;
        writer.word(table.min)?;
        writer.word(table.max.unwrap_or(NONE))?;
    }
    Ok(range)
}
