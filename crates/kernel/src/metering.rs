//! What machines use, counted where it is used: a few additions a turn and a host call.
//!
//! The counters are what was used since they were last taken; whoever takes them keeps the sums. A
//! loss of power loses what nobody had taken, in favour of who would pay for it.

use tenure_hal::{Flash, Instant};
use tenure_wire::MachineId;
use tenure_wire::usage::Usage;

use crate::kernel::Kernel;
use crate::program::Program;

impl<F: Flash> Kernel<F> {
    /// What the machine used since this was last asked, but for what its device sent for it.
    pub fn take_usage(&mut self, now: Instant, id: MachineId) -> Option<Usage> {
        let slot = self.slot_of_id(id)?;
        self.count_storage(slot, now);
        let machine = self.machine_mut(slot)?;
        let memory = machine.instance.as_ref().map_or(0, |program| program.memory().len() as u64);
        let next = Usage { memory_bytes_peak: memory, ..Usage::default() };
        Some(core::mem::replace(&mut machine.usage, next))
    }

    /// Counts the time of the turn before this one for the machine that had it.
    pub(crate) fn count_run_time(&mut self, now: Instant) {
        let (Some(began), Some(turn)) = (self.turn_began, self.last_turn) else { return };
        if let Some(machine) = self.machine_mut(turn.slot) {
            machine.usage.run_us += now.since(began).as_micros() as u64;
        }
    }

    /// Counts the fuel of a turn, and the memory in use after it.
    pub(crate) fn count_turn(&mut self, slot: usize, fuel: u64) {
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.usage.fuel += fuel;
        let memory =
            machine.instance.as_ref().map_or(0, |program: &Program| program.memory().len());
        machine.usage.memory_bytes_peak = machine.usage.memory_bytes_peak.max(memory as u64);
    }

    /// Counts what the machine has stored up to now: before that changes, and before it is taken.
    pub(crate) fn count_storage(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine(slot) else { return };
        let stored = self.stored_bytes(slot) as u64;
        let code: u64 = machine.record.extents().map(|extent| u64::from(extent.bytes)).sum();
        let Some(machine) = self.machine_mut(slot) else { return };
        let span_ms = now.as_millis().saturating_sub(machine.stored_until.as_millis());
        machine.usage.stored_byte_ms += stored.saturating_mul(span_ms);
        machine.usage.code_byte_ms += code.saturating_mul(span_ms);
        if span_ms > 0 {
            machine.stored_until = now;
        }
    }
}
