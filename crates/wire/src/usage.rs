//! The use of a machine: counted by the kernel and the sessions, summed up in receipts.

use serde::{Deserialize, Serialize};

/// Amounts that were used over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Fuel: instructions, and what host calls cost beside them.
    pub fuel: u64,
    /// How long it had the processor, in microseconds: from the start of a turn until the device
    /// turned to the next thing.
    pub run_us: u64,
    /// The most linear memory that was in use after a turn, in bytes.
    pub memory_bytes_peak: u64,
    /// Code in flash, in bytes times milliseconds.
    pub code_byte_ms: u64,
    /// Its tree in flash, in bytes times milliseconds.
    pub stored_byte_ms: u64,
    /// Changes of its tree that were written to flash.
    pub flash_writes: u64,
    /// Bytes that they took.
    pub flash_bytes: u64,
    /// Calls that it made and events that it published.
    pub messages: u64,
    /// The bytes that its device sent in its sessions and to open them, repetitions
    /// included.
    pub air_bytes: u64,
}

impl Usage {
    /// Both together: sums, and the higher peak. What doesn't fit stays at the top.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.saturating_add(other.fuel),
            run_us: self.run_us.saturating_add(other.run_us),
            memory_bytes_peak: self.memory_bytes_peak.max(other.memory_bytes_peak),
            code_byte_ms: self.code_byte_ms.saturating_add(other.code_byte_ms),
            stored_byte_ms: self.stored_byte_ms.saturating_add(other.stored_byte_ms),
            flash_writes: self.flash_writes.saturating_add(other.flash_writes),
            flash_bytes: self.flash_bytes.saturating_add(other.flash_bytes),
            messages: self.messages.saturating_add(other.messages),
            air_bytes: self.air_bytes.saturating_add(other.air_bytes),
        }
    }
}
