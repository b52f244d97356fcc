//! The owner's word that a machine doesn't run: kept beside its record until the owner starts it again.
//!
//! A machine that is stopped keeps its place, its memory's room, its tree and its lease, and is billed for
//! what it stores. An update, a restart of the device, a fault or a new term of its lease doesn't start it.

use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_wire::LogLevel;
use tenure_wire::Name;
use tenure_wire::NoResult;

use crate::install_error::InstallError;
use crate::lifecycle::{Event, State};
use crate::machine::Machine;
use crate::parts::Parts;
use crate::slot::KERNEL_TREE;
use crate::storage::{Storage, delete, set};
use crate::tenancy::Tenancy;
use crate::timer::Timer;

/// The path in the kernel's tree below which slots are marked whose machines the owner stopped; each mark
/// holds the id of its machine, so that it doesn't stop another one in that slot.
const HALTED_PATH: &str = "halted";

impl<F: Flash> Tenancy<'_, F> {
    /// Stops a machine until [`Tenancy::start`]: memory, tasks and calls under way go, and its callers get
    /// a failure. One that is stopped already stays so.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's; the machine is as before then.
    pub fn halt(&mut self, name: &Name) -> Result<(), InstallError> {
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        if machine.is_halted {
            return Ok(());
        }
        let slot = machine.slot;
        storage.store.batch(&[set(&slot.path(HALTED_PATH), &machine.id.0)])?;
        machine.is_halted = true;
        machine.timers.clear();
        self.parts.end(self.now, slot, Event::Halted, NoResult::Halted);
        self.parts.log(self.now, slot, LogLevel::Info, "stopped by its owner");
        Ok(())
    }

    /// Starts a machine that was stopped, from its entry; its timers begin anew, as after a restart of the
    /// device. One that isn't stopped stays as it is.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's; the machine is as before then.
    pub fn start(&mut self, name: &Name) -> Result<(), InstallError> {
        let Parts { machines, storage, clock, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        if !machine.is_halted {
            return Ok(());
        }
        let slot = machine.slot;
        storage.store.batch(&[delete(&slot.path(HALTED_PATH))])?;
        machine.is_halted = false;
        machine.timers = recalled_timers(storage, clock.unix_us(self.now), machine, self.now);
        clock.timers_changed();
        let is_over = machine.state != State::Halted;
        if !is_over {
            machine.step(Event::Resumed);
            machine.stay_down();
        }
        self.parts.log(self.now, slot, LogLevel::Info, "started by its owner");
        if !is_over {
            self.parts.check_code(self.now, slot);
        }
        Ok(())
    }
}

/// The timers that `machine` had set, or else those of its package, begun anew.
pub(crate) fn recalled_timers<F: Flash>(
    storage: &mut Storage<F>,
    unix_us: Option<u64>,
    machine: &Machine,
    now: Instant,
) -> Vec<Timer> {
    let mut timers = storage
        .recall_timers(machine)
        .unwrap_or_else(|| machine.record.timers.iter().map(Timer::of_package).collect());
    for timer in &mut timers {
        timer.due = None;
        timer.begin(now, unix_us);
    }
    timers
}

/// Keeps a machine that is about to take its slot from running, if its owner stopped it before.
pub(crate) fn recall_halt<F: Flash>(storage: &mut Storage<F>, machine: &mut Machine) {
    let mark = storage.store.get(KERNEL_TREE, &machine.slot.path(HALTED_PATH)).ok().flatten();
    if mark.is_some_and(|mark| mark.bytes == machine.id.0) {
        machine.is_halted = true;
        machine.timers.clear();
        machine.stay_down();
    }
}
