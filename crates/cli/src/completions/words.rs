//! The words of an unfinished line as a shell hands them over: bash cuts them at `=`, `:` and `@`, and fish leaves out
//! those behind the cursor.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::engine;
use clap_complete::env::{Bash, EnvCompleter, Fish};

/// Where bash says which word is to be completed, and between what the answer's words are told apart.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
const SEPARATOR: &str = "_CLAP_IFS";
/// Where fish says all words of a line, one a line.
const ALL_OF_FISH: &str = "_TENURE_WORDS";
/// What bash takes for words of their own (COMP_WORDBREAKS) that may stand within one of ours.
const BREAKS: [char; 3] = ['=', ':', '@'];

/// The words of a line, the command's own first, and the place of the one to be completed.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) words: Vec<OsString>,
    pub(super) index: usize,
}

impl Whole {
    /// Those that `shell` hands over.
    pub(super) fn of_shell(words: Vec<OsString>, shell: &str) -> Self {
        let index = index_of_shell().unwrap_or(words.len().saturating_sub(1));
        match shell == "bash" {
            true => Self::joined(words, index).0,
            false => Self { words, index },
        }
    }

    /// The words that bash cut, and how many bytes of the one to be completed stand before the piece that bash replaces.
    fn joined(pieces: Vec<OsString>, index: usize) -> (Self, usize) {
        let is_break = |piece: &OsString| {
            let text = piece.to_string_lossy();
            !text.is_empty() && text.chars().all(|letter| BREAKS.contains(&letter))
        };
        let mut whole = Self { words: Vec::new(), index: 0 };
        let (mut was_break, mut before) = (false, 0);
        for (at, piece) in pieces.into_iter().enumerate() {
            let is_break = is_break(&piece);
            // What follows the cursor directly behind a break is a word of its own.
            let goes_on = (is_break && at > 1 || was_break) && at != index + 1;
            // Bash hands over the word at the cursor with the sign before it, if that may begin a host's name.
            if at == index && was_break && piece.to_string_lossy().starts_with('@') {
                drop_last(whole.words.last_mut());
            }
            match whole.words.last_mut().filter(|_| goes_on) {
                Some(word) => {
                    if at == index {
                        before = word.len() + if is_break { piece.len() } else { 0 };
                    }
                    word.push(&piece);
                }
                None => whole.words.push(piece),
            }
            if at == index {
                whole.index = whole.words.len() - 1;
            }
            was_break = is_break && at > 1;
        }
        (whole, before)
    }
}

/// Takes the `@` off the end of a word.
fn drop_last(word: Option<&mut OsString>) {
    if let Some(word) = word {
        let text = word.to_string_lossy().into_owned();
        *word = text.strip_suffix('@').unwrap_or(&text).into();
    }
}

/// The words behind those of a line that fish cut at its cursor.
pub(super) fn behind_in_fish(words: &[OsString]) -> Vec<OsString> {
    let all = std::env::var(ALL_OF_FISH).unwrap_or_default();
    // A word that isn't begun yet is none of them.
    let before = words.iter().filter(|word| !word.is_empty()).count();
    all.lines().skip(before).map(OsString::from).collect()
}

/// The place of the word to be completed, if the shell says it.
fn index_of_shell() -> Option<usize> {
    std::env::var(INDEX).ok()?.parse().ok()
}

/// The shells that need more than clap does for them.
pub(super) enum Shell {
    /// Its pieces are put together, and it gets the end of a word alone.
    Bash,
    /// It says the words behind its cursor, too.
    Fish,
}

impl EnvCompleter for Shell {
    fn name(&self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Fish => "fish",
        }
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        bin: &str,
        completer: &str,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let mut script = Vec::new();
        match self {
            Self::Bash => return Bash.write_registration(variable, name, bin, completer, output),
            Self::Fish => Fish.write_registration(variable, name, bin, completer, &mut script)?,
        }
        let script = String::from_utf8_lossy(&script);
        let before = format!("({variable}=fish ");
        let all = "(commandline --current-process --tokenize | string collect)";
        let with_all = format!("({ALL_OF_FISH}={all} {variable}=fish ");
        output.write_all(script.replacen(&before, &with_all, 1).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        match self {
            Self::Bash => complete_in_bash(command, words, folder, output),
            Self::Fish => Fish.write_complete(command, words, folder, output),
        }
    }
}

fn complete_in_bash(
    command: &mut clap::Command,
    words: Vec<OsString>,
    folder: Option<&Path>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let (whole, before) = Whole::joined(words, index_of_shell().unwrap_or_default());
    let separator = std::env::var(SEPARATOR).unwrap_or_else(|_| "\n".into());
    let candidates = engine::complete(command, whole.words, whole.index, folder)?;
    for (at, candidate) in candidates.iter().enumerate() {
        let word = candidate.get_value().to_string_lossy();
        let separator = if at > 0 { separator.as_str() } else { "" };
        write!(output, "{separator}{}", word.get(before..).unwrap_or(&word))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(line: &str, index: usize) -> (Vec<String>, usize, usize) {
        let pieces = line.split(' ').map(OsString::from).collect();
        let (whole, before) = Whole::joined(pieces, index);
        let words = whole.words.iter().map(|word| word.to_string_lossy().into_owned());
        (words.collect(), whole.index, before)
    }

    #[test]
    fn pieces_of_a_word_that_bash_cut_are_one_word() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (line, index, expected, at, before) in [
            ("tenure call co", 2, &["tenure", "call", "co"][..], 2, 0),
            ("tenure call --device = at", 4, &["tenure", "call", "--device=at"], 2, 9),
            ("tenure call --device =", 3, &["tenure", "call", "--device="], 2, 9),
            ("tenure call --device = at co", 5, &["tenure", "call", "--device=at", "co"], 3, 0),
            (
                "tenure call --device 127.0.0.1 : 73 co",
                6,
                &["tenure", "call", "--device", "127.0.0.1:73", "co"],
                4,
                0,
            ),
            ("tenure call co @ @at", 4, &["tenure", "call", "co@at"], 2, 2),
            ("tenure call co @ at get", 5, &["tenure", "call", "co@at", "get"], 3, 0),
            (
                "tenure install x --grant calls = *@",
                6,
                &["tenure", "install", "x", "--grant", "calls=*@"],
                4,
                6,
            ),
            (
                "tenure call --device = co get",
                3,
                &["tenure", "call", "--device=", "co", "get"],
                2,
                9,
            ),
        ] {
            assert_eq!(joined(line, index), (words(expected), at, before), "{line}");
        }
    }
}
