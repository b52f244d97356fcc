//! The budget of a machine: asked for in its package, granted by the owner, enforced by the kernel.

use serde::{Deserialize, Serialize};

/// The fuel that one task may use where the manifest doesn't say: a hundred seconds of what a machine may use
/// by the second where its manifest doesn't say that either, so that an endless loop is a fault.
const TASK_FUEL_DEFAULT: u64 = 1_000_000_000;

/// The limits of one machine. The defaults are strict: what fits on the smallest class of device.
///
/// A limit by the second or the day is a bucket that fills evenly. It holds two seconds'
/// worth (of flash, a quarter of a day's), so that short bursts pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Linear memory, and what tables grow by, in bytes.
    pub memory_bytes: u32,
    /// The stack of running functions, with global variables and tables as they start, in bytes.
    pub stack_bytes: u32,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Tasks that wait in its queue, and calls of its own that are under way.
    pub queue_length: u16,
    /// The fuel that one task may use in all before it is stopped; 0 means no limit.
    pub task_fuel: u64,
    /// The fuel that it may use in a second; 0 means no limit but its share.
    pub fuel_per_second: u64,
    /// Bytes that its writes may append to flash in a day.
    pub flash_bytes_per_day: u32,
    /// The messages that it may send in a second.
    pub messages_per_second: u32,
    /// The bytes that those may have together, in a second.
    pub message_bytes_per_second: u32,
}

impl Budget {
    /// The smaller of the two in every respect.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            stack_bytes: self.stack_bytes.min(other.stack_bytes),
            stored_bytes: self.stored_bytes.min(other.stored_bytes),
            queue_length: self.queue_length.min(other.queue_length),
            task_fuel: smaller_limit(self.task_fuel, other.task_fuel),
            fuel_per_second: smaller_limit(self.fuel_per_second, other.fuel_per_second),
            flash_bytes_per_day: self.flash_bytes_per_day.min(other.flash_bytes_per_day),
            messages_per_second: self.messages_per_second.min(other.messages_per_second),
            message_bytes_per_second: self
                .message_bytes_per_second
                .min(other.message_bytes_per_second),
        }
    }
}

/// The smaller of two limits of which 0 is none.
fn smaller_limit(one: u64, two: u64) -> u64 {
    match (one, two) {
        (0, limit) | (limit, 0) => limit,
        (one, two) => one.min(two),
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            memory_bytes: 16 * 1024,
            stack_bytes: 4 * 1024,
            stored_bytes: 16 * 1024,
            queue_length: 8,
            task_fuel: TASK_FUEL_DEFAULT,
            fuel_per_second: 10_000_000,
            flash_bytes_per_day: 512 * 1024,
            messages_per_second: 50,
            message_bytes_per_second: 32 * 1024,
        }
    }
}
