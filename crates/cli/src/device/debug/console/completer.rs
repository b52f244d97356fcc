//! Words that Tab completes at the debugger's prompt: commands, and functions and files behind `break`.

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tenure_wire::printable::misleads;

use super::{COMMANDS, Console};
use crate::make::symbols::Symbols;

/// The words of a session.
pub(super) struct Words {
    /// Functions, and files with a colon behind them.
    places: Vec<String>,
    machines: Vec<String>,
}

impl Words {
    pub(super) fn of(console: &Console) -> Self {
        let machines = &console.session.machines;
        let mut places = Vec::new();
        for machine in machines {
            let files = machine.lines().files().filter_map(|file| file.rsplit('/').next());
            places.extend(files.map(|file| format!("{file}:")));
            let functions = machine.symbols().into_iter().flat_map(Symbols::function_names);
            places.extend(functions.filter(|name| !name.contains(' ')).map(str::to_owned));
        }
        places.sort();
        places.dedup();
        let machines = machines.iter().map(|one| one.walk().history().machine.to_string());
        Self { places, machines: machines.collect() }
    }

    /// The words that may stand behind `before` and begin with `begun`.
    fn candidates(&self, before: &str, begun: &str) -> Vec<String> {
        let all: Vec<String> = match before.split_whitespace().collect::<Vec<_>>()[..] {
            [] | ["help" | "h"] => COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            ["break" | "b"] => self.places.clone(),
            ["machine" | "m"] => self.machines.clone(),
            ["goto" | "g"] => ["start", "end", "fault"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        // A debug module's author has chosen the names, and the terminal would obey what is in them.
        let is_plain = |word: &String| !word.chars().any(misleads);
        all.into_iter().filter(|word| word.starts_with(begun)).filter(is_plain).collect()
    }
}

impl Helper for Words {}

impl Highlighter for Words {}

impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let words = self.candidates(&before[..start], &before[start..]).into_iter();
        let pair = |word: String| Pair { replacement: word.clone(), display: word };
        Ok((start, words.map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_first_and_places_behind_break() {
        let places = vec!["main.c:".to_owned(), "main".to_owned()];
        let words = Words { places, machines: vec!["clock".to_owned()] };
        assert_eq!(words.candidates("", "reverse-s"), ["reverse-step", "reverse-stepi"]);
        assert_eq!(words.candidates("b ", "mai"), ["main.c:", "main"]);
        assert_eq!(words.candidates("machine ", ""), ["clock"]);
        assert!(words.candidates("print ", "").is_empty());
    }

    #[test]
    fn names_that_would_steer_a_terminal_are_not_completed() {
        // B-10.
        let names = ["\u{1b}]0;owned\u{7}", "m\u{202e}ain", "m\u{9b}31m", "main"];
        let words = Words { places: names.map(str::to_owned).to_vec(), machines: Vec::new() };
        assert_eq!(words.candidates("break ", ""), ["main"]);
    }
}
