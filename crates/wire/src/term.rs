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
    /// For how many seconds after that its data is kept.
    pub grace_s: u64,
    /// How many seconds one receipt is for, as long as the device is on; 0 leaves that to the device.
    pub receipts_every_s: u64,
}

/// Where in its term a lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It counts.
    InForce,
    /// It is over; the data is still there.
    Over,
    /// It is over, and the data may go.
    Expired,
}

impl Term {
    /// Where the lease is at a time.
    pub fn stage(&self, unix_s: u64) -> Stage {
        match self.ends_unix_s {
            Some(end) if unix_s >= end.saturating_add(self.grace_s) => Stage::Expired,
            Some(end) if unix_s >= end => Stage::Over,
            _ => Stage::InForce,
        }
    }

    /// When its stage changes next after a time, if ever.
    pub fn changes_at(&self, unix_s: u64) -> Option<u64> {
        let end = self.ends_unix_s?;
        [end, end.saturating_add(self.grace_s)].into_iter().find(|change| *change > unix_s)
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
    fn a_term_runs_is_over_and_expires() {
        let term = Term { ends_unix_s: Some(100), grace_s: 20, ..Term::default() };
        let stage = |unix_s| (term.stage(unix_s), term.changes_at(unix_s));
        assert_eq!(stage(99), (Stage::InForce, Some(100)));
        assert_eq!(stage(100), (Stage::Over, Some(120)));
        assert_eq!(stage(119), (Stage::Over, Some(120)));
        assert_eq!(stage(120), (Stage::Expired, None));
        assert_eq!(Term::default().stage(u64::MAX), Stage::InForce);
        assert_eq!(Term::default().changes_at(0), None);
        let for_ever = Term { ends_unix_s: Some(u64::MAX), ..Term::default() };
        assert_eq!(for_ever.changes_at(5), Some(u64::MAX));
    }
}
