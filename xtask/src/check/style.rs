//! Comments begin with the thing (`docs/style.md`): those that begin with a bare *What*, *Who*, *Whoever* or
//! *Whom* are named. A reader's taste is hurt by them, and nothing else: they make no check fail.

use std::path::Path;

use anyhow::Result;

use crate::report::Verdict;
use crate::{files, paint};

const WORDS: [&str; 4] = ["What ", "Who ", "Whoever ", "Whom "];

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let warning = paint::stdout().strong("warning:");
    for file in files::with_ending(root, &[".rs"])? {
        let text = files::read(&file)?;
        for (line, _) in text.lines().enumerate().filter(|(_, line)| is_headless(line)) {
            let place = file.strip_prefix(root)?.display();
            println!(
                "{warning} {place}:{}: the comment doesn't begin with the thing (docs/style.md)",
                line + 1
            );
        }
    }
    Ok(Verdict::Passed)
}

fn is_headless(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    WORDS.iter().any(|word| text.starts_with(word))
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
}
