//! Which packages' tests a change can break: those that depend on what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{self, Package};
use crate::{files, process};

/// Files and folders on which the build of everything depends.
const OF_ALL: [&str; 5] = ["Cargo.toml", "Cargo.lock", "xtask", "rust-toolchain.toml", ".cargo"];

/// The packages of the main workspace to test, each with the reason.
pub(super) type Chosen = BTreeMap<String, String>;

/// The packages that depend on what changed since `base`, or else since main was left.
pub(super) fn packages(base: Option<&str>, root: &Path) -> Result<Chosen> {
    let packages = workspace::packages(root)?;
    let changed = changed_files(base, root)?;
    let mut sources = BTreeMap::new();
    for package in &packages {
        let mut text = String::new();
        for file in files::with_ending(package.folder(), &[".rs", ".toml"])? {
            text += &files::read(&file)?;
        }
        sources.insert(package.name.clone(), text);
    }
    Ok(choose(&packages, &changed, root, |package, word| names(&sources[&package.name], word)))
}

/// The files that differ from `base`, and those that git doesn't know yet.
fn changed_files(base: Option<&str>, root: &Path) -> Result<Vec<PathBuf>> {
    let git = |words: &[&str]| {
        let text = process::capture(Command::new("git").args(words).current_dir(root));
        text.with_context(|| format!("`git {}` says nothing of changes", words.join(" ")))
    };
    let base = match base {
        Some(base) => base.to_owned(),
        None => git(&["merge-base", "main", "HEAD"])?.trim().to_owned(),
    };
    let differing = git(&["diff", "--name-only", "--no-renames", "-z", &base, "--"])?;
    let unknown = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = differing.split_terminator('\0').chain(unknown.split_terminator('\0'));
    Ok(names.map(PathBuf::from).collect())
}

/// `names` says whether a package's sources name a file or folder of the repository's root: tests read
/// pages, scenarios and guests that lie outside of all packages.
fn choose(
    packages: &[Package],
    changed: &[PathBuf],
    root: &Path,
    names: impl Fn(&Package, &str) -> bool,
) -> Chosen {
    let mut chosen = Chosen::new();
    for file in changed {
        if let Some(cause) = OF_ALL.iter().find(|cause| file.starts_with(cause)) {
            let all = packages.iter().map(|one| (one.name.clone(), format!("{cause} changed")));
            return all.collect();
        }
        let owners =
            packages.iter().filter(|package| root.join(file).starts_with(package.folder()));
        let owner = owners.max_by_key(|package| package.folder().components().count());
        if let Some(owner) = owner {
            let reason = || format!("{} changed", file.display());
            chosen.entry(owner.name.clone()).or_insert_with(reason);
            continue;
        }
        let top = file.iter().next().unwrap_or_default().to_string_lossy();
        for package in packages.iter().filter(|package| names(package, &top)) {
            let reason = || format!("its sources name {top}, and {} changed", file.display());
            chosen.entry(package.name.clone()).or_insert_with(reason);
        }
    }
    add_dependents(packages, &mut chosen);
    chosen
}

/// Adds what depends on the chosen packages. What only tests use reaches their package, and not those above it.
fn add_dependents(packages: &[Package], chosen: &mut Chosen) {
    let mut built: BTreeSet<String> = chosen.keys().cloned().collect();
    let mut left: Vec<String> = built.iter().cloned().collect();
    while let Some(name) = left.pop() {
        for package in packages {
            let uses = package.dependencies.iter().filter(|one| one.name == name);
            let (for_tests, for_builds): (Vec<_>, Vec<_>) = uses.partition(|one| one.is_dev());
            if !for_tests.is_empty() || !for_builds.is_empty() {
                let reason = || format!("depends on {name}");
                chosen.entry(package.name.clone()).or_insert_with(reason);
            }
            if !for_builds.is_empty() && built.insert(package.name.clone()) {
                left.push(package.name.clone());
            }
        }
    }
}

/// Whether a path in a source's text goes through that file or folder.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        before.ends_with(['/', '"']) && after.starts_with(['/', '"'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, folder: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.into(),
            rename: None,
            kind: kind.map(str::to_owned),
            path: None,
        };
        Package::of(name, Path::new("/project").join(folder), uses.iter().map(dependency).collect())
    }

    /// `cli` is built with `node`, and that with `wire`; the tests of `wire` use `testbed`.
    fn packages() -> [Package; 5] {
        [
            package("wire", "crates/wire", &[("testbed", Some("dev"))]),
            package("node", "crates/node", &[("wire", None)]),
            package("cli", "crates/cli", &[("node", None), ("vm", Some("build"))]),
            package("vm", "crates/vm", &[]),
            package("testbed", "crates/testbed", &[]),
        ]
    }

    fn chosen(changed: &[&str]) -> Vec<String> {
        let files: Vec<_> = changed.iter().map(PathBuf::from).collect();
        let names = |package: &Package, word: &str| package.name == "cli" && word == "docs";
        choose(&packages(), &files, Path::new("/project"), names).into_keys().collect()
    }

    #[test]
    fn what_depends_on_a_changed_file_is_chosen_by_all_ways() {
        assert_eq!(chosen(&["crates/wire/src/lib.rs"]), ["cli", "node", "wire"]);
        assert_eq!(chosen(&["crates/vm/tests/spec.rs"]), ["cli", "vm"]);
        assert!(chosen(&[]).is_empty());
    }

    #[test]
    fn what_only_tests_use_reaches_their_package_and_none_above_it() {
        assert_eq!(chosen(&["crates/testbed/src/skip.rs"]), ["testbed", "wire"]);
        let both = ["crates/testbed/src/skip.rs", "crates/wire/src/lib.rs"];
        assert_eq!(chosen(&both), ["cli", "node", "testbed", "wire"]);
    }

    #[test]
    fn file_outside_all_packages_is_tested_by_those_that_name_it() {
        assert_eq!(chosen(&["docs/tutorial.md"]), ["cli"]);
        assert!(chosen(&["CHANGELOG.md"]).is_empty());
    }

    #[test]
    fn what_all_are_built_with_has_all_tested() {
        assert_eq!(chosen(&["Cargo.lock"]).len(), packages().len());
        assert_eq!(chosen(&["xtask/src/main.rs"]).len(), packages().len());
        assert_eq!(chosen(&["crates/cli/Cargo.toml"]), ["cli"]);
    }

    #[test]
    fn path_in_a_source_is_found_by_its_parts() {
        assert!(names("include_str!(\"../../../docs/tutorial.md\")", "docs"));
        assert!(names("root.join(\"docs\")", "docs"));
        assert!(!names("//! docs of a crate", "docs") && !names("\"my_docs/\"", "docs"));
    }
}
