//! An answer that isn't the good one: the command has said it already, and its exit status tells it to programs.

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Verdict {
    /// The exit status, neither 0 nor 1.
    pub status: u8,
    /// The answer, for whoever runs the command as a part of something else.
    pub words: &'static str,
}
