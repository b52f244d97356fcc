//! What a machine may use: asked for in its package, granted by the owner, enforced by the kernel.

use serde::{Deserialize, Serialize};

/// The limits of one machine. The defaults are strict: what fits on the smallest class of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Linear memory and tables, in bytes.
    pub memory_bytes: u32,
    /// The stack of running functions, in bytes.
    pub stack_bytes: u32,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Tasks that wait in its queue, and calls of its own that are under way.
    pub queue_length: u16,
    /// The fuel that one task may use in all before it is stopped; 0 means no limit.
    pub task_fuel: u64,
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
            task_fuel: match (self.task_fuel, other.task_fuel) {
                (0, limit) | (limit, 0) => limit,
                (one, two) => one.min(two),
            },
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            memory_bytes: 16 * 1024,
            stack_bytes: 4 * 1024,
            stored_bytes: 16 * 1024,
            queue_length: 8,
            task_fuel: 0,
        }
    }
}
