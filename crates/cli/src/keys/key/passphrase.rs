//! The passphrase of a backup: asked for at the terminal, or taken from a file.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use zeroize::Zeroizing;

use crate::home::private_file;
use crate::terminal::secret_input;

/// The fewest letters of a new passphrase.
const LETTERS_MIN: usize = 12;
/// The longest passphrase that standard input brings, in bytes.
const BYTES_MAX: usize = 4096;
/// The name of a file that is standard input.
const STANDARD_INPUT: &str = "-";

/// The passphrase for a new backup: typed twice, or in `file`.
pub(super) fn new(file: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    let passphrase = of_backup(file)?;
    ensure!(
        passphrase.chars().count() >= LETTERS_MIN,
        "a passphrase of fewer than {LETTERS_MIN} letters is found by trying; take several words"
    );
    if file.is_none() {
        let again = secret_input::hidden_line("the same again:")?;
        ensure!(*again == *passphrase, "the two passphrases differ; nothing was done");
    }
    Ok(passphrase)
}

/// The passphrase of a backup: typed, or in `file` or standard input, where one line's end behind it is left out.
pub(super) fn of_backup(file: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    let Some(path) = file else {
        if !secret_input::may_ask() {
            bail!(
                "there is no terminal to ask for the passphrase at; give it by --passphrase-file"
            );
        }
        return secret_input::hidden_line("passphrase of the backup:");
    };
    if path == Path::new(STANDARD_INPUT) {
        let text = secret_input::text(BYTES_MAX)?;
        return line_of(&text).context("standard input has no passphrase");
    }
    let bytes = private_file::read_secret(path)?;
    let text = std::str::from_utf8(&bytes);
    let text = text.with_context(|| format!("{} is no text in UTF-8", path.display()))?;
    line_of(text).with_context(|| format!("{} is empty", path.display()))
}

/// A text without one line's end behind it, if there is more.
fn line_of(text: &str) -> Option<Zeroizing<String>> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.is_empty()).then(|| Zeroizing::new(line.to_owned()))
}
