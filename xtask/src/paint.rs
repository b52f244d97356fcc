//! Colours, on a terminal that wants them and nowhere else.

use std::fmt::Display;
use std::io::IsTerminal;

/// Colours text for one stream, or leaves it as it is.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    coloured: bool,
}

/// How to colour what goes to standard output.
pub(crate) fn stdout() -> Paint {
    Paint { coloured: std::io::stdout().is_terminal() && wanted() }
}

/// How to colour what goes to standard error.
pub(crate) fn stderr() -> Paint {
    Paint { coloured: std::io::stderr().is_terminal() && wanted() }
}

/// <https://no-color.org>: any non-empty value turns colours off.
fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

impl Paint {
    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with("1;31", text)
    }

    pub(crate) fn strong(self, text: impl Display) -> String {
        self.with("1", text)
    }

    pub(crate) fn faint(self, text: impl Display) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}
