//! The first exchange: both sides learn each other's versions before anything else.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// The version of the owner's protocol that this software speaks. It goes up when the table gains a
/// function or a message gains a field that a caller may rely on.
pub const VERSION: u16 = 1;

/// The oldest version that this software still speaks.
pub const OLDEST: u16 = 1;

const _: () = assert!(OLDEST <= VERSION);

/// The versions that one side speaks. The encoding of these fields is the same in all versions; later
/// ones may follow them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version of the owner's protocol.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
    /// The version of the software, for people to read.
    pub software: String,
}

impl Hello {
    /// The versions that this build speaks; `software` is the version of the whole.
    pub fn own(software: &str) -> Self {
        Self { oldest: OLDEST, newest: VERSION, software: software.into() }
    }

    /// The newest version that both sides speak, if there is one.
    pub fn common(&self, other: &Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Tenure {}, versions {} to {} of the owner's protocol",
            self.software, self.oldest, self.newest
        )
    }
}
