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
        command.args(["fmt", "--all"]);
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

pub(super) fn clippy(root: &Path, fix: bool) -> Result<Verdict> {
    let mut here = process::cargo(root);
    here.args(["clippy", "--workspace", "--all-targets"]);
    let mut commands = vec![here];
    for folder in workspace::other_workspaces(root)? {
        commands.push(clippy_elsewhere(root, &folder));
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

/// Guests are checked for the target that they are built for; their products go to our folder, so
/// that a dependency of several workspaces is compiled once.
fn clippy_elsewhere(root: &Path, folder: &Path) -> Command {
    let is_guest = ["sdk", "apps"].iter().any(|zone| folder.starts_with(root.join(zone)));
    let has_clippy_for_guests = toolchain::for_target(WASM_TARGET) == Some(Toolchain::Active);
    let mut command = process::cargo(folder);
    command.args(["clippy", "--workspace"]);
    command.env("CARGO_TARGET_DIR", toolchain::target_folder(root));
    if is_guest && has_clippy_for_guests {
        command.args(["--target", WASM_TARGET]);
    } else {
        command.arg("--all-targets");
    }
    command
}

pub(super) fn rustdoc(root: &Path) -> Result<Verdict> {
    process::run(
        process::cargo(root)
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    Ok(Verdict::Passed)
}
