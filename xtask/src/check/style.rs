//! Comments begin with the thing (`docs/style.md`): those that begin with a bare *What*, *Who*, *Whoever* or
//! *Whom* are counted in each package, against a budget that only falls.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files;
use crate::report::Verdict;

/// How many such comments each folder may have.
const BUDGET: &str = "docs/style-budget.toml";
const WORDS: [&str; 4] = ["What ", "Who ", "Whoever ", "Whom "];

/// With `fix` the budget falls to what is left.
pub(super) fn check(root: &Path, fix: bool) -> Result<Verdict> {
    let text = files::read(&root.join(BUDGET))?;
    let budget: BTreeMap<String, usize> =
        toml::from_str(&text).with_context(|| format!("{BUDGET} is damaged"))?;
    let counts = counts(root)?;
    if fix {
        std::fs::write(root.join(BUDGET), lowered(&text, &budget, &counts))
            .with_context(|| format!("cannot write {BUDGET}"))?;
    }
    let faults = faults(&budget, &counts);
    if !faults.is_empty() {
        bail!(
            "comments that don't begin with the thing (docs/style.md):\n  {}",
            faults.join("\n  ")
        );
    }
    Ok(Verdict::Passed)
}

/// The budget's text with no more for each folder than it still needs.
fn lowered(
    text: &str,
    budget: &BTreeMap<String, usize>,
    counts: &BTreeMap<String, usize>,
) -> String {
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let mut lowered: String = head.map(|line| format!("{line}\n")).collect();
    for (folder, most) in budget {
        let left = counts.get(folder).copied().unwrap_or_default().min(*most);
        if left > 0 {
            lowered += &format!("{folder:?} = {left}\n");
        }
    }
    lowered
}

/// How many such comments there are in each folder that has any.
fn counts(root: &Path) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for file in files::with_ending(root, &[".rs"])? {
        let count = files::read(&file)?.lines().filter(|line| is_headless(line)).count();
        if count > 0 {
            *counts.entry(folder(file.strip_prefix(root)?)).or_default() += count;
        }
    }
    Ok(counts)
}

/// `crates/vm` for a file there, `xtask` for one in that folder.
fn folder(file: &Path) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    match &*parts {
        [first, ..] if first == "xtask" || first == "fuzz" => first.clone().into_owned(),
        [first, second, ..] => format!("{first}/{second}"),
        _ => String::new(),
    }
}

fn is_headless(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    WORDS.iter().any(|word| text.starts_with(word))
}

fn faults(budget: &BTreeMap<String, usize>, counts: &BTreeMap<String, usize>) -> Vec<String> {
    let mut faults = Vec::new();
    for (folder, count) in counts {
        let most = budget.get(folder).copied().unwrap_or_default();
        if *count > most {
            faults.push(format!("{folder}: {count}, at most {most}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_begin_with_a_bare_pronoun_are_headless() {
        assert!(is_headless("    /// What the last poll said."));
        assert!(is_headless("//! Who may call."));
        assert!(!is_headless("    /// The last poll's outcome: what it said."));
        assert!(!is_headless("let what = \"// What\";"));
        assert!(!is_headless("/// Whatever comes."));
    }

    fn map(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn a_folder_over_its_budget_is_named() {
        let budget = map(&[("crates/a", 2), ("crates/b", 1)]);
        let counts = map(&[("crates/a", 3), ("crates/b", 1), ("xtask", 1)]);
        assert_eq!(faults(&budget, &counts), ["crates/a: 3, at most 2", "xtask: 1, at most 0"]);
    }

    #[test]
    fn a_budget_falls_to_what_is_left_and_never_rises() {
        let budget = map(&[("crates/a", 2), ("crates/b", 1), ("crates/c", 3)]);
        let counts = map(&[("crates/a", 4), ("crates/c", 1)]);
        let text = "# Falls.\n\"crates/a\" = 2\n";
        assert_eq!(
            lowered(text, &budget, &counts),
            "# Falls.\n\"crates/a\" = 2\n\"crates/c\" = 1\n"
        );
    }
}
