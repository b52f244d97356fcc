//! From a module to an image: one pass that validates each body and emits its code.
//!
//! Memory in use at a time: per module 10 bytes a function, 16 a type, 16 a global and a few for each
//! table and element segment; for the body at hand one byte a local, 12 an operand, 48 an open block,
//! and its code, which leaves for the sink before the next body begins. A module for which the heap
//! has no room is refused.

mod arithmetic;
mod blocks;
mod branches;
mod code;
mod emitter;
mod float;
mod function;
mod instructions;
mod locals;
mod memory;
mod operands;
mod pieces;
mod sections;

use alloc::vec::Vec;

use crate::{
    error::{Limit, Malformed, TranslateError, TranslateErrorKind},
    image::{ImageSink, ImageWriter},
    isa,
    limits::Limits,
    value::{FunctionType, Value, ValueType},
    wasm::{self, Checked, Module, Reader, Refused, Verdict},
};
use function::{Buffers, Frame, Stop, translate_body};
use sections::Placed;

/// Decides which imports exist: asked during translation, for each import.
pub trait HostFunctions {
    /// The host's number of a function, as `Outcome::HostCall` will name it; `None` refuses the module.
    fn resolve(&self, module: &str, name: &str, signature: &FunctionType<'_>) -> Option<u16>;

    /// The value that an imported global starts with. A mutable one becomes the machine's own variable.
    /// By default there are none.
    fn global(
        &self,
        _module: &str,
        _name: &str,
        _value_type: ValueType,
        _mutable: bool,
    ) -> Option<Value> {
        None
    }

    /// Whether a machine that imports its memory is given one of its own, and how large. By default not.
    fn memory(&self, _module: &str, _name: &str, _declared: &MemoryType) -> Option<MemoryType> {
        None
    }

    /// Whether a machine that imports a table is given one of its own, and how large. By default not.
    fn table(&self, _module: &str, _name: &str, _declared: &TableType) -> Option<TableType> {
        None
    }
}

/// A host without any functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHostFunctions;

impl HostFunctions for NoHostFunctions {
    fn resolve(&self, _module: &str, _name: &str, _signature: &FunctionType<'_>) -> Option<u16> {
        None
    }
}

/// Size of a linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryType {
    /// Pages at the start.
    pub pages_min: u32,
    /// Pages that it may grow to.
    pub pages_max: Option<u32>,
    /// Bytes of a page: 65,536, or 1 (proposal custom-page-sizes).
    pub page_bytes: u32,
}

/// Size and kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableType {
    /// Type of the elements.
    pub element: ValueType,
    /// Elements at the start.
    pub min: u32,
    /// Elements that it may grow to.
    pub max: Option<u32>,
}

/// Validates a module and writes its image. After an error the sink holds a useless part of one.
pub fn translate(
    wasm: &[u8],
    host: &dyn HostFunctions,
    limits: &Limits,
    out: &mut dyn ImageSink,
) -> Result<(), TranslateError> {
    translate_bound(wasm, host, limits, &[0; 32], out)
}

/// As [`translate`], for an image that belongs to the package with this digest.
pub fn translate_bound(
    wasm: &[u8],
    host: &dyn HostFunctions,
    limits: &Limits,
    digest: &[u8; 32],
    out: &mut dyn ImageSink,
) -> Result<(), TranslateError> {
    translate_observed(wasm, host, limits, digest, out, &mut |_, _, _| {})
}

/// Where code of an image comes from: made anew on a host to explain a trap, stored nowhere.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    /// (function, offset in its code, offset in the module), ascending.
    rows: Vec<(u32, u32, u32)>,
}

impl SourceMap {
    /// Translates the module once more, with the host and limits that made the image.
    pub fn new(
        wasm: &[u8],
        host: &dyn HostFunctions,
        limits: &Limits,
    ) -> Result<SourceMap, TranslateError> {
        let mut rows: Vec<(u32, u32, u32)> = Vec::new();
        let mut record = |function: usize, code: usize, source: usize| {
            // A body that is translated again, in the wide form, starts over.
            while rows.last().is_some_and(|row| row.0 == function as u32 && row.1 >= code as u32) {
                rows.pop();
            }
            rows.push((function as u32, code as u32, source as u32));
        };
        translate_observed(wasm, host, limits, &[0; 32], &mut Discard, &mut record)?;
        Ok(SourceMap { rows })
    }

    /// Offset in the module of the instruction that the code at `offset` of a function was made of.
    pub fn module_offset(&self, function: u32, offset: u32) -> Option<u32> {
        let after = self.rows.partition_point(|row| (row.0, row.1) <= (function, offset));
        let row = self.rows.get(after.checked_sub(1)?)?;
        (row.0 == function).then_some(row.2)
    }
}

struct Discard;

impl ImageSink for Discard {
    fn write(&mut self, _bytes: &[u8]) -> Result<(), crate::image::SinkFull> {
        Ok(())
    }
}

type ModuleObserver<'o> = &'o mut dyn FnMut(usize, usize, usize);

fn translate_observed(
    wasm: &[u8],
    host: &dyn HostFunctions,
    limits: &Limits,
    digest: &[u8; 32],
    out: &mut dyn ImageSink,
    observe: ModuleObserver<'_>,
) -> Result<(), TranslateError> {
    let verdict = Verdict::new();
    translate_judged(wasm, &verdict, host, limits, digest, out, observe)
        .map_err(|refused| verdict.error(refused))
}

fn translate_judged(
    wasm: &[u8],
    verdict: &Verdict,
    host: &dyn HostFunctions,
    limits: &Limits,
    digest: &[u8; 32],
    out: &mut dyn ImageSink,
    observe: ModuleObserver<'_>,
) -> Checked<()> {
    let mut writer = ImageWriter::new(out).map_err(|kind| verdict.refuse(0, kind))?;
    let mut functions = Vec::new();
    let module = wasm::read_module(wasm, verdict, host, limits, &mut |module, reader| {
        reader.reserve(&mut functions, module.functions.len())?;
        import_stubs(module, &mut writer, &mut functions, &reader)?;
        bodies(module, reader, limits, &mut writer, &mut functions, observe)
    })?;
    let reader = module.reader(wasm.len());
    if functions.is_empty() {
        reader.reserve(&mut functions, module.functions.len())?;
        import_stubs(&module, &mut writer, &mut functions, &reader)?;
    }
    let footer = sections::write(&module, &functions, digest, &mut writer);
    let footer = footer.map_err(|error| match error {
        sections::Stop::Refused(refused) => refused,
        sections::Stop::Sink(kind) => verdict.refuse(wasm.len(), kind),
    })?;
    written(&reader, writer.finish(&footer))
}

fn written<T>(reader: &Reader<'_>, outcome: Result<T, TranslateErrorKind>) -> Checked<T> {
    outcome.or_else(|kind| reader.error(kind))
}

/// An imported function is one instruction that stops for the host, and a return.
fn import_stubs(
    module: &Module<'_>,
    writer: &mut ImageWriter<'_>,
    functions: &mut Vec<Placed>,
    reader: &Reader<'_>,
) -> Checked<()> {
    for (index, &number) in module.imports.iter().enumerate() {
        let Some(entry) = module.type_of_function(index as u32) else { continue };
        let link = entry.link();
        functions.push(Placed { code: writer.position(), frame: Frame::of_import(link) });
        for unit in [isa::HOST * isa::OPCODE_SCALE, number, isa::RETURN * isa::OPCODE_SCALE, link] {
            written(reader, writer.write(&unit.to_le_bytes()))?;
        }
    }
    Ok(())
}

fn bodies(
    module: &Module<'_>,
    mut reader: Reader<'_>,
    limits: &Limits,
    writer: &mut ImageWriter<'_>,
    functions: &mut Vec<Placed>,
    observe: ModuleObserver<'_>,
) -> Checked<()> {
    let imported = module.imports.len();
    if module.code.count as usize != module.functions.len() - imported {
        return reader.error(Malformed::CodeCount);
    }
    let mut buffers = Buffers::default();
    for index in imported..module.functions.len() {
        let start = reader;
        let length = reader.u32()?;
        if length > limits.function_bytes {
            return start.error(Limit::FunctionBytes);
        }
        let body = reader.part(length as usize)?;
        let Some(entry) = module.type_of_function(index as u32) else { continue };
        let mut note = |code, source| observe(index, code, source);
        let mut outcome =
            translate_body(module, entry, body, limits, &mut buffers, false, &mut note);
        if matches!(outcome, Err(Stop::TooFar)) {
            outcome = translate_body(module, entry, body, limits, &mut buffers, true, &mut note);
        }
        let frame = match outcome {
            Ok(frame) => frame,
            Err(Stop::Refused) => return Err(Refused),
            Err(Stop::TooFar) => return start.error(Limit::FunctionBytes),
        };
        functions.push(Placed { code: writer.position(), frame });
        for piece in buffers.code.iter() {
            written(&start, writer.write(piece))?;
        }
    }
    if !reader.is_empty() {
        return reader.error(Malformed::SectionSize);
    }
    Ok(())
}
