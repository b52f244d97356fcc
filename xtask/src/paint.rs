//! Colours, on a terminal that wants them and nowhere else.

use std::fmt::Display;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// Colours text for one stream, or leaves it as it is.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    coloured: bool,
}

/// How to colour what goes to standard output.
pub(crate) fn stdout() -> Paint {
    Paint::of(&std::io::stdout())
}

/// How to colour what goes to standard error.
pub(crate) fn stderr() -> Paint {
    Paint::of(&std::io::stderr())
}

impl Paint {
    /// Asks the stream and the environment: `NO_COLOR` (<https://no-color.org>), `CLICOLOR` and `CLICOLOR_FORCE`
    /// (<https://bixense.com/clicolors>), `TERM`.
    fn of(stream: &impl RawStream) -> Self {
        Self { coloured: AutoStream::choice(stream) != ColorChoice::Never }
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.with(GOOD, text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with(BAD, text)
    }

    pub(crate) fn strong(self, text: impl Display) -> String {
        self.with(STRONG, text)
    }

    pub(crate) fn faint(self, text: impl Display) -> String {
        self.with(FAINT, text)
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.coloured { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}
