//! `tenure key recover`: the keys of a backup, back in the user's folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tenure_crypto::SigningKey;
use tenure_wire::VerifyingKey;
use zeroize::Zeroizing;

use super::pair::Pair;
use super::proof::Check;
use super::{passphrase, sealed, words};
use crate::home::{Home, backup, keep_memory_private};
use crate::terminal::clock::now_in_milliseconds;
use crate::terminal::output::Output;
use crate::terminal::secret_input;
use crate::whole_file;

/// Put the keys of a backup back, on a computer that has none.
///
/// Keys that are there already stay as they are, and others are refused. What is wrong with a backup is said, and then nothing is
/// written: which word is none, or that the passphrase is another one. The key that was recovered is shown; compare it with the one
/// that you noted, or give it by --key. Words in another order pass their checksum once in 256 times.
///
/// Example: tenure key recover --from keys.age --check 192.168.1.20:7370
///
/// Example: tenure key recover --words
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file of the backup; its passphrase is asked for.
    #[arg(long, value_name = "FILE", required_unless_present = "words", conflicts_with = "words")]
    from: Option<PathBuf>,
    /// Ask for the words, or read them from standard input: the owner's 24, then the tenant's, or each list behind its name as
    /// `tenure key backup --words` printed it.
    #[arg(long)]
    words: bool,
    /// The file that holds the passphrase, and that nobody else may read; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    passphrase_file: Option<PathBuf>,
    /// The owner's signing key that it must be.
    #[arg(long, value_name = "KEY")]
    key: Option<VerifyingKey>,
    #[command(flatten)]
    check: Check,
}

/// Runs `tenure key recover`.
///
/// # Errors
/// The backup can't be read, is of another key than it must be, other keys are there, or the proof fails.
pub(super) fn run(arguments: &Arguments, home: &Home, output: &Output) -> anyhow::Result<()> {
    keep_memory_private();
    let pair = match &arguments.from {
        Some(path) => from_file(path, arguments.passphrase_file.as_deref())
            .with_context(|| path.display().to_string())?,
        None => from_words()?,
    };
    let owner = pair.owner.verifying_key();
    if let Some(key) = arguments.key {
        ensure!(key == owner, "the backup is of the owner's key {owner}, and not of {key}");
    }
    home.check_vacant(&pair.owner, &pair.tenant)?;
    let device = arguments.check.prove(home, &pair)?;
    let lock = home.lock()?;
    let is_new = home.put_keys(&lock, &pair.owner, &pair.tenant)?;
    backup::note(home, &lock, &owner, now_in_milliseconds() / 1_000)?;
    let folder = home.folder().display();
    let done = match is_new {
        true => format!("the keys of the backup are in {folder}"),
        false => format!("the keys of the backup were in {folder} already"),
    };
    let proof = match &device {
        Some(device) => format!("they hold {device}"),
        None => "to see that they hold your devices: tenure status --device NAME".to_owned(),
    };
    let device = device.as_ref().map(|device| device.as_str());
    let mut object = json!({ "recovered": is_new, "checked": device });
    if let (Value::Object(object), Value::Object(keys)) = (&mut object, pair.to_json()) {
        object.extend(keys);
    }
    output.line(&format!("{done}\n{}\n  {proof}", pair.shown()), &object);
    Ok(())
}

fn from_file(path: &Path, passphrase: Option<&Path>) -> anyhow::Result<Pair> {
    let bytes = whole_file::read(path, sealed::FILE_BYTES_MAX)?;
    let passphrase = passphrase::of_backup(passphrase)?;
    sealed::open(&bytes, &passphrase)
}

fn from_words() -> anyhow::Result<Pair> {
    if !secret_input::may_ask() {
        return words::read(&secret_input::text(words::TEXT_BYTES_MAX)?);
    }
    let [owner, tenant] = words::NAMES;
    Ok(Pair { owner: ask(owner)?, tenant: ask(tenant)? })
}

/// The key of a list whose words are asked for until there are enough of them; a line that holds a wrong word ends that.
fn ask(list: &str) -> anyhow::Result<SigningKey> {
    let mut lines: Vec<Zeroizing<String>> = Vec::new();
    loop {
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        words::check(list, &words)?;
        if words.len() >= words::COUNT {
            return words::key_of(list, &words);
        }
        let due = words.len() + 1;
        let question = format!("the {list}'s words from {due} on, without numbers:");
        let mut line = secret_input::line(&question)?;
        line.make_ascii_lowercase();
        lines.push(line);
    }
}
