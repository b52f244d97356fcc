//! Asking before what can't be taken back lightly.

use std::io::IsTerminal as _;

use anyhow::{Context as _, bail};

use crate::terminal::output::prompt;

/// Asks the user `question`, unless `yes` says so already.
///
/// # Errors
/// The answer is no, or there is no terminal to ask at.
pub fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        bail!("{question} say so with --yes");
    }
    prompt(question).context("the terminal")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the terminal")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was done"),
    }
}
