//! C sources and headers are formatted, where there is a clang-format.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::report::Verdict;
use crate::{files, process};

pub(super) fn check(root: &Path, fix: bool) -> Result<Verdict> {
    let sources = files::with_ending(root, &[".c", ".h"])?;
    if sources.is_empty() {
        return Ok(Verdict::Skipped("no C sources".into()));
    }
    if process::find_program("clang-format").is_none() {
        return Ok(Verdict::Skipped("clang-format is not installed".into()));
    }
    let mode: &[&str] = if fix { &["-i"] } else { &["--dry-run", "--Werror"] };
    process::run(
        Command::new("clang-format").current_dir(root).args(mode).arg("--style=file").args(sources),
    )?;
    Ok(Verdict::Passed)
}
