//! Rust projects: cargo compiles and links them, and says where the module lies.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::make::project_file::ProjectFile;
use crate::make::toolchain::{RUST_TARGET, Rust};

/// Compiles a project to wasm; gives the module's path, and whether its memory is as small as can be.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, bool)> {
    let rust = Rust::find(RUST_TARGET)?;
    // Rust's own allocator takes memory in whole pages of 64 KiB; the SDK's takes what it needs.
    let exact_memory = rust.exact_memory() && uses_sdk(folder)?;
    let mut command = rust.cargo_rustc(RUST_TARGET);
    let arguments = project.link_arguments(exact_memory);
    let flags: Vec<_> = arguments.iter().map(|argument| format!("-Clink-arg={argument}")).collect();
    let wasm = compile_as(&mut command, folder, "cdylib", &flags)?;
    Ok((wasm, exact_memory))
}

/// Whether a Rust project is built with the crate `tenure`, or with Rust's standard library.
fn uses_sdk(folder: &Path) -> anyhow::Result<bool> {
    let path = folder.join("Cargo.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
    let manifest: toml::Table =
        toml::from_str(&text).with_context(|| path.display().to_string())?;
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let is_sdk = |(name, value): (&String, &toml::Value)| {
        let package = value.get("package").and_then(toml::Value::as_str);
        package.unwrap_or(name) == "tenure"
    };
    Ok(dependencies.is_some_and(|dependencies| dependencies.iter().any(is_sdk)))
}

/// Compiles a Rust project to a crate of this type with the compiler's `flags`; gives its path.
pub(crate) fn compile_as(
    command: &mut Command,
    folder: &Path,
    crate_type: &str,
    flags: &[String],
) -> anyhow::Result<PathBuf> {
    command.current_dir(folder).args(["--crate-type", crate_type]);
    command.arg("--message-format=json-render-diagnostics").arg("--").args(flags);
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("can't run cargo")?;
    let mut library = None;
    if let Some(messages) = cargo.stdout.take() {
        for message in BufReader::new(messages).lines() {
            library = artifact(&message.context("can't read what cargo says")?).or(library);
        }
    }
    if !cargo.wait().context("can't wait for cargo")?.success() {
        bail!("{} doesn't compile; see what cargo says above", folder.display());
    }
    library
        .with_context(|| format!("{} is no library crate; it needs a src/lib.rs", folder.display()))
}

/// The module or library that a message of cargo tells of, if it does.
fn artifact(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let files = message.get("filenames")?.as_array()?;
    files
        .iter()
        .filter_map(|file| file.as_str())
        .find(|file| file.ends_with(".wasm") || file.ends_with(".a"))
        .map(Into::into)
}
