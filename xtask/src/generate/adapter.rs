//! The adapters for WASI that the command `tenure` carries, compiled of `sdk/wasi`: one for preview 1, one for components.
//!
//! Compilers differ in what they make of it, so that a module isn't compared with what this one makes: its last section
//! has the digest of the sources that it was made of.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tenure_crypto::sha256;

use crate::{files, process};

/// The modules, each with the compiler's further arguments.
pub(super) const MODULES: [(&str, &[&str]); 2] = [
    ("sdk/wasi/generated/adapter.wasm", &[]),
    ("sdk/wasi/generated/component-adapter.wasm", &["--features", "components"]),
];
/// The project that it is made of.
const FOLDER: &str = "sdk/wasi";
const TARGET: &str = "wasm32-unknown-unknown";
/// The sources that lie elsewhere, and those that no search by ending finds.
const FURTHER: [&str; 3] =
    ["sdk/rust/src/generated/host.rs", "sdk/wasi/Cargo.toml", "sdk/wasi/.cargo/config.toml"];

/// The custom section with the digest: its id, its length, and its name with the length of that (wasm spec §5.5.3).
const SECTION_HEAD: &[u8] = b"\x00\x2f\x0etenure.sources";
const DIGEST_BYTES: usize = 32;
const _: () = assert!(SECTION_HEAD.len() - 2 + DIGEST_BYTES == SECTION_HEAD[1] as usize);

/// Whether the module `file` is made of the sources as they are.
pub(super) fn is_current(root: &Path, file: &str) -> Result<bool> {
    let ending = ending(root)?;
    Ok(fs::read(root.join(file)).is_ok_and(|module| module.ends_with(&ending)))
}

/// Compiles the module `file`.
pub(super) fn write(root: &Path, file: &str, arguments: &[&str]) -> Result<()> {
    let folder = root.join(FOLDER);
    let target = folder.join("target");
    let mut build = process::cargo(&folder);
    build
        .args(["build", "--quiet", "--release", "--target", TARGET])
        .args(arguments)
        .env("CARGO_TARGET_DIR", &target);
    // Flags for the computer's own programs don't suit it.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    process::run(&mut build).with_context(|| {
        format!("{FOLDER} doesn't compile; is the target there? rustup target add {TARGET}")
    })?;
    let made = target.join(TARGET).join("release/tenure_wasi.wasm");
    let mut module = fs::read(&made).with_context(|| format!("can't read {}", made.display()))?;
    module.extend(ending(root)?);
    super::write(&root.join(file), &module)
}

/// The module's last section.
fn ending(root: &Path) -> Result<Vec<u8>> {
    let mut sources = files::with_ending(&root.join(FOLDER).join("src"), &["rs"])?;
    sources.extend(FURTHER.map(|file| root.join(file)));
    sources.sort();
    let mut texts = Vec::new();
    for source in sources {
        let bytes =
            fs::read(&source).with_context(|| format!("can't read {}", source.display()))?;
        // Their order is that of their paths, and each is told from the next by its own digest.
        texts.extend(sha256(&[&bytes]).0);
    }
    Ok([SECTION_HEAD, &sha256(&[&texts]).0].concat())
}
