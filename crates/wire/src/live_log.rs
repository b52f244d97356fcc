//! A device's log as it grows, told to its hub while somebody watches it there.
//!
//! A device whose owner lets its hub show the log asks now and then whether it is watched. Its first answer comes
//! without a line; lines follow from the number on that the hub names.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Name;
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

/// How far somebody follows a device's log, over its restarts: each line counts once.
///
/// Lines are numbered anew with each boot, and those that the device kept come again as the first ones. They are known
/// by the boot and the millisecond in which they were said; of those of the last one, by who said what.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    boot: Option<u32>,
    next: u64,
    last: Place,
    /// The last line before the restart, and what is left of those beside it.
    before: Place,
}

/// A moment in which lines were said.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The boot, and the milliseconds since.
    at: Option<(u32, u64)>,
    /// The lines of it: who said what.
    said: Vec<(Name, String)>,
}

impl Place {
    /// Whether a line is of that moment or before; each of that moment counts once.
    fn takes(&mut self, at: (u32, u64), line: &LogLine) -> bool {
        let Some(last) = self.at.filter(|last| at <= *last) else { return false };
        if at < last {
            return true;
        }
        let is_it = |(machine, message): &(Name, String)| {
            *machine == line.machine && *message == line.message
        };
        let place = self.said.iter().position(is_it);
        place.is_some_and(|place| {
            self.said.swap_remove(place);
            true
        })
    }
}

impl Followed {
    /// The number of the first line that isn't there yet.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes note of the boot that a device is in. Returns whether it has restarted: lines are then to be asked for from
    /// the first one on, and what was answered by older numbers says nothing.
    pub fn is_restart(&mut self, boot: u32) -> bool {
        let is_restart = self.boot.replace(boot).is_some_and(|before| before != boot);
        if is_restart {
            self.next = 0;
            self.before.clone_from(&self.last);
        }
        is_restart
    }

    /// Goes on behind the lines with numbers below `next`.
    pub fn go_on_from(&mut self, next: u64) {
        self.next = next;
    }

    /// Whether a line is new, which counts from then on.
    pub fn takes(&mut self, line: &LogLine) -> bool {
        let at = (line.boot, line.at_ms);
        // Devices of before don't say the boot of a line.
        if line.boot != 0 && self.before.takes(at, line) {
            return false;
        }
        if self.last.at != Some(at) {
            self.last = Place { at: Some(at), said: Vec::new() };
        }
        self.last.said.push((line.machine.clone(), line.message.clone()));
        true
    }
}

#[cfg(test)]
mod tests;
