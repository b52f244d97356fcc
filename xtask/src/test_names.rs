//! The names of all tests, for pages that name them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use crate::files;

/// The names of tests, without their modules, and the files that have one of the name, as seen from the root.
pub(crate) type Tests = BTreeMap<String, BTreeSet<String>>;

/// All tests in all sources below `root`.
pub(crate) fn all(root: &Path) -> Result<Tests> {
    let mut tests = Tests::new();
    for file in files::with_ending(root, &[".rs"])? {
        let shown = files::shown(&file, root).to_string();
        for name in tests_in(&files::read(&file)?) {
            tests.entry(name.to_owned()).or_default().insert(shown.clone());
        }
    }
    Ok(tests)
}

/// The names of the functions that follow a `#[test]`.
pub(crate) fn tests_in(source: &str) -> impl Iterator<Item = &str> {
    source.split("#[test]").skip(1).filter_map(|rest| {
        let (_, name) = rest.split_once("fn ")?;
        name.split(['(', '<']).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_functions_that_follow_their_attribute() {
        let source = "#[test]\n#[ignore]\nfn one_two() {}\nfn three() {}\n#[test]\nfn four() {}";
        assert_eq!(tests_in(source).collect::<Vec<_>>(), ["one_two", "four"]);
    }
}
