//! A device's log as it grows, told to its hub while somebody watches it there.
//!
//! A device whose owner lets its hub show the log asks now and then whether it is watched. Its first answer comes
//! without a line; lines follow from the number on that the hub names.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::LogLine;
use crate::list;

/// The lines of a device since those that the hub has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogShare {
    /// How often the device has booted; lines are numbered anew with each.
    pub boot: u32,
    /// The lines, oldest first; none unless the hub asked for them.
    #[serde(deserialize_with = "list::read")]
    pub lines: Vec<LogLine>,
    /// The number of the line that follows.
    pub next: u64,
}

/// The hub's answer to a [`LogShare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogWish {
    /// The number of the first line that the hub doesn't have, if somebody watches.
    pub from: Option<u64>,
    /// In how many seconds to ask again.
    pub again_s: u32,
}
