//! C sources and headers have the same simple form everywhere. It is looked at here, because the releases of
//! clang-format disagree with each other, and systems carry different ones.

use std::path::Path;

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;

/// The longest line, in characters.
const LINE_MAX: usize = 120;
/// The word in the first line of a file that a program writes; its lines may be as long as they come.
const GENERATED: &str = "Generated";

pub(super) fn check(root: &Path, fix: bool) -> Result<Verdict> {
    let mut faults = Vec::new();
    for path in files::with_ending(root, &[".c", ".h"])? {
        let text = files::read(&path)?;
        let mended = mended(&text);
        if fix && mended != text {
            std::fs::write(&path, &mended)?;
        }
        let found = faults_in(if fix { &mended } else { &text });
        let shown = files::shown(&path, root);
        faults.extend(found.into_iter().map(|(line, what)| format!("{shown}:{line}: {what}")));
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// Each fault with its line.
fn faults_in(text: &str) -> Vec<(usize, String)> {
    let is_generated = text.lines().next().is_some_and(|first| first.contains(GENERATED));
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut fault = |what: &str| faults.push((index + 1, what.to_owned()));
        if line.contains('\t') {
            fault("a tab");
        }
        if line.ends_with([' ', '\r']) {
            fault("blanks at the end of the line");
        }
        if !is_generated && line.chars().count() > LINE_MAX {
            fault(&format!("more than {LINE_MAX} characters"));
        }
    }
    if text.ends_with("\n\n") || !text.ends_with('\n') {
        faults.push((text.lines().count(), "the file doesn't end with one line feed".to_owned()));
    }
    faults
}

/// The same text in its form; lines that are too long stay.
fn mended(text: &str) -> String {
    let lines = text.lines().map(|line| line.replace('\t', "    ").trim_end().to_owned());
    let lines = lines.collect::<Vec<_>>().join("\n");
    format!("{}\n", lines.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found_in_its_line_and_mended_but_for_long_lines() {
        let long = "x".repeat(LINE_MAX + 1);
        let text = format!("int a;\n\tint b;\nint c; \n{long}\n\n");
        let lines: Vec<usize> = faults_in(&text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
        let left = faults_in(&mended(&text));
        assert_eq!(left, [(4, "more than 120 characters".to_owned())]);
        assert!(faults_in(&format!("/* Generated. */\n{long}\n")).is_empty());
    }
}
