//! Images: what a module becomes, and what is run.
//!
//! All integers are little-endian and every section begins at a multiple of four bytes:
//!
//! ```text
//! header     "TNVM", version u16, 0 u16, 0 u64
//! code       one function after the other, stubs of imported ones first
//! sections   data bytes, data, element items, elements, type bytes, types, functions, exports,
//!            globals, tables
//! footer     where the sections are, memory, start function, package digest, length, CRC-32
//! ```
//!
//! Everything is written in one pass from front to back; what is only known at the end stands there. An
//! image holds no pointers and is executed where it lies.

mod verify;
mod view;
mod writer;

pub(crate) use view::{DataSegment, ElementSegment, FunctionEntry, Section};
pub use view::{
    Export, ExportKind, FunctionExport, FunctionIndex, FunctionShape, Image, ImageError, ImageToken,
};
pub(crate) use writer::{Footer, ImageWriter, Range};
pub use writer::{ImageSink, SinkFull};

/// Version of format and instruction set: an image of another is refused.
pub const VERSION: u16 = 3;
pub(crate) const MAGIC: [u8; 4] = *b"TNVM";
pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const FUNCTION_BYTES: usize = 16;
pub(crate) const TYPE_BYTES: usize = 8;
pub(crate) const EXPORT_BYTES: usize = 8;
pub(crate) const GLOBAL_BYTES: usize = 16;
pub(crate) const TABLE_BYTES: usize = 12;
pub(crate) const SEGMENT_BYTES: usize = 16;
/// Seven sections of 8 bytes; end of code, start function and four words of memory; digest, length,
/// checksum.
pub(crate) const FOOTER_BYTES: usize = 7 * 8 + 24 + 32 + 8;
/// Elements of a table, whatever its declared maximum.
pub(crate) const TABLE_MAX: u32 = 10_000_000;
/// Stands for "no maximum" and "no start function".
pub(crate) const NONE: u32 = u32::MAX;
