//! The owner's word that a machine doesn't run: kept beside its record until the owner starts it again.
//!
//! A machine that is stopped keeps its place, its memory's room, its tree and its lease, and is billed for
//! what it stores. An update, a restart of the device, a fault or a new term of its lease doesn't start it.

use tenure_hal::Flash;
use tenure_wire::LogLevel;
use tenure_wire::Name;
use tenure_wire::NoResult;

use crate::install_error::InstallError;
use crate::lifecycle::{Event, State};
use crate::parts::Parts;
use crate::tenancy::Tenancy;

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
        storage.keep_halt(machine)?;
        machine.halt();
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
        storage.forget_halt(slot)?;
        machine.is_halted = false;
        machine.timers = storage.timers_anew(machine, clock.unix_us(self.now), self.now);
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
