//! The output of a command: text for people, or one JSON object a line.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tenure_wire::control::LogLine;

use tenure_wire::printable::{misleads, printable};

use crate::terminal::trace::{Place, hint_of, trace_lines};

/// Why a part of the output was lost, if one was.
static LOST: OnceLock<String> = OnceLock::new();

/// Why a part of what was printed didn't reach standard output, if that is so and somebody may still read.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Whether a write has shown that nobody reads standard output any more.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether somebody may still read standard output: not if it is a pipe whose reader has ended, or a terminal that is
/// gone. What prints again and again ends then.
pub fn has_reader() -> bool {
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let ended = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    let is_ended = poll(&mut watched, Some(&Timespec::default())).is_ok()
        && watched[0].revents().intersects(ended);
    !is_ended && !UNREAD.load(Ordering::Relaxed)
}

/// Whether JSON was asked for.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Whether the output is for a program: no question is asked then.
pub fn is_json_wanted() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// What kind of words a command says beside its outcome.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// What it waits for.
    Waiting,
    /// What a user should know of the outcome.
    Note,
    /// What went wrong beside what it does.
    Warning,
}

/// Says to standard error what a user should know beside the outcome, as text or as an object.
pub fn tell_beside(kind: Beside, text: &str) {
    let kind = match kind {
        Beside::Waiting => "waiting",
        Beside::Note => "note",
        Beside::Warning => "warning",
    };
    let text = match is_json_wanted() {
        true => printable_json(&serde_json::json!({ kind: text })),
        false => format!("{kind}: {}", printable_lines(text)),
    };
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Asks something on standard error; others may have a hand in the words.
///
/// # Errors
/// The terminal is gone.
pub fn prompt(question: &str) -> std::io::Result<()> {
    let mut terminal = std::io::stderr();
    write!(terminal, "{} [y/N] ", printable_lines(question))?;
    terminal.flush()
}

/// How wide a column of names is: as the longest of `names`, and no narrower than tables usually have it.
pub fn width_of<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).fold(NAME_COLUMNS, usize::max)
}

/// How wide a column of names is at least.
const NAME_COLUMNS: usize = 16;
/// The longest name of a machine in the log so far, or how wide its column is at least.
static LOG_COLUMNS: AtomicUsize = AtomicUsize::new(14);

/// How a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
    colour: bool,
    silent: bool,
    by_lines: bool,
}

impl Output {
    /// JSON if asked for; else text, with colours if the terminal and the environment want them.
    pub fn new(json: bool) -> Self {
        AS_JSON.store(json, Ordering::Relaxed);
        // By the terminal, and the variables `NO_COLOR` (no-color.org), `CLICOLOR` and `CLICOLOR_FORCE`
        // (bixense.com/clicolors) and `TERM`.
        let colour = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
        Self { json, colour, silent: false, by_lines: false }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self { json: false, colour: false, silent: true, by_lines: false }
    }

    /// As this one, for several commands that print one after the other: the output of each ends with a line's end.
    pub fn by_lines(self) -> Self {
        Self { by_lines: true, ..self }
    }

    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints one thing, as lines of text without what could steer a terminal, or as an object.
    pub fn line(&self, text: &str, object: &Value) {
        if self.json { self.print_json(object) } else { self.print(&printable_lines(text)) }
    }

    /// Prints why something failed, to standard error, as text or as an object.
    pub fn failure(&self, error: &anyhow::Error) {
        let error = tell(error);
        let text = match self.json {
            true => printable_json(&serde_json::json!({ "error": error })),
            false => format!("error: {}", printable_lines(&error)),
        };
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Sends what steers a terminal, if one reads it.
    pub fn steer(&self, codes: &str) {
        if !self.silent && !self.json && std::io::stdout().is_terminal() {
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(codes.as_bytes());
        }
    }

    /// Prints bytes that are no text: to a file or pipe as they are, to a terminal in hexadecimal digits.
    pub fn bytes(&self, bytes: &[u8]) {
        if std::io::stdout().is_terminal() {
            return self.print(&format!("0x{}", hex(bytes)));
        }
        self.write(bytes);
        if self.by_lines {
            self.write(b"\n");
        }
    }

    /// Prints a machine's own words: to a file or pipe as they are, to a terminal without what could
    /// steer it and with a line's end.
    pub fn words(&self, text: &str) {
        if !std::io::stdout().is_terminal() {
            return self.bytes(text.as_bytes());
        }
        self.print(&printable_lines(text.strip_suffix('\n').unwrap_or(text)));
    }

    /// Prints a line of a machine's log, and where in the source the fault is that it tells of, with the
    /// calls that led there.
    pub fn log(&self, line: &LogLine, trace: &[Place]) {
        if self.json {
            return self.print_json(&log_object(line, trace));
        }
        let (seconds, millis) = (line.at_ms / 1000, line.at_ms % 1000);
        let when = match line.unix_s {
            Some(unix_s) => crate::terminal::clock::time(unix_s),
            None => format!("{seconds:>5}.{millis:03}"),
        };
        let style = self.style_of(&line.level);
        // Of a log that goes on nobody knows the longest name.
        let own = line.machine.as_str().chars().count();
        let width = LOG_COLUMNS.fetch_max(own, Ordering::Relaxed).max(own);
        for text in log_texts(line, trace) {
            self.print(&format!(
                "{when} {:<width$} {style}{:<7}{style:#} {}",
                line.machine.as_str(),
                printable(&line.level),
                printable(&text)
            ));
        }
    }

    fn style_of(&self, level: &str) -> Style {
        match level {
            _ if !self.colour => Style::new(),
            "fault" | "error" => AnsiColor::Red.on_default(),
            "warning" => AnsiColor::Yellow.on_default(),
            "debug" => Style::new().dimmed(),
            _ => Style::new(),
        }
    }

    fn print_json(&self, object: &Value) {
        self.print(&printable_json(object));
    }

    /// Prints a line.
    fn print(&self, text: &str) {
        self.write(format!("{text}\n").as_bytes());
    }

    /// Writes bytes. That nobody reads any more is no error; that there is no room is told at the end.
    fn write(&self, bytes: &[u8]) {
        if self.silent {
            return;
        }
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                UNREAD.store(true, Ordering::Relaxed);
            }
            Err(error) => drop(LOST.set(error.to_string())),
        }
    }
}

/// The lines of text that a line of a log is, with those of where the fault is that it tells of.
pub fn log_texts(line: &LogLine, trace: &[Place]) -> Vec<String> {
    let message = match line.message.as_str() {
        "" => "\n",
        message => message,
    };
    let hint = if line.level == "fault" { hint_of(message) } else { None };
    let hint = hint.map(|hint| format!("  {hint}"));
    message.lines().map(str::to_owned).chain(trace_lines(trace)).chain(hint).collect()
}

/// A line of a log as JSON, with where the fault is that it tells of.
pub fn log_object(line: &LogLine, trace: &[Place]) -> Value {
    let mut object = serde_json::json!({
        "event": "log",
        "number": line.number,
        "at_ms": line.at_ms,
        "unix_s": line.unix_s,
        "boot": line.boot,
        "machine": line.machine.as_str(),
        "level": line.level,
        "message": line.message,
    });
    if let Some((place, callers)) = trace.split_first() {
        object["place"] = place.to_json();
        object["called_from"] = callers.iter().map(Place::to_json).collect();
    }
    object
}

/// An error and its causes in one line. A cause that says again what stands before it is left out: some
/// errors quote their cause, and name it as such too.
pub fn tell(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if let Some(rest) = cause.strip_prefix(&text) {
            text.push_str(rest);
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Text of several lines, each made fit for a terminal.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// `text` as it stands in a page or a picture (HTML, SVG), between tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON in which what could steer a terminal or mislead its reader is escaped: it means the same.
pub fn printable_json(object: &Value) -> String {
    let mut text = String::new();
    for character in object.to_string().chars() {
        if misleads(character) {
            let mut units = [0; 2];
            let escapes = character.encode_utf16(&mut units).iter();
            text.extend(escapes.map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(character);
        }
    }
    text
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_a_stranger_had_a_hand_in_is_escaped_and_means_the_same() {
        let words = "a\x1b[2J\u{202E}b\u{9B}\u{E0041}Grüße";
        let text = printable_json(&serde_json::json!({ words: words }));
        assert!(!text.chars().any(misleads), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back[words], words);
    }

    #[test]
    fn cause_that_an_error_quotes_is_told_once() {
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let quoting = anyhow::Error::new(denied()).context(format!("can't read x: {}", denied()));
        assert_eq!(tell(&quoting), "can't read x: permission denied");
        let plain = anyhow::anyhow!("no room").context("attic").context("can't install");
        assert_eq!(tell(&plain), "can't install: attic: no room");
        let repeated = anyhow::anyhow!("the device at A: gone").context("the device at A");
        assert_eq!(tell(&repeated), "the device at A: gone");
    }

    #[test]
    fn column_of_names_is_as_wide_as_the_longest_of_them() {
        assert_eq!(width_of(["attic", "barn"].into_iter()), NAME_COLUMNS);
        assert_eq!(width_of(["attic", "a".repeat(32).as_str()].into_iter()), 32);
    }

    #[test]
    fn lines_stay_lines_and_nothing_in_them_steers_a_terminal() {
        assert_eq!(printable_lines("a\x1b[2K\nb\u{202E}\n"), "a\u{FFFD}[2K\nb\u{FFFD}\n");
    }
}
