//! A page that says where its tests are is right: each test that a table names under the head `test` is there, and is
//! in one of the places that the row, or a sentence *The tests are in …* of its section, names.

use std::path::Path;

use anyhow::{Result, bail};

use crate::report::Verdict;
use crate::test_names::{self, Tests};
use crate::{check::threats, files};

/// The words before the places of a section's tests, or of those whose row names none.
const PLACES: [&str; 2] = ["ests are in ", "ests without a path are in "];
/// The head of the column with tests.
const HEAD: [&str; 2] = ["test", "tests"];
/// A test's name is told from other code by its words.
const WORDS_MIN: usize = 3;

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let tests = test_names::all(root)?;
    let mut faults = Vec::new();
    for page in files::with_ending(&root.join("docs"), &[".md"])? {
        let found = faults_of(&files::read(&page)?, &tests, |place| root.join(place).exists());
        let page = files::shown(&page, root).to_string();
        faults.extend(found.into_iter().map(|fault| format!("{page}:{fault}")));
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

fn faults_of(page: &str, tests: &Tests, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let lines: Vec<&str> = page.lines().collect();
    let starts = (0..lines.len()).filter(|at| *at == 0 || lines[*at].starts_with('#'));
    let starts: Vec<usize> = starts.collect();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(lines.len());
        let section = lines[*start..end].join(" ");
        let places = places_in(&section);
        let missing = places.iter().filter(|place| !exists(place));
        faults.extend(missing.map(|place| format!("{}: there is no {place}", start + 1)));
        let mut is_tests = false;
        for number in *start..end {
            let Some(cells) = threats::cells(lines[number]) else { continue };
            let last = cells.last().copied().unwrap_or_default();
            if lines.get(number + 1).is_some_and(|next| next.starts_with("|---")) {
                is_tests = HEAD.contains(&last.trim());
            } else if is_tests {
                let found = faults_of_cell(last, &places, tests);
                faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", number + 1)));
            }
        }
    }
    faults
}

fn faults_of_cell(cell: &str, places: &[&str], tests: &Tests) -> Vec<String> {
    let own: Vec<&str> = threats::code_in(cell).filter(|code| is_place(code)).collect();
    let places = if own.is_empty() { places } else { &own };
    let mut faults = Vec::new();
    for name in threats::code_in(cell).filter(|code| is_name(code)) {
        let Some(in_files) = tests.get(name) else {
            faults.push(format!("no test has the name `{name}`"));
            continue;
        };
        let is_there = |file: &String| places.iter().any(|place| is_below(file, place));
        if !places.is_empty() && !in_files.iter().any(is_there) {
            let file = in_files.first().map(String::as_str).unwrap_or_default();
            faults.push(format!("`{name}` is in {file}, which isn't in {}", places.join(", ")));
        }
    }
    faults
}

/// The paths in the sentences that say where tests are.
fn places_in(section: &str) -> Vec<&str> {
    let starts = PLACES.into_iter().flat_map(|words| section.split(words).skip(1));
    let sentences = starts.map(|rest| {
        let end = rest.find(". ").or_else(|| rest.find(": ")).unwrap_or(rest.len());
        &rest[..end]
    });
    sentences.flat_map(threats::code_in).filter(|code| is_place(code)).collect()
}

fn is_place(code: &str) -> bool {
    code.contains('/') && !code.contains(' ')
}

fn is_name(code: &str) -> bool {
    code.matches('_').count() + 1 >= WORDS_MIN
        && code
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_')
}

fn is_below(file: &str, place: &str) -> bool {
    let rest = file.strip_prefix(place.trim_end_matches(['/', '…']));
    // `crates/x/tests/name` is the program whose parts lie there, and its file.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(page: &str) -> Vec<String> {
        let test = |name: &str, file: &str| (name.to_owned(), [file.to_owned()].into());
        let tests = [
            test("memory_is_bounded", "crates/vm/tests/memory.rs"),
            test("time_is_bounded", "crates/kernel/src/time.rs"),
        ];
        faults_of(page, &tests.into(), |place| place != "crates/gone")
    }

    const TABLE: &str = "| what | test |\n|---|---|\n| memory | `memory_is_bounded` |\n";

    #[test]
    fn tests_are_in_one_of_the_places_that_the_section_names() {
        let page = |places: &str| format!("# A\n\nThe tests are in {places}. More.\n\n{TABLE}");
        assert!(faults(&page("`crates/vm/tests`")).is_empty());
        assert!(faults(&page("`crates/kernel` and `crates/vm/tests/memory`")).is_empty());
        assert!(faults(&page("`memory.rs` somewhere")).is_empty());
        assert_eq!(
            faults(&page("`crates/kernel`")),
            [
                "7: `memory_is_bounded` is in crates/vm/tests/memory.rs, which isn't in crates/kernel"
            ]
        );
        assert_eq!(faults(&page("`crates/v`")).len(), 1);
        assert_eq!(faults(&page("`crates/vm`, `crates/gone`")), ["1: there is no crates/gone"]);
    }

    #[test]
    fn place_in_a_row_goes_before_that_of_its_section_and_other_sections_have_none() {
        let row = "| time | `time_is_bounded` in `crates/kernel/src` |\n| same | the same |\n";
        let page = format!("# A\n\nTests are in `crates/vm`.\n\n{TABLE}{row}");
        assert!(faults(&page).is_empty());
        let page = format!("{page}\n# B\n\n{}", TABLE.replace("memory_is", "time_is"));
        assert!(faults(&page).is_empty());
        assert_eq!(faults(&TABLE.replace("memory_is", "space_is")).len(), 1);
    }
}
