//! WASI preview 1 (`wasi_snapshot_preview1`) by Tenure's host calls and, with the feature `components`, WASI 0.2 and 0.3.
//!
//! `tenure build` links this module into programs that were made for WASI: a function that the program imports is
//! joined with the one of the same name here, and what isn't used is left out. Devices know nothing of it.
//!
//! Invariants:
//! - The module lies in the lowest bytes of the machine's memory, and the program above them: its addresses count from
//!   [`user::base`]. No address of the program's reaches this module's memory, and none of its pages lies between two of
//!   the program's.
//! - Nothing here calls the program but its `cabi_realloc`, for components, and nothing grows the memory.
//! - Each function checks what it is handed as a kernel does, and fails with the number that WASI's `errno` has for it.
//! - A file that is written to has its old content in the tree until it is closed or synchronised, and its new one then.
#![no_std]

mod abi;
mod cache;
mod clock;
mod commit;
#[cfg(feature = "components")]
mod component;
mod content;
mod descriptor;
mod directory;
mod errno;
mod file;
mod files;
#[allow(dead_code, unreachable_pub)]
#[path = "../../rust/src/generated/host.rs"]
mod host;
mod layout;
mod node;
mod nodes;
mod open;
mod path;
mod poll;
mod process;
mod remove;
mod rename;
mod resolve;
mod settings;
mod stat;
mod stdio;
mod tree;
mod user;

/// A panic is a mistake of this module's: the machine stops, with the place in its log.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
