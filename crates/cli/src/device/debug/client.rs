//! The rights of a client of the debugger: of who has started it, or of who connects to it.

use super::sources::Sources;

/// A client, and its rights.
pub(super) trait Allowed {
    /// Lets it begin, with the word that it brings; `names_nothing_new` tells that it names no other files than the command
    /// line does.
    ///
    /// # Errors
    /// It may not.
    fn allow(&self, token: &str, names_nothing_new: bool) -> anyhow::Result<()>;

    /// Which sources it is shown.
    fn sources(&self) -> Sources;
}

/// The program that has started the debugger: it may what its user may.
pub(super) struct Starter;

impl Allowed for Starter {
    fn allow(&self, _: &str, _: bool) -> anyhow::Result<()> {
        Ok(())
    }

    fn sources(&self) -> Sources {
        Sources::All
    }
}
