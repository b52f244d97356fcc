//! Secrets that a person types, or a pipe brings. They are read past the buffer of standard input, and wiped.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, ensure};
use rustix::io::{read, retry_on_intr};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

use crate::terminal::output::is_json_wanted;

/// The longest line that a terminal gives, in bytes.
const LINE_BYTES_MAX: usize = 4096;
/// The byte that Ctrl-C types.
const INTERRUPT: u8 = 3;

/// Whether a person sits at standard input who may be asked.
pub(crate) fn may_ask() -> bool {
    std::io::stdin().is_terminal() && !is_json_wanted()
}

/// Asks for a line, which doesn't show while it is typed.
///
/// # Errors
/// The terminal is gone, or nothing is typed.
pub(crate) fn hidden_line(question: &str) -> anyhow::Result<Zeroizing<String>> {
    let _hidden = Hidden::begin().context("the terminal")?;
    line(question)
}

/// Asks for a line.
///
/// # Errors
/// As [`hidden_line`].
pub(crate) fn line(question: &str) -> anyhow::Result<Zeroizing<String>> {
    let mut terminal = std::io::stderr();
    write!(terminal, "{question} ").and_then(|()| terminal.flush()).context("the terminal")?;
    let mut bytes = Zeroizing::new(vec![0_u8; LINE_BYTES_MAX]);
    let length =
        retry_on_intr(|| read(std::io::stdin(), &mut bytes[..])).context("the terminal")?;
    let typed = &bytes[..length];
    ensure!(length > 0 && !typed.contains(&INTERRUPT), "nothing was done");
    let typed = std::str::from_utf8(typed).context("the line is no text in UTF-8")?;
    Ok(Zeroizing::new(typed.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The text that standard input brings, of `bytes_max` bytes at most.
///
/// # Errors
/// Nothing comes, it is longer, or it is no text.
pub(crate) fn text(bytes_max: usize) -> anyhow::Result<Zeroizing<String>> {
    // As long as it gets, or a shorter one would be left behind unwiped.
    let mut bytes = Zeroizing::new(vec![0_u8; bytes_max + 1]);
    let mut length = 0;
    loop {
        let came = retry_on_intr(|| read(std::io::stdin(), &mut bytes[length..]));
        match came.context("standard input")? {
            0 => break,
            came => length += came,
        }
    }
    ensure!(length > 0, "nothing came by standard input");
    ensure!(length <= bytes_max, "standard input is longer than {bytes_max} bytes");
    let text = std::str::from_utf8(&bytes[..length]);
    Ok(Zeroizing::new(text.context("standard input is no text in UTF-8")?.to_owned()))
}

/// A terminal that doesn't show what is typed, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        hidden.local_modes.insert(LocalModes::ECHONL);
        // Ctrl-C ends the line, and not this process, which would leave the terminal as it is now.
        hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        tcsetattr(std::io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
