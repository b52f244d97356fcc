//! Dependencies, by tools that are run where they are installed: licences, sources and known
//! vulnerabilities by `cargo deny`, those that nothing uses by `cargo machete`.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::report::Verdict;

pub(super) fn check(root: &Path) -> Result<Verdict> {
    run_where_installed("deny", &["--workspace", "check"], root)
}

/// It looks at all workspaces below `root`.
pub(super) fn machete(root: &Path) -> Result<Verdict> {
    run_where_installed("machete", &["--skip-target-dir"], root)
}

fn run_where_installed(tool: &str, arguments: &[&str], root: &Path) -> Result<Verdict> {
    if process::find_program(&format!("cargo-{tool}")).is_none() {
        return Ok(Verdict::Skipped(format!("not installed (cargo install cargo-{tool})")));
    }
    process::run(process::cargo(root).arg(tool).args(arguments))?;
    Ok(Verdict::Passed)
}
