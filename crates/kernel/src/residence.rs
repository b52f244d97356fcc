//! Residence: which programs are in RAM, which stand in code flash, and how they come and go.
//!
//! Invariants:
//! - A machine whose turn it is has all the memory that its budget promises: others go to flash until
//!   it has.
//! - Who came into RAM stays for [`Config::swap_residence`] at least, so that machines
//!   which want the processor in turn don't wear the flash out; who wants in meanwhile waits.
//! - Those at rest don't stay: they give way at once, within a budget of bytes a day
//!   ([`Config::swap_erasures_per_day`]). Of them who ran least lately goes first.
//!
//! A program is suspended where it stands, in the middle of a function or of a host call that waits;
//! whatever else the kernel knows of the machine (its queue, its timers, what it waits for) stays where it
//! is. What is written is checked when it is read: the vm's checksum finds damage, and the image that it
//! was suspended from must be the one that it goes on with. Where the device seals what machines keep,
//! their running state is sealed too. Deep sleep uses the same mechanism.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_store::SEAL_BYTES;
use tenure_vm::{Instance, InstanceConfig, ResumeError};
use tenure_wire::LogLevel;
use tenure_wire::{Budget, CodeKind, Digest};

use crate::bucket::Bucket;
use crate::code::{CodeError, Extent};
use crate::config::Config;
use crate::cost;
use crate::fault::{Fault, FaultKind};
use crate::lifecycle::State;
use crate::machine::{Machine, Wait};
use crate::machines::Machines;
use crate::outbox::Outbox;
use crate::processors::Processors;
use crate::program::{Code, Engine, EngineError, EngineInstance, Program};
use crate::slot::Slot;
use crate::storage::Storage;

/// Bytes that a suspended machine takes in flash beside its memory and stack, rounding up to sectors aside.
const OVERHEAD: u64 = 1024;
/// How long nobody is swapped, at least, after the flash failed.
const SWAP_PAUSE: Duration = Duration::from_secs(1);

/// Programs, with what they need to come and go.
pub(crate) struct Residence<'a, F> {
    pub(crate) machines: &'a mut Machines,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) storage: &'a mut Storage<F>,
    pub(crate) processors: &'a mut Processors,
    pub(crate) swap_again_at: &'a mut Instant,
    pub(crate) early_swaps: &'a mut Bucket,
    pub(crate) config: &'a Config,
    pub(crate) now: Instant,
}

impl<F: Flash> Residence<'_, F> {
    /// When the machine in `slot` can be in RAM, if it can't be now.
    pub(crate) fn waits_for_ram(&self, slot: Slot) -> Option<Instant> {
        if self.config.swap_bytes_max == 0 {
            return None;
        }
        let mut missing = self.missing(slot)?;
        if *self.swap_again_at > self.now {
            return Some(*self.swap_again_at);
        }
        let mut residents: Vec<(Instant, u64)> = self
            .residents(slot)
            .map(|machine| (self.may_leave_at(machine), machine.memory_promised()))
            .collect();
        tenure_hal::sort(&mut residents);
        for (leaves_at, bytes) in residents {
            missing = missing.saturating_sub(bytes);
            if missing == 0 {
                return (leaves_at > self.now).then_some(leaves_at);
            }
        }
        // An engine's machine can't be suspended; perhaps it stops.
        Some(self.now + self.config.swap_residence)
    }

    /// Sends machines to flash until the one in `slot` has room in RAM; returns whether it has. What that
    /// costs in fuel is added to `cost`.
    ///
    /// Where the flash fails, whoever wants in isn't to blame: it waits, and tries again later.
    pub(crate) fn make_room(&mut self, slot: Slot, cost: &mut u64) -> bool {
        if self.config.swap_bytes_max == 0 {
            return true;
        }
        while self.missing(slot).is_some() {
            let leaving = self
                .residents(slot)
                .filter(|machine| self.may_leave_at(machine) <= self.now)
                .min_by_key(|machine| (machine.state == State::Ready, machine.ran_at))
                .map(|machine| {
                    let is_early = self.residence_ends_at(machine) > self.now;
                    (machine.slot, machine.memory_promised(), is_early)
                });
            let Some((leaving, bytes, is_early)) = leaving else { return false };
            if let Err(error) = self.suspend(leaving) {
                *self.swap_again_at = self.now + self.config.swap_residence.max(SWAP_PAUSE);
                self.log_failed_swap(leaving, error);
                return false;
            }
            if is_early {
                self.early_swaps.charge(self.now, bytes);
            }
            // The machine that comes in pays for it: one that has nothing to do can't help it.
            if let Some(machine) = self.machines.known_mut(slot) {
                machine.usage.flash_writes += 1;
                machine.usage.flash_bytes += bytes;
            }
            *cost += cost::of_swap(bytes);
        }
        true
    }

    /// The program of the machine in `slot`: from RAM, brought back from flash, or made anew from its code.
    pub(crate) fn take_program(&mut self, slot: Slot) -> Result<Program, Fault> {
        let Some(machine) = self.machines.known_mut(slot) else {
            return Err(Fault::of(FaultKind::Image));
        };
        if let Some(program) = machine.instance.take() {
            // It didn't sleep after all.
            self.storage.discard_state(machine);
            return Ok(program);
        }
        let resumed = self.bring_back(slot)?;
        if let Some(machine) = self.machines.known_mut(slot) {
            machine.resident_since = self.now;
        }
        match resumed {
            Some(program) => Ok(program),
            None => self.new_program(slot),
        }
    }

    /// Writes the program of `slot` to code flash and returns its RAM; it comes back by itself when
    /// the machine runs next. A machine that has none in RAM, or that an engine runs, is left as it is.
    ///
    /// # Errors
    /// As [`CodeError`] says; the program is in RAM as before then.
    pub(crate) fn suspend(&mut self, slot: Slot) -> Result<(), CodeError> {
        let Some(machine) = self.machines.get_mut(slot) else { return Ok(()) };
        let image = self.storage.image(machine);
        let (Some(Program::Image(instance)), Some(image)) = (&machine.instance, image) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        instance.suspend(&image, &mut bytes);
        let bytes = self.storage.sealed_state(&machine.record, bytes);
        let extent = self.storage.code.keep(&bytes)?;
        #[cfg(feature = "journal")]
        machine.note_suspension();
        machine.instance = None;
        machine.suspended = Some(extent);
        Ok(())
    }

    /// Suspends every machine that the vm runs.
    ///
    /// # Errors
    /// As [`CodeError`] says; some machines may be in flash and some in RAM then, and all run on.
    pub(crate) fn suspend_all(&mut self) -> Result<(), CodeError> {
        self.machines.slots().try_for_each(|slot| self.suspend(slot))
    }

    /// Writes down where the program of `slot` stands that an engine runs, which stays in RAM: only there
    /// can it go on, and at the same place. Does nothing for what the vm runs.
    pub(crate) fn write_down(&mut self, slot: Slot) -> Result<(), NotWrittenDown> {
        let Some(machine) = self.machines.get_mut(slot) else { return Ok(()) };
        let Some(Program::Engine(instance)) = &machine.instance else { return Ok(()) };
        let state = instance.suspend(SEAL_BYTES).map_err(|_| NotWrittenDown::Memory)?;
        let state = state.ok_or(NotWrittenDown::Engine)?;
        let sealed = self.storage.sealed_state(&machine.record, state);
        self.storage.discard_state(machine);
        let extent = self.storage.code.keep(&sealed).map_err(NotWrittenDown::Code)?;
        machine.suspended = Some(extent);
        Ok(())
    }

    /// Whether the machine in `slot` doesn't start yet because the board's engine is being prepared for it.
    pub(crate) fn is_compiling(&mut self, slot: Slot) -> bool {
        let Some(machine) = self.machines.known(slot) else { return false };
        let starts = machine.instance.is_none() && machine.suspended.is_none();
        let wasm = machine.record.faster.filter(|_| starts && !machine.engine_refused);
        match (wasm.map(|wasm| self.storage.code.view(wasm)), &mut self.processors.engine) {
            (Some(Ok(wasm)), Some(engine)) => {
                let record = &machine.record;
                !engine.is_prepared(&record.package, &record.tenant, Code::WebAssembly(wasm))
            }
            _ => false,
        }
    }

    fn log_failed_swap(&mut self, leaving: Slot, error: CodeError) {
        let Some(machine) = self.machines.known(leaving) else { return };
        let message = alloc::format!("can't go to flash to make room for another: {error}");
        self.outbox.log(self.now, &machine.record.name, LogLevel::Warning, message);
    }

    /// How much RAM the machine in `slot` lacks for coming in, if it isn't there and lacks any.
    fn missing(&self, slot: Slot) -> Option<u64> {
        let machine = self.machines.known(slot).filter(|machine| machine.instance.is_none())?;
        machine.memory_promised().checked_sub(self.room() as u64).filter(|missing| *missing > 0)
    }

    /// The RAM that no program in it was promised, in bytes.
    fn room(&self) -> usize {
        self.config.memory_bytes_max.saturating_sub(self.machines.memory_in_use())
    }

    /// Machines in RAM that can go to flash, but for the one in `slot`.
    fn residents(&self, slot: Slot) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(move |machine| {
            machine.slot != slot && matches!(machine.instance, Some(Program::Image(_)))
        })
    }

    /// When the machine may go to flash. One at rest needn't stay for its time once the budget has room for it.
    fn may_leave_at(&self, machine: &Machine) -> Instant {
        let residence_ends_at = self.residence_ends_at(machine);
        if !self.is_at_rest(machine) {
            return residence_ends_at;
        }
        let bytes = machine.memory_promised();
        residence_ends_at.min(self.early_swaps.full_enough_at(bytes))
    }

    fn residence_ends_at(&self, machine: &Machine) -> Instant {
        machine.resident_since + self.config.swap_residence
    }

    /// Whether the machine won't want the processor by itself before others that came in for a time have left.
    fn is_at_rest(&self, machine: &Machine) -> bool {
        match machine.state {
            State::Ready => false,
            State::Waiting => match machine.wait {
                Some(Wait::Until(at) | Wait::Event(Some(at))) => {
                    at > self.now + self.config.swap_residence
                }
                _ => true,
            },
            _ => true,
        }
    }

    fn new_program(&mut self, slot: Slot) -> Result<Program, Fault> {
        let config = self.instance_config(slot).ok_or(Fault::of(FaultKind::Image))?;
        if self.is_native(slot) {
            let started = self.start_binary(slot, &config);
            return started.map(Program::Engine).map_err(Fault::of);
        }
        if let Some(instance) = self.start_on_engine(slot, &config) {
            return Ok(Program::Engine(instance));
        }
        let machine = self.machines.known(slot);
        let image = machine.and_then(|machine| self.storage.image(machine));
        let image = image.ok_or(Fault::of(FaultKind::Image))?;
        let instance = Instance::new_lazy(&image, &config);
        instance
            .map(|instance| Program::Image(Box::new(instance)))
            .map_err(|_| Fault::of(FaultKind::Memory))
    }

    /// An instance on the board's engine, if the machine asks for one and the engine takes it.
    fn start_on_engine(
        &mut self,
        slot: Slot,
        config: &InstanceConfig,
    ) -> Option<Box<dyn EngineInstance>> {
        let machine = self.machines.known_mut(slot)?;
        let wasm = machine.record.faster.filter(|_| !machine.engine_refused)?;
        let engine = self.processors.engine.as_mut();
        let engine = engine.filter(|engine| engine.kind() == CodeKind::WebAssembly)?;
        let code = Code::WebAssembly(self.storage.code.view(wasm).ok()?);
        let error = match engine.start(&machine.record.package, code, config) {
            Ok(instance) => return Some(instance),
            Err(error) => error,
        };
        machine.compiling_since = None;
        machine.engine_refused = error != EngineError::Compiling;
        let until = if machine.engine_refused { "" } else { " until it starts again" };
        let message = alloc::format!("runs in the vm{until}, not at native speed: {error}");
        self.outbox.log(self.now, &machine.record.name, LogLevel::Warning, message);
        None
    }

    /// An instance of the machine's native binary.
    fn start_binary(
        &mut self,
        slot: Slot,
        config: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, FaultKind> {
        let machine = self.machines.known(slot).ok_or(FaultKind::Image)?;
        let package: &Digest = &machine.record.package;
        let started = match (self.storage.binary(machine), &mut self.processors.engine) {
            (Some(binary), Some(engine)) if engine.kind() == binary.kind() => {
                engine.start(package, Code::Native(binary), config)
            }
            _ => Err(EngineError::Module),
        };
        started.map_err(FaultKind::from)
    }

    /// The program of `slot` as it was suspended, if it was. Before anything comes into RAM, the native
    /// machines that slept do, while the places are free where they were; one that can't is told why when
    /// its own turn comes.
    fn bring_back(&mut self, slot: Slot) -> Result<Option<Program>, Fault> {
        for other in self.machines.slots().filter(|other| *other != slot) {
            if !self.is_native_asleep(other) {
                continue;
            }
            let resumed = self.resume(other);
            if let (Ok(program), Some(machine)) = (resumed, self.machines.known_mut(other)) {
                machine.instance = program;
            }
        }
        self.resume(slot)
    }

    fn is_native(&self, slot: Slot) -> bool {
        self.machines.get(slot).is_some_and(|machine| self.storage.binary(machine).is_some())
    }

    fn is_native_asleep(&self, slot: Slot) -> bool {
        self.machines.get(slot).is_some_and(Machine::is_swapped) && self.is_native(slot)
    }

    /// The program of `slot` as it was suspended, if it was; its room in flash is free afterwards.
    fn resume(&mut self, slot: Slot) -> Result<Option<Program>, Fault> {
        let suspended = self.machines.known(slot).and_then(|machine| machine.suspended);
        let Some(extent) = suspended else { return Ok(None) };
        let mut engine = self.processors.engine.take();
        let resumed = self.reopen(slot, extent, engine.as_deref_mut());
        self.processors.engine = engine;
        let resumed = resumed.map_err(Fault::of)?;
        if let Some(machine) = self.machines.known_mut(slot) {
            self.storage.discard_state(machine);
        }
        Ok(Some(resumed))
    }

    fn reopen(
        &self,
        slot: Slot,
        extent: Extent,
        engine: Option<&mut (dyn Engine + 'static)>,
    ) -> Result<Program, FaultKind> {
        let config = self.instance_config(slot).ok_or(FaultKind::Image)?;
        let machine = self.machines.known(slot).ok_or(FaultKind::Image)?;
        let view = self.storage.code.view(extent).map_err(|_| FaultKind::Suspended)?;
        let opened = self.storage.opened_state(&machine.record, view);
        let opened = opened.ok_or(FaultKind::Suspended)?;
        let bytes = opened.as_ref().map_or(view, |opened| opened.as_slice());
        if let Some(binary) = self.storage.binary(machine) {
            let engine = engine.filter(|engine| engine.kind() == binary.kind());
            let engine = engine.ok_or(FaultKind::Image)?;
            let resumed = engine.resume(Code::Native(binary), &config, bytes);
            return Ok(Program::Engine(resumed?));
        }
        let image = self.storage.image(machine).ok_or(FaultKind::Image)?;
        let resumed = Instance::resume(&image, bytes, &config).map_err(|error| match error {
            ResumeError::StackBudget | ResumeError::MemoryBudget | ResumeError::OutOfMemory => {
                FaultKind::Memory
            }
            _ => FaultKind::Suspended,
        })?;
        Ok(Program::Image(Box::new(resumed)))
    }

    /// The memory that the machine's budget and the device leave to an instance.
    pub(crate) fn instance_config(&self, slot: Slot) -> Option<InstanceConfig> {
        let budget = self.machines.known(slot)?.record.budget;
        let stack_bytes = budget.stack_bytes as usize;
        let room = self.room();
        Some(InstanceConfig {
            stack_bytes: stack_bytes.min(room),
            memory_bytes_max: (room - stack_bytes.min(room)).min(budget.memory_bytes as usize),
        })
    }
}

/// Whether a device with `sector_bytes` of flash keeps the promise of `budget` to one more machine beside
/// `others`: in RAM, or in RAM by turns with what is set aside in flash.
pub(crate) fn has_memory_for<'a>(
    budget: &Budget,
    others: impl Iterator<Item = &'a Machine>,
    config: &Config,
    sector_bytes: u32,
) -> bool {
    let wanted = u64::from(budget.memory_bytes) + u64::from(budget.stack_bytes);
    let room = config.memory_bytes_max as u64;
    let promises = others.map(Machine::memory_promised).chain([wanted]);
    let (count, sum, largest) = promises
        .fold((0, 0, 0_u64), |(count, sum, most), one| (count + 1, sum + one, most.max(one)));
    if sum <= room {
        return true;
    }
    // While the largest comes in, those that make room for it are in flash with the others.
    let sectors = u64::from(sector_bytes) + OVERHEAD;
    let in_flash = sum - room + largest + count * sectors;
    largest <= room && in_flash <= u64::from(config.swap_bytes_max)
}

/// Why the state of a machine that an engine runs was not written down.
pub(crate) enum NotWrittenDown {
    /// There is no memory to do so.
    Memory,
    /// Its engine can't.
    Engine,
    /// Code flash has no room, or failed.
    Code(CodeError),
}
