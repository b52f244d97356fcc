//! The log of a hub's pages: lines on standard error, for people or for programs.

use tracing_subscriber::filter::LevelFilter;

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Log {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// Writes lines from now on: of each request in that form, or else of what fails as text.
pub(super) fn begin(form: Option<Log>) {
    let level = if form.is_some() { LevelFilter::INFO } else { LevelFilter::WARN };
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(level);
    let begun = match form {
        Some(Log::Json) => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init(),
        Some(Log::Text) | None => lines.try_init(),
    };
    // A process has one log; a hub that is started once more in it goes on with that.
    drop(begun);
}
