//! The programs of this computer, looked for and run where no project has a say. `cargo xtask setup` takes this file, too.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// The folder in which a compiler is asked what it is: no project's, and nobody's but the system's. The folder for temporary
/// files wouldn't do, for rustup goes by a `rust-toolchain.toml` in each folder above.
pub(crate) const NEUTRAL: &str = "/";

/// Where programs are if nobody says.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/bin", "/bin"];

/// A program of this computer, which finds further programs in the same folders. No folder of `PATH` counts that isn't named
/// from `/` on: such a one would be another in each project, with programs of its author.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| !folder.is_absolute())
        && let Ok(path) = env::join_paths(program_folders())
    {
        command.env("PATH", path);
    }
    command
}

/// As [`command`], run where no project has a say.
pub(crate) fn neutral(program: impl AsRef<OsStr>) -> Command {
    let mut command = command(program);
    command.current_dir(NEUTRAL);
    command
}

/// The folders of `PATH` that are the same wherever one is, or else the system's: an empty `PATH` would be the current folder.
pub(super) fn program_folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> =
        env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    if folders.is_empty() {
        folders = SYSTEM_FOLDERS.map(PathBuf::from).to_vec();
    }
    folders.into_iter()
}
