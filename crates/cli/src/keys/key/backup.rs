//! `tenure key backup`: a copy of the user's keys that outlives the computer, as an encrypted file or as words.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::pair::Pair;
use super::proof::Check;
use super::{passphrase, sealed, words};
use crate::home::{Home, backup, keep_memory_private};
use crate::terminal::clock::now_in_milliseconds;
use crate::terminal::output::Output;
use crate::whole_file;

/// Copy your keys to where they outlive this computer: an encrypted file, or words on paper.
///
/// The owner's key and the tenant's are in the backup: all that it takes to hold your devices and to update your machines. Without
/// one, a disk that breaks takes every device of yours with it. Keep it elsewhere than the computer, and make another one after
/// `tenure owner change`. The file is one of age (age-encryption.org), which opens it, too.
///
/// Example: tenure key backup --to keys.age --check attic
///
/// Example: tenure key backup --words
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file to make, encrypted under a passphrase, which is asked for twice; it must not be there yet.
    #[arg(long, value_name = "FILE", required_unless_present = "words", conflicts_with = "words")]
    to: Option<PathBuf>,
    /// Print each of both keys as 24 words of BIP 39 instead, to be written down.
    #[arg(long)]
    words: bool,
    /// The file that holds the passphrase, and that nobody else may read; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    check: Check,
}

/// Runs `tenure key backup`.
///
/// # Errors
/// There are no keys, the file is there already or can't be written, the passphrase is none, or the proof fails.
pub(super) fn run(arguments: &Arguments, home: &Home, output: &Output) -> anyhow::Result<()> {
    keep_memory_private();
    let pair = Pair::of(home)?;
    let (text, mut object) = match &arguments.to {
        Some(path) => to_file(arguments, home, &pair, path)?,
        None => as_words(arguments, home, &pair)?,
    };
    backup::note(home, &home.lock()?, &pair.owner.verifying_key(), now_in_milliseconds() / 1_000)?;
    if let (Value::Object(object), Value::Object(keys)) = (&mut object, pair.to_json()) {
        object.extend(keys);
    }
    output.line(&text, &object);
    Ok(())
}

/// Writes the file, once it has been opened again; returns what is said of it.
fn to_file(
    arguments: &Arguments,
    home: &Home,
    pair: &Pair,
    path: &Path,
) -> anyhow::Result<(String, Value)> {
    let shown = path.display();
    if path.symlink_metadata().is_ok() {
        bail!("{shown} is there already, and no backup is written over; name another file");
    }
    let passphrase = passphrase::new(arguments.passphrase_file.as_deref())?;
    let bytes = sealed::seal(pair, &passphrase)?;
    let opened = sealed::open(&bytes, &passphrase).context("the backup that was made")?;
    ensure!(opened.is(pair), "the backup that was made holds other keys; nothing was written");
    let device = arguments.check.prove(home, &opened)?;
    whole_file::write_new_private(path, &bytes).with_context(|| format!("can't write {shown}"))?;
    let written = whole_file::read(path, sealed::FILE_BYTES_MAX);
    let written = written.with_context(|| format!("can't read {shown} again"))?;
    ensure!(written == bytes, "{shown} isn't on the disk as it was written; name another place");
    let proof = match &device {
        Some(device) => format!("it was opened again, and its keys hold {device}"),
        None => "it was opened again".to_owned(),
    };
    let text = format!(
        "wrote {shown}: {proof}\n{}\n  keep it elsewhere than this computer, and the passphrase apart from it; to have the keys back: \
         tenure key recover --from {shown}",
        pair.shown()
    );
    let device = device.as_ref().map(|device| device.as_str());
    Ok((text, json!({ "backup": "file", "file": shown.to_string(), "checked": device })))
}

/// Both lists of words, once they have been read again, and what is said of them.
fn as_words(arguments: &Arguments, home: &Home, pair: &Pair) -> anyhow::Result<(String, Value)> {
    let written = words::written(pair)?;
    let read = words::read(&written).context("the words that were made")?;
    ensure!(read.is(pair), "the words that were made are of other keys");
    let device = arguments.check.prove(home, &read)?;
    let proof = device.as_ref().map(|device| format!("; the words' keys hold {device}"));
    let text = format!(
        "{}{}\n  write both lists down, and the owner's key beside them{}; to have the keys back: tenure key recover --words",
        *written,
        pair.shown(),
        proof.unwrap_or_default()
    );
    let object = json!({
        "backup": "words",
        "owner_words": words::words_of(&pair.owner)?,
        "tenant_words": words::words_of(&pair.tenant)?,
        "checked": device.as_ref().map(|device| device.as_str()),
    });
    Ok((text, object))
}
