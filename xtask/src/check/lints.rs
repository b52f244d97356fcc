//! rustfmt, clippy and rustdoc over every workspace; a warning is a failure.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::report::Verdict;
use crate::toolchain::{Toolchain, WASM_TARGET};
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

/// Guests are checked for the target that they are built for.
///
/// Benches are compiled when they run: their peers take minutes, and some need a board's target.
pub(super) fn clippy(root: &Path, fix: bool) -> Result<Verdict> {
    let mut commands = vec![clippy_in(root, root, &["--workspace", "--all-targets"])];
    let guest_arguments: &[&str] = match toolchain::for_target(WASM_TARGET) {
        Some(Toolchain::Active) => &["--workspace", "--target", WASM_TARGET],
        _ => &["--workspace", "--lib"],
    };
    for folder in workspace::guest_workspaces(root)? {
        commands.push(clippy_in(root, &folder, guest_arguments));
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
