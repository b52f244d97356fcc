//! The command `tenure`, as somebody runs it who has just built it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, toolchain};

/// How much the compiler does for speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// Where cargo puts the command.
pub(crate) fn path(root: &Path, profile: Profile) -> Result<PathBuf> {
    let mut metadata = process::cargo(root);
    metadata.args(["metadata", "--format-version=1", "--no-deps"]);
    let metadata: serde_json::Value = serde_json::from_str(&process::capture(&mut metadata)?)?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let profile = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    Ok(Path::new(folder).join(profile).join("tenure"))
}

/// Builds the command, and says where it is.
pub(crate) fn built(root: &Path, profile: Profile) -> Result<PathBuf> {
    let mut build = process::cargo(root);
    build.args(["build", "--quiet", "--package", "tenure-cli"]);
    process::run(build.args((profile == Profile::Release).then_some("--release")))?;
    path(root, profile)
}

/// The command as the last build left it, under a name of its own: a later build with other features leaves that alone.
pub(crate) fn kept(root: &Path) -> Result<PathBuf> {
    let folder = toolchain::temporary_folder(root);
    let (left, kept) = (path(root, Profile::Debug)?, folder.join("tenure"));
    let keep = || {
        std::fs::create_dir_all(&folder)?;
        match std::fs::remove_file(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::hard_link(&left, &kept).or_else(|_| std::fs::copy(&left, &kept).map(drop))
    };
    keep().with_context(|| format!("cannot keep {} as {}", left.display(), kept.display()))?;
    Ok(kept)
}

/// Runs a command in `folder`, with keys of its own there, and without the hub and the device of the person who runs us.
pub(crate) fn alone_in<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.current_dir(folder).env("TENURE_HOME", folder.join("home"));
    command.env_remove("TENURE_HUB").env_remove("TENURE_DEVICE")
}
