//! Suspended machines: an instance as bytes in code flash instead of in RAM.
//!
//! One mechanism serves machines that don't fit into RAM and a device in deep sleep. An instance is
//! suspended where it stands, in the middle of a function or of a host call that waits; whatever
//! else the kernel knows of the machine (its queue, its timers, what it waits for) stays where it is.
//! What is written is checked when it is read: the vm's checksum finds damage, and the image that it
//! was suspended from must be the one that it goes on with. Where the device seals what machines keep,
//! their running state is sealed too.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_store::SEAL_BYTES;
use tenure_vm::{Instance, ResumeError};
use zeroize::{Zeroize as _, Zeroizing};

use crate::asleep::SleepError;
use crate::code::{CodeError, Extent};
use crate::kernel::Kernel;
use crate::machine::{Fault, FaultKind};
use crate::program::{Code, Engine, Program};

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
        let mut bytes = Vec::new();
        instance.suspend(&image, &mut bytes);
        let bytes = self.sealed_state(slot, bytes);
        let extent = self.code.keep(&bytes)?;
        if let Some(machine) = self.machine_mut(slot) {
            machine.instance = None;
            machine.suspended = Some(extent);
        }
        Ok(())
    }

    /// Writes down where the instances stand that an engine runs, which stay in RAM: only there can they
    /// go on, and at the same place.
    pub(crate) fn write_down(&mut self) -> Result<(), SleepError> {
        for slot in 0..self.machines.len() {
            let Some(machine) = self.machine(slot) else { continue };
            let Some(Program::Engine(instance)) = &machine.instance else { continue };
            let state = instance.suspend(SEAL_BYTES).map_err(|_| SleepError::Memory)?;
            let name = &machine.record.name;
            let state = state.ok_or_else(|| SleepError::Engine { machine: name.clone() })?;
            let sealed = self.sealed_state(slot, state);
            self.discard_state(slot);
            let extent = self.code.keep(&sealed).map_err(SleepError::Code)?;
            if let Some(machine) = self.machine_mut(slot) {
                machine.suspended = Some(extent);
            }
        }
        Ok(())
    }

    /// Gives back the room of what was written down of a machine that goes on as it is.
    pub(crate) fn discard_state(&mut self, slot: usize) {
        let extent = self.machine_mut(slot).and_then(|machine| machine.suspended.take());
        if let Some(extent) = extent {
            self.code.release(extent);
        }
    }

    /// The instance of `slot` as it was suspended, if it was. Before anything comes into RAM, the native
    /// machines that slept do, while the places are free where they were; one that can't is told why when
    /// its own turn comes.
    pub(crate) fn bring_back(&mut self, slot: usize) -> Result<Option<Program>, Fault> {
        let others = (0..self.machines.len()).filter(|other| *other != slot);
        for one in others.chain([slot]) {
            if one != slot && !self.is_native_asleep(one) {
                continue;
            }
            let resumed = self.resume(one);
            if one == slot {
                return resumed;
            }
            if let (Ok(program), Some(machine)) = (resumed, self.machine_mut(one)) {
                machine.instance = program;
            }
        }
        Ok(None)
    }

    fn is_native_asleep(&self, slot: usize) -> bool {
        let machine = self.machine(slot);
        machine.is_some_and(|one| one.suspended.is_some() && one.instance.is_none())
            && self.binary(slot).is_some()
    }

    /// The instance of `slot` as it was suspended, if it was; its room in flash is free afterwards.
    #[inline(always)]
    fn resume(&mut self, slot: usize) -> Result<Option<Program>, Fault> {
        let Some(extent) = self.machine(slot).and_then(|machine| machine.suspended) else {
            return Ok(None);
        };
        let mut engine = self.engine.take();
        let resumed = self.reopen(slot, extent, engine.as_deref_mut());
        self.engine = engine;
        let resumed = resumed.map_err(Fault::of)?;
        self.discard_state(slot);
        Ok(Some(resumed))
    }

    fn reopen(
        &self,
        slot: usize,
        extent: Extent,
        engine: Option<&mut (dyn Engine + 'static)>,
    ) -> Result<Program, FaultKind> {
        let config = self.instance_config(slot).ok_or(FaultKind::Image)?;
        let view = self.code.view(extent).map_err(|_| FaultKind::Suspended)?;
        let opened = self.opened_state(slot, view).ok_or(FaultKind::Suspended)?;
        let bytes = opened.as_ref().map_or(view, |opened| opened.as_slice());
        if let Some(binary) = self.binary(slot) {
            let engine = engine.filter(|engine| engine.kind() == binary.kind());
            let engine = engine.ok_or(FaultKind::Image)?;
            let resumed = engine.resume(Code::Native(binary), &config, bytes);
            return Ok(Program::Engine(resumed?));
        }
        let image = self.image(slot).ok_or(FaultKind::Image)?;
        let resumed = Instance::resume(&image, bytes, &config).map_err(|error| match error {
            ResumeError::StackBudget | ResumeError::MemoryBudget | ResumeError::OutOfMemory => {
                FaultKind::Memory
            }
            _ => FaultKind::Suspended,
        })?;
        Ok(Program::Image(Box::new(resumed)))
    }

    /// A machine's running state in the form in which it goes to flash. What it was before is wiped.
    fn sealed_state(&mut self, slot: usize, mut state: Vec<u8>) -> Vec<u8> {
        let Some(record) = self.machines[slot].as_ref().map(|machine| &machine.record) else {
            return state;
        };
        let Some(sealer) = &mut self.sealer else { return state };
        // Sealing appends to it, and room for that must not leave a copy behind.
        let mut sealed = if state.capacity() - state.len() >= SEAL_BYTES {
            state
        } else {
            let mut roomy = Vec::with_capacity(state.len() + SEAL_BYTES);
            roomy.extend_from_slice(&state);
            state.zeroize();
            roomy
        };
        sealer.seal_state(record, &mut sealed);
        sealed
    }

    /// A machine's running state as it was before it was sealed: `Some(None)` if nothing seals it,
    /// `None` if it doesn't open.
    #[allow(clippy::option_option)]
    fn opened_state(&self, slot: usize, sealed: &[u8]) -> Option<Option<Zeroizing<Vec<u8>>>> {
        let (Some(sealer), Some(machine)) = (&self.sealer, self.machine(slot)) else {
            return Some(None);
        };
        let mut state = Zeroizing::new(sealed.to_vec());
        sealer.open_state(&machine.record, &mut state).ok()?;
        Some(Some(state))
    }

    /// Suspends every machine to flash; each returns by itself when it runs next.
    ///
    /// # Errors
    /// As [`CodeError`] says; some machines may be in flash and some in RAM then, and all run on.
    pub fn suspend_all(&mut self) -> Result<(), CodeError> {
        (0..self.machines.len()).try_for_each(|slot| self.suspend(slot))
    }
}
