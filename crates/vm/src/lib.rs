//! The engine that runs machines: WebAssembly, validated and translated once, run with fuel, stopped
//! at any instruction.
//!
//! [`translate`] turns a module into an *image*: position-independent register code, tables and data in
//! one byte string that is executed where it lies, flash included. An [`Instance`] is what changes while
//! a program runs: memory, globals, tables and one stack of frames, all plain bytes. [`Instance::run`]
//! takes fuel and returns an [`Outcome`]; it never calls back. [`Instance::suspend`] writes an instance
//! down at any point and [`Instance::resume`] rebuilds it, on another processor if need be.
//!
//! Invariants:
//! - no input makes this crate panic: neither modules, nor images, nor suspended bytes, nor arguments;
//! - the same program uses the same fuel on every processor and in slices of every size;
//! - unsafe code stands in `interpreter` alone (and in `memory`, which lends words as bytes). What it
//!   relies on is checked once, by [`Image::parse`] for code and by [`Instance::resume`] for frames.
#![no_std]
#![cfg_attr(feature = "become", feature(explicit_tail_calls), allow(incomplete_features))]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!("slots and images are little-endian; no big-endian target is supported");

mod checksum;
mod compiled;
mod error;
mod image;
mod instance;
mod interpreter;
mod isa;
mod limits;
mod memory;
mod suspend;
mod translate;
mod value;
mod wall;
mod wasm;

pub use compiled::Compiled;
pub use error::{Feature, Invalid, Limit, Malformed, TranslateError, TranslateErrorKind};
pub use image::VERSION as IMAGE_VERSION;
pub use image::{
    Export, ExportKind, FunctionExport, FunctionIndex, FunctionShape, Image, ImageError, ImageSink,
    ImageToken, SinkFull,
};
pub use instance::{
    CallError, Frame, HostResultError, Instance, InstanceConfig, OVERRUN_UNITS, Outcome,
    StartError, Trap, TrapKind,
};
#[cfg(feature = "profile")]
pub use instance::{Change, Standing};
pub use isa::{disassemble, instruction_set};
pub use limits::Limits;
pub use suspend::ResumeError;
pub use translate::{
    HostFunctions, MemoryType, NoHostFunctions, SourceMap, TableType, translate, translate_bound,
};
pub use value::{FunctionType, Value, ValueType};
pub use wall::{Breach, BreachCause, Entry, Stay, Wall, flow, word};
