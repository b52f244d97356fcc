//! The binary format: reading and checking all of a module but its function bodies (wasm 2.0 §3, §5).

mod constant;
mod module;
mod reader;
mod sections;
mod types;

pub(crate) use constant::constant;
pub(crate) use module::{Module, SegmentMode, Table, TypeEntry, element_segment};
pub(crate) use reader::{Checked, Reader, Refused, Verdict};
pub(crate) use sections::{block_type, data_segment, read_module};
pub(crate) use types::{null_type, value_type};
