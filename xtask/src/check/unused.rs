//! Each dependency of a package is named in the package's sources.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::workspace::{self, Dependency, Package};

/// Packages of others whose library has another name.
const LIBRARIES: [(&str, &str); 1] = [("rustls-webpki", "webpki")];

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut folders = workspace::other_workspaces(root)?;
    folders.push(root.to_path_buf());
    let mut packages = Vec::new();
    for folder in folders {
        packages.extend(workspace::packages(&folder)?);
    }
    let mut faults = Vec::new();
    for package in &packages {
        let sources = sources(package.folder())?;
        let is_named = |one: &Dependency| names(&sources, &identifier(one, &packages));
        let unnamed = package.dependencies.iter().filter(|one| !is_named(one));
        faults.extend(unnamed.map(|one| {
            let path = files::shown(&package.manifest_path, root);
            format!("{path}: `{}` is used nowhere", one.name)
        }));
    }
    if !faults.is_empty() {
        bail!("dependencies:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The text of all sources in a package's folder, and of those elsewhere that they take in by `#[path]`.
fn sources(folder: &Path) -> Result<String> {
    let mut text = String::new();
    let mut left = files::with_ending(folder, &[".rs"])?;
    let mut seen = BTreeSet::new();
    while let Some(file) = left.pop() {
        let file = file.canonicalize()?;
        if !seen.insert(file.clone()) {
            continue;
        }
        let source = files::read(&file)?;
        let beside = file.parent().unwrap_or(folder);
        for taken in paths_in(&source).map(|path| beside.join(path)) {
            match taken.parent().filter(|_| taken.ends_with("mod.rs")) {
                Some(module) => left.extend(files::with_ending(module, &[".rs"])?),
                None => left.push(taken),
            }
        }
        text += &source;
    }
    Ok(text)
}

/// The files in `#[path = "…"]`.
fn paths_in(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"))
}

/// The name by which sources speak of a dependency: another one that the manifest gives it, else that of its library.
fn identifier(dependency: &Dependency, ours: &[Package]) -> String {
    let package = ours.iter().find(|package| package.name == dependency.name);
    let library = package.and_then(|package| {
        package.targets.iter().find(|target| target.kind.iter().any(|kind| kind.contains("lib")))
    });
    let of_others = LIBRARIES.iter().find(|(name, _)| *name == dependency.name);
    let name = dependency.rename.as_deref().or(library.map(|library| library.name.as_str()));
    name.or(of_others.map(|(_, name)| *name)).unwrap_or(&dependency.name).replace('-', "_")
}

/// Whether the word stands in the text.
fn names(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_taken_in_from_elsewhere_are_found() {
        let source = "#[path = \"../other/mod.rs\"]\nmod other;\n    #[path = \"a.rs\"]\nmod b;\n";
        assert_eq!(paths_in(source).collect::<Vec<_>>(), ["../other/mod.rs", "a.rs"]);
    }

    #[test]
    fn a_word_is_found_whole_alone() {
        assert!(names("use serde::Serialize;", "serde") && names("toml", "toml"));
        assert!(!names("use serde_json::Value;", "serde") && !names("my_toml", "toml"));
    }
}
