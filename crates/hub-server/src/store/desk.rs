//! The place of those who answer calls in sessions beside the directory.

use tenure_hub::{Answered, ServiceCall};

/// Whoever answers calls on a thread and a connection of his own.
pub(crate) trait Desk: Send {
    /// Takes a call, which has that number. The pages are at that address, if there are any.
    fn take(&mut self, number: u64, call: &ServiceCall<'_>, pages: Option<&str>);

    /// The answers that are there, by the calls' numbers.
    fn answers(&mut self) -> Vec<(u64, Answered)>;
}
