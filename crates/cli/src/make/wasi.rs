//! Programs that were made for WASI, preview 1, 0.2 or 0.3, become machines: `tenure build` links them with an adapter, which does by
//! host calls what WASI's functions do. Devices know nothing of it. Of a component the core module is the program.
//!
//! ```text
//!   0          adapter: stack, variables, constants
//!              settings: arguments, variables, folders, as tenure.toml says
//!              room for a result, if standard output is the result of a call
//!              room for open files, if the program opens any
//!   base       the program's memory, as it was linked: all its addresses count from here
//! ```
//!
//! The program's loads and stores get `base` added to the offset that each has anyway, so that they cost nothing more, and no
//! address of the program's reaches below it. Its memory grows at its end as before: allocators that take for theirs all
//! behind their data (wasi-libc's, TinyGo's, emscripten's) find no page of another's there.
//!
//! A command (a module that exports `_start`) becomes the function `run`: each call finds memory and globals as they are at a
//! program's beginning. `proc_exit` doesn't come back to its caller: functions in the midst of which a program may exit
//! return behind each such call once it has.

mod adapter;
mod component;
mod helpers;
mod host_calls;
mod merge;
mod settings;

pub use settings::{ProgramOutput, ProgramParameter, TreeValue, Wasi};

use wasmparser::BinaryReaderError;

use crate::make::program::Program;
use adapter::Adapter;

/// The module that functions of WASI preview 1 are imported from.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";
/// The function that a command exports, and that is its program.
const COMMAND: &str = "_start";
/// The function that a command becomes.
pub(crate) const RUN: &str = "run";

/// The constants that the adapter is written with, too.
#[path = "../../../../sdk/wasi/src/layout.rs"]
#[allow(dead_code, reason = "the adapter's part of it")]
mod layout;

/// Why a program can't be linked with the adapter.
#[derive(Debug, thiserror::Error)]
pub enum WasiError {
    /// It is no module, or of a kind that devices don't run.
    #[error("the code is no WebAssembly module that devices run: {0}")]
    Malformed(#[from] BinaryReaderError),
    /// It has what can't be written anew.
    #[error("the code can't be linked with WASI's functions: {0}")]
    Encoding(String),
    /// It imports what WASI hasn't.
    #[error(
        "the code imports {MODULE}.{name}, and WASI preview 1 has no such function; build it for wasm32-wasip1"
    )]
    Unknown {
        /// The import.
        name: String,
    },
    /// It imports an interface that isn't there, or a function that its interface hasn't here.
    #[error(
        "the component imports {function} of {interface}, which machines don't have; {instead}"
    )]
    Interface {
        /// The interface, with its version.
        interface: String,
        /// The function.
        function: String,
        /// What to do.
        instead: &'static str,
    },
    /// It imports a function with another type.
    #[error("the code imports {name} with other parameters than its interface gives it")]
    Signature {
        /// The import, with its module.
        name: String,
    },
    /// Its `_start` has parameters or results, or its `run` others than it has.
    #[error(
        "the code exports {COMMAND} with parameters or results, and a program has none of them there"
    )]
    Command,
    /// It gives no memory for strings and lists.
    #[error(
        "the component's code exports no `cabi_realloc`, by which it gets strings and lists; its toolchain's bindings \
         (`wit-bindgen`) bring it"
    )]
    Realloc,
    /// It has no program, or several.
    #[error(
        "the component has {count} modules of code, and a machine is made of one; link the program's parts into one \
         module before `wit-component` makes a component of it (no `wasm-tools component link`)"
    )]
    Modules {
        /// How many there are.
        count: usize,
    },
    /// It is made of other components.
    #[error(
        "the component holds other components with code, and a machine is made of one; build each as a machine of its \
         own, or compile them into one program (no `wac plug`, no `wasm-tools compose`)"
    )]
    Composed,
    /// It has several memories, or one of 64 bits.
    #[error("a program for WASI has one memory of 32 bits, and the code has another")]
    Memory,
    /// It has text in its settings that no program could read.
    #[error("tenure.toml, [wasi]: {0}")]
    Settings(String),
}

impl<E: std::fmt::Debug> From<wasm_encoder::reencode::Error<E>> for WasiError {
    fn from(error: wasm_encoder::reencode::Error<E>) -> Self {
        Self::Encoding(format!("{error:?}"))
    }
}

/// A program that was linked with the adapter.
#[derive(Clone, Debug)]
pub struct WasiProgram {
    /// The module.
    pub module: Vec<u8>,
    /// The functions that it imports and that always fail, each with the reason.
    pub missing: Vec<(String, &'static str)>,
}

/// Links `module` with the adapter, if it imports functions of WASI or is a component; `name` is its first argument.
///
/// # Errors
/// See [`WasiError`].
pub fn link(module: &[u8], name: &str, wasi: &Wasi) -> Result<Option<WasiProgram>, WasiError> {
    let is_component = wasmparser::Parser::is_component(module);
    let module = component::program(module)?;
    // The function for AssemblyScript's abort reads the program's memory, and so must be a part of the program first.
    let replaced = crate::make::foreign_abort::replace(&module)?;
    let program = Program::read(replaced.as_deref().unwrap_or(&module))?;
    if !is_component && !program.needs_linking() {
        return Ok(None);
    }
    let bytes = if program.is_of_component() { adapter::COMPONENTS } else { adapter::PREVIEW_1 };
    let adapter = Adapter::read(bytes)?;
    let settings = settings::encode(name, wasi)?;
    let missing = program.imports.iter().filter_map(|import| {
        let name = component::adapter_name(import.module, import.name)?;
        Some((import.name.to_owned(), reason(&name)?))
    });
    let missing = missing.collect();
    let module = merge::merge(&program, &adapter, &settings, wasi)?;
    Ok(Some(WasiProgram { module, missing }))
}

/// Why a function always fails.
fn reason(name: &str) -> Option<&'static str> {
    Some(match name {
        "fd_allocate" => "no room can be had beforehand (ENOTSUP)",
        "fd_fdstat_set_rights" => "rights follow from how a file was opened (ENOTSUP)",
        "path_link" => "a file has one name (ENOTSUP)",
        "wasi:filesystem/types@0.2#[method]descriptor.link-at" => {
            "a file has one name (unsupported)"
        }
        "proc_raise" => "there are no signals (ENOTSUP)",
        "sock_accept" | "sock_recv" | "sock_send" | "sock_shutdown" => {
            "there are no sockets (ENOTSOCK)"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
