//! Faults: what stops a machine, and what it costs it.

use alloc::string::String;

use tenure_hal::{Flash, Instant};
use tenure_wire::host_call::HostError;

use crate::effect::LogLevel;
use crate::kernel::Kernel;
use crate::machine::Fault;

impl<F: Flash> Kernel<F> {
    /// Stops a machine: its task fails, its memory goes, its back-off begins.
    pub(crate) fn fault(&mut self, slot: usize, now: Instant, fault: Fault) {
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.back_off(now, fault);
        let suspended = machine.suspended.take();
        let name = machine.record.name.clone();
        let task = machine.current.take().map(|running| running.task);
        if task.is_some() {
            machine.tasks_done += 1;
        }
        let function = task
            .as_ref()
            .map_or(String::new(), |task| alloc::format!(" while serving `{}`", task.function));
        self.calls.remove_all_of(slot);
        self.forget_events(slot);
        if let Some(extent) = suspended {
            self.code.release(extent);
        }
        self.log(now, name, LogLevel::Fault, alloc::format!("stopped{function}: {fault}"));
        if let Some(task) = task {
            self.answer(now, task.reply_to, Err(HostError::Execution));
        }
    }
}
