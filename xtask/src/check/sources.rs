//! What the first lines of each crate must say.

use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::workspace::{self, Package};

/// The crates that may use `unsafe`, and say in their first lines why.
const UNSAFE_ALLOWED: [&str; 2] = ["tenure-cipher", "tenure-vm"];

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut faults = Vec::new();
    for package in workspace::packages(root)? {
        let manifest = files::read(&package.manifest_path)?;
        if !inherits_lints(&manifest) {
            let path = files::shown(&package.manifest_path, root);
            faults.push(format!("{path}: [lints] workspace = true is missing"));
        }
        for target in package.targets.iter().filter(|target| is_product(&target.kind)) {
            let source = files::read(&target.src_path)?;
            let path = files::shown(&target.src_path, root);
            faults.extend(
                missing_lines(
                    &source,
                    needs_no_std(&package, &target.kind),
                    may_be_unsafe(&package, root),
                )
                .map(|line| format!("{path}: {line} is missing")),
            );
        }
    }
    if !faults.is_empty() {
        bail!("missing in the sources:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

fn is_product(kind: &[String]) -> bool {
    kind.iter().any(|kind| matches!(&**kind, "lib" | "rlib" | "staticlib" | "cdylib" | "bin"))
}

/// A bare-metal crate may have a binary for developers; its library has no std.
fn needs_no_std(package: &Package, kind: &[String]) -> bool {
    package.is_bare_metal() && !kind.iter().any(|kind| kind == "bin")
}

fn may_be_unsafe(package: &Package, root: &Path) -> bool {
    UNSAFE_ALLOWED.contains(&&*package.name) || package.folder().starts_with(root.join("boards"))
}

fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]");
    lines.next().is_some()
        && lines.take_while(|line| !line.starts_with('[')).any(|line| line == "workspace = true")
}

fn missing_lines(
    source: &str,
    no_std: bool,
    may_be_unsafe: bool,
) -> impl Iterator<Item = &'static str> {
    let has = |wanted: &str| source.lines().any(|line| line.trim() == wanted);
    let no_std_missing = no_std && !has("#![no_std]");
    let forbid_missing = !may_be_unsafe && !has("#![forbid(unsafe_code)]");
    let no_std = no_std_missing.then_some("#![no_std]");
    no_std.into_iter().chain(forbid_missing.then_some("#![forbid(unsafe_code)]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_attributes_are_named() {
        let all = |source, no_std, may_be_unsafe| -> Vec<_> {
            missing_lines(source, no_std, may_be_unsafe).collect()
        };
        assert_eq!(all("//! A crate.\n", true, false), ["#![no_std]", "#![forbid(unsafe_code)]"]);
        assert_eq!(all("#![no_std]\n#![forbid(unsafe_code)]", true, false), [""; 0]);
        assert_eq!(all("// #![no_std]", true, true), ["#![no_std]"]);
        assert_eq!(all("fn main() {}", false, true), [""; 0]);
    }

    #[test]
    fn lints_must_be_inherited_in_their_own_table() {
        assert!(inherits_lints("[package]\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\n[lints]\n\n[dependencies]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"a\"\n"));
    }
}
