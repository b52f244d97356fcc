//! For how long a lease counts, and how often it is billed.

use serde::{Deserialize, Serialize};

/// How long the data of a machine is kept once its lease is over, unless its owner says otherwise.
pub const GRACE_S_DEFAULT: u64 = 7 * 24 * 60 * 60;

/// The time of a lease: what the owner grants, and the device keeps.
///
/// A device that knows the time goes by that. One that doesn't begins at the time at which the owner
/// signed, or the latest that it has known, and counts the time that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// The owner's clock when this was signed, in seconds since 1970 UTC.
    pub signed_unix_s: u64,
    /// When the machine is stopped, in seconds since 1970 UTC; `None` if never.
    pub ends_unix_s: Option<u64>,
    /// For how many seconds its machine stays once the device has learned of the end, counted while the
    /// device is on: no told time and no clock shortens it. Then it goes to the trash.
    pub grace_s: u64,
    /// How many seconds one receipt is for, as long as the device is on; 0 leaves that to the device.
    pub receipts_every_s: u64,
}

impl Term {
    /// Whether the lease is over at a time.
    pub fn is_over(&self, unix_s: u64) -> bool {
        self.ends_unix_s.is_some_and(|end| unix_s >= end)
    }
}

impl Default for Term {
    /// Without an end.
    fn default() -> Self {
        Self { signed_unix_s: 0, ends_unix_s: None, grace_s: GRACE_S_DEFAULT, receipts_every_s: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_runs_until_its_end_and_is_over_from_then_on() {
        let term = Term { ends_unix_s: Some(100), grace_s: 20, ..Term::default() };
        assert_eq!([99, 100, 120].map(|unix_s| term.is_over(unix_s)), [false, true, true]);
        assert!(!Term::default().is_over(u64::MAX), "without an end");
    }
}
