//! Each row of `docs/threats.md` names tests that drive its resource to its bound, and these exist.

use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::test_names::{self, Tests};

const DOCUMENT: &str = "docs/threats.md";
/// The word by which a row says that it has no test.
const DEFECT: &str = "a defect";

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let faults = faults(&files::read(&root.join(DOCUMENT))?, &test_names::all(root)?);
    if !faults.is_empty() {
        bail!("{DOCUMENT}:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The rows without a test, and the names that no test has; a page without rows is a fault too.
fn faults(text: &str, tests: &Tests) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        // In prose a test is told from a setting by its length.
        let names: Vec<&str> = match cells(line) {
            Some(cells) => code_in(cells.last().copied().unwrap_or_default()).collect(),
            None => code_in(line).filter(|name| name.matches('_').count() >= 4).collect(),
        };
        let unknown = names.iter().filter(|name| !tests.contains_key(**name));
        faults.extend(unknown.map(|name| format!("{number}: no test has the name `{name}`")));
        let is_row = cells(line).is_some_and(|cells| !cells[0].trim_matches(['-', ' ']).is_empty());
        let is_head = text.lines().nth(number).is_some_and(|next| next.starts_with("|---"));
        if !is_row || is_head {
            continue;
        }
        rows += 1;
        if names.is_empty() && !line.contains(DEFECT) {
            faults.push(format!("{number}: a row without a test that doesn't say `{DEFECT}`"));
        }
    }
    if rows == 0 {
        faults.push("no table has a row".to_owned());
    }
    faults
}

/// The cells of a table's line; `None` for other lines.
pub(super) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').collect())
}

/// Whatever stands between backquotes.
pub(super) fn code_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| resource | test |\n|---|---|\n";

    fn faults_of(rows: &str) -> Vec<String> {
        let tests = [("memory_is_bounded".to_owned(), ["memory.rs".to_owned()].into())].into();
        faults(&format!("{HEAD}{rows}"), &tests)
    }

    #[test]
    fn rows_name_tests_that_exist_or_say_that_they_have_none() {
        assert!(faults_of("| `memory_max` | `memory_is_bounded` |").is_empty());
        assert!(faults_of("| air | a defect: no bound |").is_empty());
        assert_eq!(faults_of("| memory | `memory_is_free` |").len(), 1);
        assert_eq!(faults_of("| memory | – |").len(), 1);
    }

    #[test]
    fn prose_names_tests_that_exist() {
        let row = "| memory | `memory_is_bounded` |\n";
        let faults_beside = |prose: &str| faults_of(&format!("{row}{prose}"));
        assert_eq!(faults_beside("`nobody_takes_all_of_the_memory` holds it.").len(), 1);
        assert!(faults_beside("`memory_max` bounds it.").is_empty());
    }

    #[test]
    fn page_without_rows_is_a_fault() {
        assert_eq!(faults_of(""), ["no table has a row"]);
    }
}
