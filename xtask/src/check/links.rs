//! Links in the Markdown files lead somewhere: to a file here, and to a heading in it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut faults = Vec::new();
    for file in files::with_ending(root, &[".md"])? {
        let text = files::read(&file)?;
        for link in links(&text) {
            if let Some(fault) = fault(&file, link.target) {
                let (path, line) = (files::shown(&file, root), link.line);
                faults.push(format!("{path}:{line}: {} {fault}", link.target));
            }
        }
    }
    if !faults.is_empty() {
        bail!("dead links:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// Why `target`, written in `file`, leads nowhere; addresses in the net are not tried.
fn fault(file: &Path, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let destination: PathBuf = match path {
        "" => file.to_path_buf(),
        _ => file.parent()?.join(path),
    };
    if !destination.exists() {
        return Some("does not exist");
    }
    if heading.is_empty() || destination.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = std::fs::read_to_string(&destination).ok()?;
    let known = prose_lines(&text).any(|(_, line)| anchor(line).as_deref() == Some(heading));
    (!known).then_some("names no heading there")
}

struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// The targets of `[text](target)` and `[text]: target` outside code.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (number, line) in prose_lines(text) {
        // Every second part lies between backquotes: it is code.
        for prose in line.split('`').step_by(2) {
            for rest in prose.split("](").skip(1) {
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                found.push(Link { line: number, target });
            }
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            found.push(Link { line: number, target: target.trim() });
        }
    }
    found
}

/// The lines outside fenced code, with their numbers.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// The anchor that GitHub gives to a heading; nothing for a line that is none.
fn anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_prose_are_found_with_their_lines() {
        let text = "See [a](one.md#x) and [b](two.md \"title\").\n```\n[c](no.md)\n```\n`[d](no.md)`\n[e]: three.md\n";
        let found: Vec<_> = links(text).iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(found, [(1, "one.md#x"), (1, "two.md"), (6, "three.md")]);
    }

    #[test]
    fn headings_become_anchors_as_on_github() {
        assert_eq!(anchor("## What it *is*, in `code`").as_deref(), Some("what-it-is-in-code"));
        assert_eq!(anchor("#hashtag"), None);
        assert_eq!(anchor("plain"), None);
    }
}
