//! The rules for the first lines of each file, and for the manifest of each package.

use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::workspace::{self, Package};

/// The crates that may use `unsafe`, and say in their first lines why.
const UNSAFE_ALLOWED: [&str; 3] = ["tenure-bignum", "tenure-cipher", "tenure-vm"];

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let members = workspace::packages(root)?;
    let minimum = members.iter().find_map(|package| package.rust_version.clone());
    let mut faults = headless_files(root)?;
    for package in &members {
        let manifest = files::read(&package.manifest_path)?;
        let path = files::shown(&package.manifest_path, root);
        if !inherits_lints(&manifest) {
            faults.push(format!("{path}: [lints] workspace = true is missing"));
        }
        faults
            .extend(manifest_faults(package, minimum.as_deref()).map(|it| format!("{path}: {it}")));
        faults.extend(attribute_faults(package, root)?);
    }
    for folder in workspace::host_workspaces(root)? {
        for package in workspace::packages(&folder)? {
            let manifest = files::read(&package.manifest_path)?;
            let path = files::shown(&package.manifest_path, root);
            let missing = OWN_LINTS.into_iter().filter(|line| !manifest.contains(line));
            faults.extend(missing.map(|line| format!("{path}: {line} is missing")));
            faults.extend(
                manifest_faults(&package, minimum.as_deref()).map(|it| format!("{path}: {it}")),
            );
        }
    }
    if !faults.is_empty() {
        bail!("missing in the sources:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The lines of the manifest of a workspace of its own, which inherits nothing.
const OWN_LINTS: [&str; 3] = [
    "missing_docs = \"deny\"",
    "unsafe_op_in_unsafe_fn = \"deny\"",
    "undocumented_unsafe_blocks = \"deny\"",
];

/// Files that don't begin by saying their one job; a file of tests is named after what it tests.
fn headless_files(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in files::with_ending(root, &[".rs"])? {
        let is_test = file.ends_with("tests.rs") || file.iter().any(|folder| folder == "tests");
        if !is_test && !files::read(&file)?.starts_with("//!") {
            let path = files::shown(&file, root);
            faults
                .push(format!("{path}: a first line `//! …` that says the file's job is missing"));
        }
    }
    Ok(faults)
}

/// One oldest release of Rust for all, and nothing goes to a registry by mistake.
fn manifest_faults(package: &Package, minimum: Option<&str>) -> impl Iterator<Item = String> {
    let old = package.rust_version.as_deref() != minimum;
    let public = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
    let release =
        old.then(|| format!("rust-version = {:?} is missing", minimum.unwrap_or_default()));
    release.into_iter().chain(public.then(|| "publish = false is missing".to_owned()))
}

fn attribute_faults(package: &Package, root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for target in package.targets.iter().filter(|target| is_product(&target.kind)) {
        let source = files::read(&target.src_path)?;
        let path = files::shown(&target.src_path, root);
        let no_std = needs_no_std(package, &target.kind);
        let missing = missing_lines(&source, no_std, may_be_unsafe(package, root));
        faults.extend(missing.map(|line| format!("{path}: {line} is missing")));
    }
    Ok(faults)
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
