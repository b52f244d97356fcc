//! Builds with a deliberate mistake compiled in, for tests that must find it.
//!
//! The mistake is a `--cfg` that this workspace's crates alone are compiled with, by this program in the
//! compiler's place; their dependencies are shared with all other builds. The command `tenure` refuses to be
//! compiled with one.

use std::env;
use std::process::{Command, ExitCode};

/// Names the mistakes; set for cargo, and so for us in the compiler's place.
const MISTAKES: &str = "TENURE_PLANTED";

/// Makes `cargo` call us as the compiler of the workspace's crates, with `mistakes`, whose names commas
/// part, compiled in.
pub(crate) fn plant(cargo: &mut Command, mistakes: &str) -> std::io::Result<()> {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?).env(MISTAKES, mistakes);
    Ok(())
}

/// Compiles, if that is what we were started for.
pub(crate) fn in_place_of_rustc() -> Option<ExitCode> {
    let mistakes = env::var(MISTAKES).ok()?;
    let mut arguments = env::args_os().skip(1);
    let status = Command::new(arguments.next()?)
        .args(arguments)
        .args(mistakes.split(',').flat_map(|mistake| ["--cfg", mistake]))
        .status();
    Some(if status.is_ok_and(|it| it.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
