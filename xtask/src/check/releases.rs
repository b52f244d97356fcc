//! One release of a dependency in all workspaces, as far as one release does for all of them.
//!
//! Then cargo compiles it, and what depends on it, once for all boards of a processor. Two releases of one procedural macro
//! are enough for nothing to be shared.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::report::Verdict;
use crate::{files, workspace};

const LOCK: &str = "Cargo.lock";

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// None of what lies in the repository.
    source: Option<String>,
}

/// The releases of a dependency's line with the files that have each.
type Releases = BTreeMap<String, BTreeMap<String, Vec<String>>>;

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut folders = workspace::other_workspaces(root)?;
    folders.push(root.to_path_buf());
    let mut releases = Releases::new();
    for file in folders.iter().map(|folder| folder.join(LOCK)).filter(|file| file.is_file()) {
        let shown = files::shown(&file, root).to_string();
        add(&mut releases, &files::read(&file)?, &shown).context(shown)?;
    }
    let faults: Vec<String> = differing(&releases).collect();
    if !faults.is_empty() {
        bail!(
            "`cargo update NAME --precise RELEASE` in a folder makes one of these:\n  {}",
            faults.join("\n  ")
        );
    }
    Ok(Verdict::Passed)
}

/// Adds the packages of the lock file `text`, which is called `file`.
fn add(releases: &mut Releases, text: &str, file: &str) -> Result<()> {
    let lock: Lock = toml::from_str(text)?;
    for locked in lock.package.into_iter().filter(|locked| locked.source.is_some()) {
        let line = format!("{} {}", locked.name, line(&locked.version));
        let files = releases.entry(line).or_default().entry(locked.version).or_default();
        files.push(file.to_owned());
    }
    Ok(())
}

/// The part of a version that compatible releases have in common: up to the first number that isn't zero.
fn line(version: &str) -> String {
    let numbers = version.split(['+', '-']).next().unwrap_or(version);
    let numbers: Vec<&str> = numbers.split('.').collect();
    let first = numbers.iter().position(|number| *number != "0").unwrap_or(numbers.len() - 1);
    numbers[..=first].join(".")
}

/// The lines with several releases, in words.
fn differing(releases: &Releases) -> impl Iterator<Item = String> {
    let several = releases.iter().filter(|(_, releases)| releases.len() > 1);
    several.map(|(line, releases)| {
        let releases = releases.iter().map(|(release, files)| match &files[..] {
            [file] => format!("{release} in {file}"),
            [file, others @ ..] => format!("{release} in {file} and {} more", others.len()),
            [] => release.clone(),
        });
        format!("{line}: {}", releases.collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(locks: &[(&str, &[&str])]) -> Vec<String> {
        let mut releases = Releases::new();
        for (file, packages) in locks {
            let packages = packages.iter().filter_map(|package| package.split_once(' '));
            let text: String = packages
                .map(|(name, version)| {
                    let source = if name == "own" { "" } else { "source = \"registry\"\n" };
                    format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}")
                })
                .collect();
            add(&mut releases, &text, file).unwrap();
        }
        differing(&releases).collect()
    }

    #[test]
    fn compatible_releases_of_a_dependency_that_differ_are_named_with_their_files() {
        let locks: [(&str, &[&str]); 3] = [
            ("a", &["syn 2.0.1", "syn 3.0.9", "own 0.1.0"]),
            ("b", &["syn 3.0.9", "rand 0.9.5", "own 0.1.1"]),
            ("c", &["syn 3.0.10", "rand 0.8.5"]),
        ];
        assert_eq!(faults(&locks), ["syn 3: 3.0.10 in c, 3.0.9 in a and 1 more"]);
        assert!(faults(&locks[..2]).is_empty());
    }

    #[test]
    fn releases_of_a_line_begin_with_the_same_numbers() {
        let lines = ["1.2.3", "0.7.11", "0.0.3", "1.1.5+spec-1.1.0", "1.0.0-beta.1", "0.0.0"];
        assert_eq!(lines.map(line), ["1", "0.7", "0.0.3", "1", "1", "0.0.0"]);
    }
}
