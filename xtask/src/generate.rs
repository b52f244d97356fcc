//! `cargo xtask generate`: writes guest bindings and reference pages from the tables in `tenure_wire`, the pages of limits
//! and of formats from those in the code, and compiles the adapters for WASI.
//!
//! The generated files are committed, so that a guest builds without this workspace; `check` says
//! when one of them is no longer what the table gives.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tenure_wire::host_call::{HostCallInfo, HostError, TABLE};

mod adapter;
mod assembly_script;
mod c;
mod control;
mod formats;
mod limits;
mod markdown;
mod rust;
mod sdk_api;
mod wit;
mod zig;

/// The generated files, by their path in the repository, with the generator of each.
const FILES: [(&str, Generator); 11] = [
    ("sdk/c/include/generated/tenure_host.h", c::header),
    ("sdk/rust/src/generated/host.rs", rust::module),
    ("sdk/zig/generated/host.zig", zig::module),
    ("sdk/assemblyscript/tenure/generated/host.ts", assembly_script::module),
    ("sdk/wit/generated/machine.wit", wit::package),
    ("docs/generated/host-calls.md", markdown::page),
    ("docs/generated/control.md", control::page),
    ("docs/generated/limits.md", limits::page),
    ("docs/generated/formats.md", formats::page),
    ("docs/generated/api-rust.md", sdk_api::rust_page),
    ("docs/generated/api-c.md", sdk_api::c_page),
];

/// Gives the whole text of a file.
type Generator = fn(&Description) -> String;

/// The sentence that marks a file as generated.
const NOTICE: &str = "Generated from crates/wire/src/host_call.rs by `cargo xtask generate`.";

/// The tables that the files are generated from.
struct Description {
    calls: &'static [HostCallInfo],
    errors: &'static [(HostError, &'static str)],
}

/// Writes the generated files below `root`; with `check` it only compares them.
///
/// # Errors
/// A file can't be read or written, or, with `check`, isn't current.
pub(crate) fn run(check: bool, root: &Path) -> Result<()> {
    let description = Description { calls: TABLE, errors: HostError::ALL };
    let mut stale = Vec::new();
    for (name, generate) in FILES {
        let path = root.join(name);
        let text = generate(&description);
        if std::fs::read_to_string(&path).is_ok_and(|current| current == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            write(&path, text.as_bytes())?;
            println!("wrote {name}");
        }
    }
    // They are made of a generated file among others.
    for (file, arguments) in adapter::MODULES {
        if adapter::is_current(root, file)? {
            continue;
        }
        if check {
            stale.push(file);
        } else {
            adapter::write(root, file, arguments)?;
            println!("wrote {file}");
        }
    }
    if !stale.is_empty() {
        bail!("not current: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {folder:?}"))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("can't write {path:?}"))
}

/// The words of an error as a sentence.
fn sentence(error: &impl std::fmt::Display) -> String {
    let words = error.to_string();
    words[..1].to_uppercase() + &words[1..] + "."
}
