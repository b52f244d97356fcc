//! What a command prints: text for people, or one JSON object a line.

use std::io::{IsTerminal as _, Write as _};

use serde_json::Value;
use tenure_wire::control::LogLine;

use crate::printable::printable;
use crate::symbols::Place;

/// How a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
    colour: bool,
    silent: bool,
}

impl Output {
    /// JSON if asked for; else text, with colours if it goes to a terminal that wants them.
    pub fn new(json: bool) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, colour, silent: false }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self { json: false, colour: false, silent: true }
    }

    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints one thing, as a line of text or as an object.
    pub fn line(&self, text: &str, object: &Value) {
        if self.json { self.print(&object.to_string()) } else { self.print(text) }
    }

    /// Prints a machine's own words: to a file or pipe as they are, to a terminal without what could
    /// steer it.
    pub fn words(&self, text: &str) {
        if !std::io::stdout().is_terminal() {
            return self.print(text);
        }
        let lines: Vec<String> = text.split('\n').map(printable).collect();
        self.print(&lines.join("\n"));
    }

    /// Prints a line of a machine's log, and where in the source the fault is that it tells of.
    pub fn log(&self, line: &LogLine, place: Option<&Place>) {
        if self.json {
            let mut object = serde_json::json!({
                "event": "log",
                "number": line.number,
                "at_ms": line.at_ms,
                "machine": line.machine.as_str(),
                "level": line.level,
                "message": line.message,
            });
            if let Some(place) = place {
                object["place"] = place.to_json();
            }
            return self.print(&object.to_string());
        }
        let (seconds, millis) = (line.at_ms / 1000, line.at_ms % 1000);
        let (before, after) = self.colours(&line.level);
        let place = place.map(|place| format!("  in {place}"));
        for text in line.message.lines().chain(place.as_deref()) {
            self.print(&format!(
                "{seconds:>5}.{millis:03} {:<14} {before}{:<7}{after} {}",
                line.machine,
                line.level,
                printable(text)
            ));
        }
    }

    fn colours(&self, level: &str) -> (&'static str, &'static str) {
        if !self.colour {
            return ("", "");
        }
        match level {
            "fault" | "error" => ("\x1b[31m", "\x1b[0m"),
            "warning" => ("\x1b[33m", "\x1b[0m"),
            "debug" => ("\x1b[2m", "\x1b[0m"),
            _ => ("", ""),
        }
    }

    /// Prints a line. That nobody reads any more is no error.
    fn print(&self, text: &str) {
        if !self.silent {
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }
}
