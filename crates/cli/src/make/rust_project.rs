//! Rust projects: cargo compiles and links them, and says where the module lies.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::make::project::name_of;
use crate::make::project_file::ProjectFile;
use crate::make::toolchain::{RUST_TARGET, Rust, cargo_build_for_wasi};
use crate::whole_file;

/// The most bytes of a Cargo.toml.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Compiles a project to wasm; gives the module's path, and whether its memory is as small as can be.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, bool)> {
    if project.wasi.is_some() {
        return Ok((compile_program(folder, project)?, false));
    }
    let rust = Rust::find(RUST_TARGET, folder)?;
    // Rust's own allocator takes memory in whole pages of 64 KiB; the SDK's takes what it needs.
    let exact_memory = rust.exact_memory() && uses_sdk(folder)?;
    let mut command = rust.cargo_rustc(RUST_TARGET);
    let arguments = project.link_arguments(exact_memory);
    let flags: Vec<_> = arguments.iter().map(|argument| format!("-Clink-arg={argument}")).collect();
    let wasm = compile_as(&mut command, folder, "cdylib", &flags)?;
    Ok((wasm, exact_memory))
}

/// Compiles a project's program for WASI: its only one, or the one of the project's name.
fn compile_program(folder: &Path, project: &ProjectFile) -> anyhow::Result<PathBuf> {
    let mut command = cargo_build_for_wasi(folder, &project.link_arguments(false))?;
    command.current_dir(folder).arg("--message-format=json-render-diagnostics");
    let mut programs = artifacts(&mut command, folder)?;
    let is_named = |path: &PathBuf| path.file_stem() == Some(OsStr::new(project.name.as_str()));
    match (programs.iter().position(is_named), programs.len()) {
        (Some(named), _) => Ok(programs.swap_remove(named)),
        (None, 1) => Ok(programs.remove(0)),
        (None, 0) => bail!(
            "{} has no program; with [wasi] in tenure.toml it needs a src/main.rs",
            folder.display()
        ),
        (None, _) => {
            bail!("{} has several programs, and none is named {}", folder.display(), project.name)
        }
    }
}

/// Whether a Rust project is built with the crate `tenure`, or with Rust's standard library.
fn uses_sdk(folder: &Path) -> anyhow::Result<bool> {
    let path = folder.join("Cargo.toml");
    let text = whole_file::read_text(&path, MANIFEST_BYTES_MAX)
        .with_context(|| format!("can't read {}", path.display()))?;
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
    artifacts(command, folder)?
        .pop()
        .with_context(|| format!("{} is no library crate; it needs a src/lib.rs", folder.display()))
}

/// Runs cargo; returns the modules and libraries that it tells of, in its order.
fn artifacts(command: &mut Command, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("can't run cargo")?;
    let mut found = Vec::new();
    if let Some(messages) = cargo.stdout.take() {
        for message in BufReader::new(messages).lines() {
            found.extend(artifact(&message.context("can't read what cargo says")?));
        }
    }
    if !cargo.wait().context("can't wait for cargo")?.success() {
        bail!("{} doesn't compile; see what cargo says above", name_of(folder));
    }
    Ok(found)
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
