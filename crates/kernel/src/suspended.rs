//! Suspended machines: an instance as bytes in code flash instead of in RAM.
//!
//! One mechanism serves machines that don't fit into RAM and a device in deep sleep. An instance is
//! suspended where it stands, in the middle of a function or of a host call that waits; whatever
//! else the kernel knows of the machine (its queue, its timers, what it waits for) stays where it is.
//! What is written is checked when it is read: the vm's checksum finds damage, and the image that it
//! was suspended from must be the one that it goes on with.

use tenure_hal::Flash;
use tenure_vm::{Instance, ResumeError};

use crate::code::CodeError;
use crate::kernel::Kernel;
use crate::machine::{Fault, FaultKind};
use crate::program::Program;

impl<F: Flash> Kernel<F> {
    /// Writes the instance of `slot` to code flash and gives its RAM back; it returns by itself when
    /// the machine runs next. A machine that has none in RAM, or that an engine runs, is left as it is.
    ///
    /// # Errors
    /// As [`CodeError`] says; the instance is in RAM as before then.
    pub(crate) fn suspend(&mut self, slot: usize) -> Result<(), CodeError> {
        let instance = self.machine(slot).and_then(|machine| machine.instance.as_ref());
        let (Some(Program::Image(instance)), Some(image)) = (instance, self.image(slot)) else {
            return Ok(());
        };
        let mut bytes = alloc::vec::Vec::new();
        instance.suspend(&image, &mut bytes);
        let extent = self.code.keep(&bytes)?;
        if let Some(machine) = self.machine_mut(slot) {
            machine.instance = None;
            machine.suspended = Some(extent);
        }
        Ok(())
    }

    /// The instance of `slot` as it was suspended, if it was; its room in flash is free afterwards.
    pub(crate) fn resume(&mut self, slot: usize) -> Result<Option<Instance>, Fault> {
        let Some(extent) = self.machine(slot).and_then(|machine| machine.suspended) else {
            return Ok(None);
        };
        let config = self.instance_config(slot).ok_or(Fault::of(FaultKind::Image))?;
        let image = self.image(slot).ok_or(Fault::of(FaultKind::Image))?;
        let bytes = self.code.view(extent).map_err(|_| Fault::of(FaultKind::Suspended))?;
        let resumed = Instance::resume(&image, bytes, &config).map_err(|error| {
            Fault::of(match error {
                ResumeError::StackBudget | ResumeError::MemoryBudget | ResumeError::OutOfMemory => {
                    FaultKind::Memory
                }
                _ => FaultKind::Suspended,
            })
        })?;
        self.code.release(extent);
        if let Some(machine) = self.machine_mut(slot) {
            machine.suspended = None;
        }
        Ok(Some(resumed))
    }

    /// Suspends every machine to flash; each returns by itself when it runs next.
    ///
    /// # Errors
    /// As [`CodeError`] says; some machines may be in flash and some in RAM then, and all run on.
    pub fn suspend_all(&mut self) -> Result<(), CodeError> {
        (0..self.machines.len()).try_for_each(|slot| self.suspend(slot))
    }
}
