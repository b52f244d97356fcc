//! Proves that the crates up to layer 3 need no operating system.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::report::Verdict;
use crate::toolchain::{BARE_METAL_TARGETS, SMALLEST_TARGET};
use crate::workspace::{self, Package};
use crate::{process, toolchain};

/// Crates that speak to an operating system; none may stand below a bare-metal crate.
const FORBIDDEN: [&str; 8] =
    ["libc", "mio", "nix", "rustix", "socket2", "tokio", "windows-sys", "wasi"];

/// Checks each such crate alone, so that no other crate lends it a feature.
pub(super) fn check(root: &Path) -> Result<Verdict> {
    let packages = workspace::bare_metal_packages(root)?;
    let mut commands = Vec::new();
    for target in BARE_METAL_TARGETS.into_iter().chain([SMALLEST_TARGET]) {
        let toolchain = toolchain::for_target(target)
            .with_context(|| format!("no toolchain for {target}; run `cargo xtask setup`"))?;
        for package in &packages {
            let mut command = toolchain.cargo(root, "check", target);
            command.args(["--quiet", "--lib", "--package", &package.name]);
            commands.push(command);
        }
    }
    process::run_all(commands)?;
    Ok(Verdict::Passed)
}

/// Looks for `std` in the features, and for [`FORBIDDEN`] crates, below each such crate.
///
/// The builds would find it too, but later, and name the victim instead of the cause.
pub(super) fn check_features(root: &Path) -> Result<Verdict> {
    let mut faults = Vec::new();
    for package in workspace::bare_metal_packages(root)? {
        faults.extend(
            hosted_dependencies(&tree(root, &package)?)
                .into_iter()
                .map(|fault| format!("{}: {fault}", package.name)),
        );
    }
    if !faults.is_empty() {
        bail!("std comes in:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// All that is compiled into `package` on a microcontroller: a line `name|features` each.
fn tree(root: &Path, package: &Package) -> Result<String> {
    let edges = "no-dev,no-build,no-proc-macro";
    process::capture(process::cargo(root).args([
        "tree",
        "--package",
        &package.name,
        "--target",
        BARE_METAL_TARGETS[0],
        "--edges",
        edges,
        "--prefix",
        "none",
        "--format",
        "{lib}|{f}",
    ]))
}

fn hosted_dependencies(tree: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for line in tree.lines() {
        let (name, features) = line.split_once('|').unwrap_or((line, ""));
        if FORBIDDEN.contains(&name) {
            faults.push(format!("{name} needs an operating system"));
        }
        if features.split(',').any(|feature| feature.trim_end_matches(" (*)") == "std") {
            faults.push(format!("{name} is used with its feature `std`"));
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

#[cfg(test)]
mod tests {
    use super::hosted_dependencies;

    #[test]
    fn std_features_and_hosted_crates_are_named_once() {
        let tree = "tenure_wire|\nserde|alloc,std\nlibc|\nserde|alloc,std (*)\nrand|std_rng\n";
        assert_eq!(
            hosted_dependencies(tree),
            ["libc needs an operating system", "serde is used with its feature `std`"]
        );
    }
}
