//! Published checks, from npm by the lock file beside this.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the installed packages; none if npm is missing, and then the test counts as skipped.
pub(crate) fn installed() -> Option<PathBuf> {
    if Command::new("npm").arg("--version").output().is_err() {
        tenure_testbed::skip_without_tool("npm");
        return None;
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/npm");
    let lock = std::fs::read(own.join("package-lock.json")).unwrap();
    let folder = target().join("tenure-hub-tests");
    let modules = folder.join("node_modules");
    // npm leaves a lock file of its own behind once everything is there.
    let is_current = modules.join(".package-lock.json").exists()
        && std::fs::read(folder.join("package-lock.json")).is_ok_and(|known| known == lock);
    if !is_current {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(own.join("package.json"), folder.join("package.json")).unwrap();
        std::fs::write(folder.join("package-lock.json"), lock).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        assert!(npm.current_dir(&folder).status().unwrap().success(), "npm ci");
    }
    Some(modules)
}

/// The folder of what cargo builds.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_path_buf()
}
