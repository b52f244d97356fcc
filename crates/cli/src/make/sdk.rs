//! The SDK that machine projects build with, carried in this program.
//!
//! Each project has its own copy in `.tenure/sdk`, always that of the `tenure` command that builds
//! it: no network is needed, paths in the project are relative, and editors find everything.

use std::hash::{Hash as _, Hasher};
use std::path::Path;

use anyhow::Context as _;

use crate::make::fence;
use crate::whole_file;

/// Where a project's copy lies.
pub const FOLDER: &str = ".tenure/sdk";
/// The folder that it lies in.
const ABOVE: &str = ".tenure";

macro_rules! files {
    ($($path:literal,)+) => {
        /// The SDK's files: path and text.
        const FILES: &[(&str, &str)] =
            &[$(($path, include_str!(concat!("../../../../sdk/", $path)))),+];
    };
}

files! {
    "assemblyscript/tenure.ts",
    "assemblyscript/tenure/generated/host.ts",
    "c/include/api.h",
    "c/include/assert.h",
    "c/include/cassert",
    "c/include/cerrno",
    "c/include/csetjmp",
    "c/include/cstdio",
    "c/include/cstddef",
    "c/include/cstdint",
    "c/include/cstdlib",
    "c/include/cstring",
    "c/include/errno.h",
    "c/include/generated/tenure_host.h",
    "c/include/new",
    "c/include/nihilo.h",
    "c/include/setjmp.h",
    "c/include/stdio.h",
    "c/include/stdlib.h",
    "c/include/string.h",
    "c/include/tenure.h",
    "c/include/tenure_native.h",
    "c/src/cplusplus.c",
    "c/src/format.c",
    "c/src/heap.c",
    "c/src/nihilo.c",
    "c/src/reach.c",
    "c/src/setjmp.c",
    "c/src/standard.c",
    "c/src/streams.c",
    "c/src/string.c",
    "c/src/tenure.c",
    "c/src/wide.c",
    "c/standard/api.h",
    "c/standard/nihilo.h",
    "c/standard/setjmp.h",
    "c/standard/tenure.h",
    "c/standard/tenure_native.h",
    "javascript/build.cjs",
    "javascript/compile.c",
    "javascript/engine.c",
    "javascript/host.c",
    "javascript/include/ctype.h",
    "javascript/include/inttypes.h",
    "javascript/include/math.h",
    "javascript/include/setjmp.h",
    "javascript/include/sys/time.h",
    "javascript/json.c",
    "javascript/library.c",
    "javascript/stdlib.c",
    "javascript/tenure.d.ts",
    "lua/compile.c",
    "lua/core.h",
    "lua/engine.c",
    "lua/host.c",
    "lua/memory.c",
    "lua/names.h",
    "rust/Cargo.toml",
    "rust/src/calls.rs",
    "rust/src/events.rs",
    "rust/src/export.rs",
    "rust/src/fields.rs",
    "rust/src/generated/host.rs",
    "rust/src/heap.rs",
    "rust/src/http.rs",
    "rust/src/heap/tests.rs",
    "rust/src/key.rs",
    "rust/src/lib.rs",
    "rust/src/log.rs",
    "rust/src/machine.rs",
    "rust/src/native.rs",
    "rust/src/reach.rs",
    "rust/src/secret.rs",
    "rust/src/status.rs",
    "rust/src/timers.rs",
    "rust/src/tree.rs",
    "wit/generated/machine.wit",
    "zig/generated/host.zig",
    "zig/heap.zig",
    "zig/panic.zig",
    "zig/tenure.zig",
}

/// Brings the copy in `project` up to date; what is current keeps its time, so that nothing is
/// compiled anew without need.
///
/// # Errors
/// A file can't be written, or a link leads out of the copy.
pub fn install(project: &Path) -> anyhow::Result<()> {
    fence::check_tree(&project.join(ABOVE))?;
    for (path, text) in FILES {
        let path = project.join(FOLDER).join(path);
        let is_current = |current: Vec<u8>| current == text.as_bytes();
        if whole_file::read(&path, text.len() as u64).is_ok_and(is_current) {
            continue;
        }
        let failed = || format!("can't write {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(failed)?;
        }
        whole_file::write(&path, text).with_context(failed)?;
    }
    Ok(())
}

/// What a C project is built with besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// The SDK's small library.
    Small,
    /// The standard library, without files.
    Standard,
    /// The standard library with all of WASI.
    Wasi,
}

/// The C files of the SDK for a C machine, relative to the project.
pub fn c_sources(beside: Beside) -> impl Iterator<Item = String> {
    let left_out: &[&str] = match beside {
        Beside::Small => &["c/src/standard.c", "c/src/streams.c"],
        Beside::Standard => &["c/src/string.c"],
        Beside::Wasi => &["c/src/string.c", "c/src/streams.c"],
    };
    FILES
        .iter()
        .filter(|(path, _)| path.starts_with("c/") && path.ends_with(".c"))
        .filter(move |(path, _)| !left_out.contains(path))
        .map(|(path, _)| format!("{FOLDER}/{path}"))
}

/// Feeds all of the SDK for C to a hasher, by which a change of it is noticed.
pub fn hash(hasher: &mut impl Hasher) {
    hash_below("c/", hasher);
}

/// Feeds the files of the SDK whose path begins so to a hasher.
pub fn hash_below(folder: &str, hasher: &mut impl Hasher) {
    FILES.iter().filter(|(path, _)| path.starts_with(folder)).for_each(|file| file.hash(hasher));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_file_of_the_sdk_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
        let mut missing = Vec::new();
        let folders = [
            "c/include",
            "c/src",
            "c/standard",
            "rust/src",
            "assemblyscript",
            "javascript",
            "lua",
            "wit",
            "zig",
        ]
        .map(String::from);
        let mut folders = folders.to_vec();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else if !FILES.iter().any(|(carried, _)| *carried == path) {
                    missing.push(path);
                }
            }
        }
        assert!(missing.is_empty(), "add to `files!`: {missing:?}");
    }
}
