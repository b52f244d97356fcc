//! Faults: what stops a machine, what it costs it, and what of that outlasts a restart.

use alloc::string::{String, ToString};
use core::time::Duration;

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant, ResetCause, Retained, proportion};
use tenure_store::ValueKind;
use tenure_vm::TrapKind;
use tenure_wire::Name;
use tenure_wire::host_call::HostError;

use crate::breadcrumb::Breadcrumb;
use crate::conduct::{Conduct, Repute};
use crate::effect::LogLevel;
use crate::failed::Failed;
use crate::kernel::{KERNEL_TREE, Kernel};
use crate::lifecycle::{Event, State};
use crate::look::LookError;
use crate::machine::{Fault, FaultKind};

/// The path in the kernel's tree below which is kept what is held against machines, by slot.
const CONDUCT_PATH: &str = "conduct";

impl<F: Flash> Kernel<F> {
    /// Lends the kernel memory that outlasts resets, to say there who runs.
    pub fn use_retained(&mut self, retained: Box<dyn Retained>) {
        self.retained = Some(retained);
    }

    /// Says why the device started, right after boot. If the watchdog bit while a machine ran, as the
    /// `breadcrumb` tells that was found in retained memory, that is a fault of this machine. Any
    /// other cause is nobody's fault.
    pub fn started_by(&mut self, now: Instant, cause: ResetCause, breadcrumb: Option<Breadcrumb>) {
        let Some(Breadcrumb(id)) = breadcrumb.filter(|_| cause == ResetCause::Watchdog) else {
            return;
        };
        if let Some(slot) = self.slot_of_id(id)
            && self
                .machine(slot)
                .is_some_and(|one| !matches!(one.state, State::Banned | State::Over))
        {
            self.fault(slot, now, Fault::of(FaultKind::Watchdog));
            self.keep_conduct(slot);
        }
    }

    /// Lifts a ban, or ends a probation; a machine that was banned starts at once.
    ///
    /// # Errors
    /// [`LookError::NoSuchMachine`].
    pub fn pardon(&mut self, now: Instant, name: &Name) -> Result<(), LookError> {
        let slot = self.slot_of_name(name).ok_or(LookError::NoSuchMachine)?;
        let Some(machine) = self.machine_mut(slot) else { return Err(LookError::NoSuchMachine) };
        let was_good = machine.conduct.repute() == Repute::Good;
        machine.conduct = Conduct::default();
        if !was_good {
            self.keep_conduct(slot);
        }
        if self.machine(slot).is_some_and(|machine| machine.state == State::Banned) {
            self.restart(slot);
            self.log(now, name.clone(), LogLevel::Info, "the ban was lifted".to_string());
        }
        Ok(())
    }

    /// Starts a machine again from its entry.
    pub(crate) fn restart(&mut self, slot: usize) {
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.restart_at = None;
        machine.step(Event::Restarted);
        self.enqueue_entry(slot);
        if let Some(machine) = self.machine_mut(slot)
            && machine.queue.is_empty()
        {
            machine.step(Event::Drained);
        }
    }

    /// Takes up what is held against the machine in `slot` since before the device started.
    pub(crate) fn recall_conduct(&mut self, slot: usize, now: Instant) {
        let value = self.store.get(KERNEL_TREE, &conduct_path(slot)).ok().flatten();
        let known: Option<(u64, Repute, u32)> =
            value.and_then(|value| postcard::from_bytes(&value.bytes).ok());
        let Some(machine) = self.machine_mut(slot) else { return };
        // What was held against a package before an update doesn't count any more.
        if let Some((placement, repute, score)) = known
            && placement == machine.record.placement
        {
            machine.conduct = Conduct::remembered(repute, score, now);
        }
        if machine.conduct.repute() == Repute::Banned {
            machine.state = State::Banned;
        }
    }

    /// Lets good behaviour count, at the end of a task.
    pub(crate) fn settle_conduct(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine_mut(slot) else { return };
        if machine.conduct == Conduct::default() {
            return;
        }
        let before = machine.conduct.repute();
        machine.conduct.settle(now);
        if machine.conduct.repute() != before {
            self.keep_conduct(slot);
        }
    }

    /// Writes down what is held against a machine. If the store has no room for that, it lasts until
    /// the device restarts.
    fn keep_conduct(&mut self, slot: usize) {
        let Some(machine) = self.machine(slot) else { return };
        let (conduct, placement) = (machine.conduct, machine.record.placement);
        let path = conduct_path(slot);
        if conduct == Conduct::default() {
            let _ = self.store.delete(KERNEL_TREE, &path);
            return;
        }
        if let Some(bytes) = conduct_bytes(&conduct, placement) {
            let _ = self.store.set(KERNEL_TREE, &path, ValueKind::Bytes, &bytes);
        }
    }

    /// Says in retained memory who runs.
    pub(crate) fn drop_breadcrumb(&mut self, slot: usize) {
        let Some(id) = self.machine(slot).map(|machine| machine.id) else { return };
        if let Some(retained) = &mut self.retained {
            retained.write(&Breadcrumb(id).to_bytes());
        }
    }

    /// Stops a machine: its task fails, its memory goes, its back-off begins.
    pub(crate) fn fault(&mut self, slot: usize, now: Instant, fault: Fault) {
        let fuel_per_second = self.fuel_per_second;
        let Some(machine) = self.machine_mut(slot) else { return };
        let repute = machine.conduct.repute();
        let ran = time_of(machine.fuel_used - machine.fuel_at_start, fuel_per_second);
        machine.back_off(now, ran, fault);
        self.no_timer_before = None;
        let Some(machine) = self.machine_mut(slot) else { return };
        let suspended = machine.suspended.take();
        let name = machine.record.name.clone();
        let task = machine.current.take().map(|running| running.task);
        if task.is_some() {
            machine.tasks_done += 1;
        }
        let function = task
            .as_ref()
            .map_or(String::new(), |task| alloc::format!(" while serving `{}`", task.function));
        self.forget_events(slot);
        if let Some(extent) = suspended {
            self.code.release(extent);
        }
        self.log(now, name, LogLevel::Fault, alloc::format!("stopped{function}: {fault}"));
        if let Some(task) = task {
            self.answer(now, task.reply_to, Err(told(fault.kind).into()));
        }
        self.abandon_calls_of(slot, now);
        self.turn_away(slot, now);
        self.punish(slot, now, repute);
    }

    /// Tells those who wait for a machine that it doesn't serve them any more.
    fn turn_away(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine_mut(slot) else { return };
        let failed = match machine.restart_at {
            None => HostError::Banned.into(),
            Some(at) => Failed { error: HostError::Stopped, again_in: Some(at.since(now)) },
        };
        for task in machine.take_hopeless() {
            self.answer(now, task.reply_to, Err(failed));
        }
    }

    /// Does what a change of repute brings with it.
    fn punish(&mut self, slot: usize, now: Instant, before: Repute) {
        let Some(machine) = self.machine_mut(slot) else { return };
        let repute = machine.conduct.repute();
        if repute == before {
            return;
        }
        let name = machine.record.name.clone();
        if repute == Repute::Banned {
            let message = "banned after repeated faults, until its owner lifts that or updates it";
            self.log(now, name, LogLevel::Fault, message.to_string());
        } else {
            let message = "on probation after repeated faults";
            self.log(now, name, LogLevel::Fault, message.to_string());
        }
        self.keep_conduct(slot);
    }
}

/// What a caller is told of the fault that ended its call: whether more budget would have helped.
fn told(kind: FaultKind) -> HostError {
    match kind {
        FaultKind::TaskFuel
        | FaultKind::Memory
        | FaultKind::Trap(TrapKind::StackOverflow | TrapKind::MemoryBudget) => HostError::Overspent,
        _ => HostError::Execution,
    }
}

/// What is kept of the conduct of a machine under that placement.
pub(crate) fn conduct_bytes(conduct: &Conduct, placement: u64) -> Option<Vec<u8>> {
    postcard::to_allocvec(&(placement, conduct.repute(), conduct.score())).ok()
}

pub(crate) fn conduct_path(slot: usize) -> String {
    alloc::format!("{CONDUCT_PATH}.{slot}")
}

fn time_of(fuel: u64, fuel_per_second: u64) -> Duration {
    Duration::from_micros(proportion(fuel, 1_000_000, fuel_per_second.max(1)))
}
