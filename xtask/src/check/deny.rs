//! Licences, sources and known vulnerabilities, by `cargo deny`, where it is installed.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::report::Verdict;

pub(super) fn check(root: &Path) -> Result<Verdict> {
    if process::find_program("cargo-deny").is_none() {
        return Ok(Verdict::Skipped("not installed (cargo install cargo-deny)".into()));
    }
    process::run(process::cargo(root).args(["deny", "--workspace", "check"]))?;
    Ok(Verdict::Passed)
}
