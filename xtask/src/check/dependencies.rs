//! Every dependency has a line in `docs/dependencies.md`, and every line there a dependency.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::workspace::{self, Package};

const DOCUMENT: &str = "docs/dependencies.md";

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut used = external_dependencies(&workspace::packages(root)?);
    for folder in workspace::other_workspaces(root)? {
        used.append(&mut external_dependencies(&workspace::packages(&folder)?));
    }
    let document = files::read(&root.join(DOCUMENT))?;
    let documented = documented_names(&document);

    let missing = used
        .iter()
        .filter(|(name, _)| !documented.contains(&name.as_str()))
        .map(|(name, user)| format!("`{name}` (used by {user}) has no line there"));
    let stale = documented
        .iter()
        .filter(|name| !used.contains_key(**name))
        .map(|name| format!("`{name}` has a line there, but nothing uses it"));
    let faults: Vec<_> = missing.chain(stale).collect();
    if !faults.is_empty() {
        bail!("{DOCUMENT}:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The direct dependencies from outside the repository, each with one of its users.
fn external_dependencies(packages: &[Package]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for package in packages {
        for dependency in package.dependencies.iter().filter(|it| it.path.is_none()) {
            found.entry(dependency.name.clone()).or_insert_with(|| package.name.clone());
        }
    }
    found
}

/// The names in the first column of the tables: `` | `name` | … ``.
fn documented_names(document: &str) -> Vec<&str> {
    document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::documented_names;

    #[test]
    fn names_stand_in_the_first_column() {
        let document = "| crate | for |\n|---|---|\n| `serde` | `postcard` |\ntext | `no` |\n";
        assert_eq!(documented_names(document), ["serde"]);
    }
}
