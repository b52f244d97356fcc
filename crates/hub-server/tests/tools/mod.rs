//! Published checks, from npm by the lock file beside this.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};

use tenure_testbed::Packages;

/// The folder of the installed packages; none if npm is missing, and then the test counts as skipped.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = Packages::HubChecks.of_test(env!("CARGO_TARGET_TMPDIR"))?;
    Some(folder.join("node_modules"))
}

/// The folder of what cargo builds.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_path_buf()
}
