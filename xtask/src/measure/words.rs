//! How much is written in docs and in comments.

use std::path::Path;

use anyhow::Result;

use super::source::Source;
use crate::files;

/// Numbers of words.
pub(super) struct Words {
    /// Of all Markdown.
    pub(super) docs: usize,
    /// Of comments in the product's files.
    pub(super) comments: usize,
}

pub(super) fn count(root: &Path, sources: &[Source]) -> Result<Words> {
    let mut docs = 0;
    for file in files::with_ending(root, &[".md"])? {
        docs += files::read(&file)?.split_whitespace().count();
    }
    let lines = sources.iter().flat_map(|source| &source.lines);
    let comments = lines.filter_map(|line| line.trim_start().strip_prefix("//"));
    let words = |comment: &str| comment.trim_start_matches(['/', '!']).split_whitespace().count();
    Ok(Words { docs, comments: comments.map(words).sum() })
}
