//! rustfmt, clippy and rustdoc over every workspace; a warning is a failure.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::report::Verdict;
use crate::toolchain::{Toolchain, WASM_TARGET};
use crate::workspace::Lint;
use crate::{paint, process, toolchain, workspace};

pub(super) fn format(root: &Path, fix: bool) -> Result<Verdict> {
    let mut folders = vec![root.to_path_buf()];
    folders.extend(workspace::other_workspaces(root)?);
    process::run_all(folders.iter().map(|folder| {
        let mut command = process::cargo(folder);
        command.arg("fmt");
        if !fix {
            command.args(["--", "--check"]);
            if !paint::stdout().is_coloured() {
                command.args(["--color", "never"]);
            }
        }
        command
    }))?;
    Ok(Verdict::Passed)
}

/// Guests are linted for the target that they are built for; firmware, benches and other workspaces in
/// each way that their manifests name, or else for this machine.
///
/// Those with `peers` take minutes to compile, and are left out unless they are asked for.
pub(super) fn clippy(root: &Path, fix: bool, with_peers: bool) -> Result<Verdict> {
    let mut commands = vec![
        clippy_in(root, root, &["--workspace", "--all-targets"]),
        // As the demo builds it: no other package lends it a feature.
        clippy_in(root, root, &["--package", "tenure-cli", "--no-default-features"]),
    ];
    let guest_arguments: &[&str] = match toolchain::for_target(WASM_TARGET) {
        Some(Toolchain::Active) => &["--workspace", "--target", WASM_TARGET],
        _ => &["--workspace", "--lib"],
    };
    for folder in workspace::guest_workspaces(root)? {
        commands.push(clippy_in(root, &folder, guest_arguments));
    }
    for folder in workspace::host_workspaces(root)? {
        commands.extend(clippy_of_workspace(root, &folder, with_peers)?);
    }
    process::run_all(commands.into_iter().map(|mut command| {
        if fix {
            command.args(["--fix", "--allow-dirty", "--allow-staged"]);
        }
        command.args(["--", "-D", "warnings"]);
        command
    }))?;
    Ok(Verdict::Passed)
}

/// One command for each way in which the packages of the workspace in `folder` are built.
fn clippy_of_workspace(root: &Path, folder: &Path, with_peers: bool) -> Result<Vec<Command>> {
    let mut commands = Vec::new();
    for package in workspace::packages(folder)? {
        let mut lints = package.lints().to_vec();
        if lints.is_empty() {
            lints.push(Lint::default());
        }
        for lint in lints.iter().filter(|lint| with_peers || !lint.peers) {
            commands.extend(clippy_of(root, folder, &package.name, lint)?);
        }
    }
    Ok(commands)
}

/// `None` where a target needs Debian's Rust and that has no clippy.
fn clippy_of(root: &Path, folder: &Path, package: &str, lint: &Lint) -> Result<Option<Command>> {
    let toolchain = match lint.target.as_deref() {
        None => Toolchain::Active,
        Some(target) => toolchain::for_target(target)
            .with_context(|| format!("no toolchain for {target}; run `cargo xtask setup`"))?,
    };
    if !toolchain.has_clippy() {
        println!("not linted: {package}, for which only Debian's Rust is here, without clippy");
        return Ok(None);
    }
    let mut command = match lint.target.as_deref() {
        None => process::cargo(folder),
        Some(target) => toolchain.cargo_for(folder, target),
    };
    command.args(["clippy", "--quiet", "--keep-going", "--package", package]);
    command.env("CARGO_TARGET_DIR", toolchain.products(root));
    command.args(lint.target.iter().flat_map(|target| ["--target", target]));
    command.args(lint.select.split_whitespace());
    if lint.select.is_empty() && lint.target.is_none() {
        command.arg("--all-targets");
    }
    if !lint.features.is_empty() {
        command.args(["--features", &lint.features]);
    }
    // To be linted, the fuzz targets need no libFuzzer, and so no C++ compiler.
    command.env("CUSTOM_LIBFUZZER_PATH", root.join("fuzz/none.a"));
    Ok(Some(command))
}

/// The products go to the main workspace's folder, so that what several use is compiled once.
fn clippy_in(root: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::cargo(folder);
    command.args(["clippy", "--keep-going"]).args(arguments);
    command.env("CARGO_TARGET_DIR", toolchain::target_folder(root));
    command
}

pub(super) fn rustdoc(root: &Path) -> Result<Verdict> {
    process::run(
        process::cargo(root)
            .args(["doc", "--workspace", "--lib", "--no-deps", "--keep-going"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    Ok(Verdict::Passed)
}
