//! The parts of a kernel, and the operations that take several at once: a start, a fault, an end.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::time::Duration;

use tenure_hal::{Flash, Instant, proportion};
use tenure_wire::LogLevel;
use tenure_wire::NoResult;
use tenure_wire::console::WHILE_SERVING;
use tenure_wire::host_call::HostError;
use tenure_wire::usage::Usage;

use crate::bucket::Bucket;
use crate::calls::Calls;
use crate::clock::Clock;
use crate::conduct::Repute;
use crate::config::Config;
use crate::events::Events;
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind, Trace};
use crate::lifecycle::{Event, State};
use crate::machine::{Machine, Running, Wait, Woken};
use crate::machines::Machines;
use crate::outbox::Outbox;
use crate::processors::Processors;
use crate::record::MachineRecord;
use crate::residence::Residence;
use crate::slot::Slot;
use crate::storage::Storage;
use crate::task::{ENTRY, Task};
use crate::timer::{self, Timer};

/// The parts of a kernel below its scheduler.
pub(crate) struct Parts<F> {
    pub(crate) config: Config,
    pub(crate) machines: Machines,
    pub(crate) calls: Calls,
    pub(crate) events: Events,
    pub(crate) outbox: Outbox,
    pub(crate) storage: Storage<F>,
    pub(crate) clock: Clock,
    pub(crate) processors: Processors,
    /// Until when nobody is swapped, because the flash failed.
    pub(crate) swap_again_at: Instant,
    /// Bytes that may be swapped before those in memory have been there for their time.
    pub(crate) early_swaps: Bucket,
    /// Pages of machines' journals that the node hasn't taken.
    #[cfg(feature = "journal")]
    pub(crate) pages: crate::journal::Pages,
    /// The journal that is played, if one is.
    #[cfg(feature = "journal")]
    pub(crate) script: Option<Box<crate::journal::Script>>,
}

impl<F: Flash> Parts<F> {
    /// Calls and tasks, at `now`.
    pub(crate) fn exchange(&mut self, now: Instant) -> Exchange<'_, F> {
        Exchange {
            machines: &mut self.machines,
            calls: &mut self.calls,
            outbox: &mut self.outbox,
            storage: &self.storage,
            clock: &mut self.clock,
            config: &self.config,
            now,
        }
    }

    /// Programs in RAM and in flash, at `now`.
    pub(crate) fn residence(&mut self, now: Instant) -> Residence<'_, F> {
        Residence {
            machines: &mut self.machines,
            outbox: &mut self.outbox,
            storage: &mut self.storage,
            processors: &mut self.processors,
            swap_again_at: &mut self.swap_again_at,
            early_swaps: &mut self.early_swaps,
            config: &self.config,
            now,
        }
    }

    /// A machine in its slot that was made from `machine`: it takes up what the store knows of it, its code
    /// is checked once, and its `entry` is queued; a damaged one is stopped.
    pub(crate) fn occupy(&mut self, now: Instant, machine: Machine) {
        let slot = machine.slot;
        self.machines.put(Box::new(machine));
        self.clock.timers_changed();
        self.check_code(now, slot);
    }

    /// Takes up the timers that the store knows of a machine that isn't in its slot yet.
    pub(crate) fn recall_timers(&mut self, now: Instant, machine: &mut Machine) {
        let unix_us = self.clock.unix_us(now);
        machine.timers = self.storage.timers_anew(machine, unix_us, now);
    }

    /// Checks the code of `slot` once, and queues its `entry`; a damaged one stops the machine.
    pub(crate) fn check_code(&mut self, now: Instant, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        machine.token = self.storage.checked_code(&machine.record);
        if machine.token.is_some() {
            self.check_compiled(now, slot);
            self.enqueue_entry(slot);
        } else if !machine.is_stopped() {
            self.fault(now, slot, Fault::of(FaultKind::Image));
        }
    }

    /// Checks the compiled code of `slot`, if it has some and the board runs such code.
    pub(crate) fn check_compiled(&mut self, now: Instant, slot: Slot) {
        let Some(kind) = self.processors.compiled_kind else { return };
        let Some(machine) = self.machines.known_mut(slot) else { return };
        if machine.record.faster.is_none() {
            return;
        }
        machine.runs_compiled = self.storage.is_compiled(machine, kind);
        if !machine.runs_compiled {
            let message =
                "is interpreted: its compiled code is damaged, or made for other firmware";
            self.log(now, slot, LogLevel::Warning, message);
        }
    }

    /// Has a machine interpreted for good whose compiled code tried to leave it.
    fn distrust_compiled(&mut self, now: Instant, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        machine.runs_compiled = false;
        let record = MachineRecord { faster: None, ..machine.record.clone() };
        // If the store has no room for that, it lasts until the device restarts.
        let (conduct, placement) = (machine.conduct, record.placement);
        let kept = record
            .to_bytes()
            .is_some_and(|bytes| self.storage.keep_term(slot, &bytes, &conduct, placement).is_ok());
        if kept {
            self.storage.code.release_all(machine.record.faster.into_iter());
            machine.record = record;
        }
        self.log(
            now,
            slot,
            LogLevel::Fault,
            "is interpreted from now on: its compiled code broke out",
        );
    }

    /// Queues `entry` ahead of everything else, if the machine has one and may run.
    pub(crate) fn enqueue_entry(&mut self, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        if !machine.is_stopped() && self.storage.has_function(machine, ENTRY) {
            machine.enqueue_first(Task::of_kernel(ENTRY.to_string(), None));
        }
    }

    /// Starts a machine again that was backed off or banned.
    pub(crate) fn restart(&mut self, slot: Slot) {
        if let Some(machine) = self.machines.known_mut(slot) {
            machine.restart_at = None;
            machine.step(Event::Restarted);
        }
        self.enqueue_entry(slot);
        if let Some(machine) = self.machines.known_mut(slot) {
            machine.settle_queue();
        }
    }

    /// Lets a machine go on whose lease was over.
    pub(crate) fn renew(&mut self, now: Instant, slot: Slot, message: &str) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        if machine.state != State::Over || machine.is_removed {
            return;
        }
        machine.renew();
        self.enqueue_entry(slot);
        self.log(now, slot, LogLevel::Info, message);
    }

    /// Stops a machine: its task fails, its memory goes, its back-off begins.
    pub(crate) fn fault(&mut self, now: Instant, slot: Slot, fault: Fault) {
        #[cfg(feature = "journal")]
        self.journal_fault(slot, fault.kind);
        let fuel_per_second = self.processors.fuel_per_second;
        let is_breach = matches!(fault.kind, FaultKind::Breach(_));
        if is_breach && self.machines.known(slot).is_some_and(|machine| machine.runs_compiled) {
            self.distrust_compiled(now, slot);
        }
        let Some(machine) = self.machines.known_mut(slot) else { return };
        let fault = fault.within(&machine.record.budget, machine.memory_bytes());
        let trace = Trace::of(machine.instance.as_ref(), self.storage.image(machine).as_ref());
        let fault = trace.place(fault);
        let repute = machine.conduct.repute();
        let ran = time_of(machine.fuel_used - machine.fuel_at_start, fuel_per_second);
        machine.back_off(now, ran, fault);
        self.clock.timers_changed();
        let running = machine.current.take();
        let serving = running.as_ref().map_or(String::new(), |running| {
            machine.tasks_done += 1;
            alloc::format!(" {WHILE_SERVING} `{}`", running.task.function)
        });
        self.events.forget(machine);
        self.storage.discard_state(machine);
        let message = alloc::format!("stopped{serving}: {fault}{trace}");
        self.outbox.log(now, &machine.record.name, LogLevel::Fault, message);
        if let Some(Running { task, words, .. }) = running.map(|running| *running) {
            let said = String::from_utf8_lossy(&words);
            let words = match fault.kind {
                FaultKind::Aborted if !said.is_empty() => alloc::format!("{said}: {fault}{trace}"),
                _ => alloc::format!("{fault}{trace}"),
            };
            let words = words.into_bytes();
            self.exchange(now).answer_with(&task, Err(fault.kind.told()), words);
        }
        self.exchange(now).abandon_calls_of(slot);
        self.turn_away(now, slot);
        self.punish(now, slot, repute);
    }

    /// Ends what `slot` has under way, by `event`: its subscriptions, its calls, its queue; its callers get
    /// `failed`.
    pub(crate) fn end(&mut self, now: Instant, slot: Slot, event: Event, failed: NoResult) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        #[cfg(feature = "journal")]
        machine.note_stop(tenure_journal::Why::Ended);
        let (current, queue) = machine.end(event);
        self.events.forget(machine);
        self.storage.discard_state(machine);
        self.calls.remove_all_of(slot);
        let tasks = current.into_iter().chain(queue);
        self.exchange(now).refuse(tasks, failed);
    }

    /// Empties a slot: its callers get a failure, its code its room back. Returns the use that isn't on a bill yet,
    /// which goes to the machine that follows it.
    #[must_use]
    pub(crate) fn vacate(&mut self, now: Instant, slot: Slot) -> Usage {
        #[cfg(feature = "journal")]
        self.end_journal(slot);
        let Some(mut machine) = self.machines.take(slot).map(|machine| *machine) else {
            debug_assert!(false, "slot {slot} is empty");
            return Usage::default();
        };
        self.storage.bill(&mut machine, now);
        self.events.forget(&mut machine);
        self.storage.code.release_all(machine.record.extents());
        self.storage.discard_state(&mut machine);
        self.calls.remove_all_of(slot);
        let current = machine.current.map(|running| running.task);
        let tasks = current.into_iter().chain(machine.queue);
        self.exchange(now).refuse(tasks, NoResult::Execution);
        machine.usage
    }

    /// Lets good behaviour count, at the end of a task.
    pub(crate) fn settle_conduct(&mut self, now: Instant, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        let before = machine.conduct.repute();
        machine.conduct.settle(now);
        if machine.conduct.repute() != before {
            self.storage.keep_conduct(machine);
        }
    }

    /// Adds a line of the kernel's own to the log of the machine in `slot`.
    pub(crate) fn log(&mut self, now: Instant, slot: Slot, level: LogLevel, message: &str) {
        if let Some(machine) = self.machines.known(slot) {
            self.outbox.log(now, &machine.record.name, level, message.to_string());
        }
    }

    /// Does what is due by now: calls that failed or are tried again, tasks that nobody waits for any more,
    /// machines that slept, timers.
    pub(crate) fn attend_to_timers(&mut self, now: Instant) {
        if self.clock.is_quiet(now) {
            return;
        }
        for id in self.calls.expired(now) {
            self.exchange(now).complete(id, Err(NoResult::Deadline));
        }
        for id in self.calls.take_due_retries(now) {
            self.exchange(now).dispatch(id);
        }
        let unix_us = self.clock.unix_us(now);
        for slot in self.machines.slots() {
            let overdue = |parts: &mut Self| parts.machines.get_mut(slot)?.take_overdue(now);
            while let Some(waiting) = overdue(self) {
                self.exchange(now).answer(waiting, Err(NoResult::Deadline));
            }
            let wakes_at = self.machines.get(slot).and_then(Machine::wakes_at);
            if wakes_at.is_some_and(|at| at <= now) {
                self.attend_to(slot);
            }
            if let Some(machine) = self.machines.get_mut(slot) {
                fire_timers(&mut self.storage, machine, now, unix_us);
            }
        }
        self.clock.set_quiet_until(self.next_timer());
    }

    /// When the first of all timers is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let timers = self.machines.iter().flat_map(|machine| {
            [machine.wakes_at(), machine.first_deadline(), timer::wakes_at(&machine.timers)]
        });
        timers.chain([self.calls.next_event()]).flatten().min()
    }

    /// Hears the time of day; timers that fire by it begin to count, or change when it was set.
    pub(crate) fn hear_time_of_day(&mut self, now: Instant, unix_s: Option<u64>) {
        // The time goes on as it was known.
        let Some(unix_us) = self.clock.hear(now, unix_s) else { return };
        for timer in self.machines.iter_mut().flat_map(|machine| &mut machine.timers) {
            if timer.first.takes_time_of_day() {
                timer.begin(now, Some(unix_us));
            }
        }
    }

    /// Wakes a machine that slept long enough, or starts it again.
    fn attend_to(&mut self, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        if machine.state == State::BackedOff {
            return self.restart(slot);
        }
        machine.ready_since = machine.wakes_at();
        machine.wake(match machine.wait {
            Some(Wait::Event(_)) => Woken::with_status(HostError::Deadline.code()),
            _ => Woken::default(),
        });
    }

    /// Tells those who wait for a machine that it doesn't serve them any more.
    fn turn_away(&mut self, now: Instant, slot: Slot) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        let failed = match machine.restart_at {
            None => NoResult::Banned,
            Some(at) => NoResult::Stopped { again_in: at.since(now) },
        };
        let tasks = machine.take_hopeless();
        self.exchange(now).refuse(tasks.into_iter(), failed);
    }

    /// Does what a change of repute brings with it.
    fn punish(&mut self, now: Instant, slot: Slot, before: Repute) {
        let Some(machine) = self.machines.known(slot) else { return };
        let repute = machine.conduct.repute();
        if repute == before {
            return;
        }
        let message = match repute {
            Repute::Banned => {
                "banned after repeated faults, until its owner lifts that or updates it"
            }
            _ => "on probation after repeated faults",
        };
        self.outbox.log(now, &machine.record.name, LogLevel::Fault, message.to_string());
        self.storage.keep_conduct(machine);
    }
}

/// Queues a call for each timer of `machine` that is due.
fn fire_timers<F: Flash>(
    storage: &mut Storage<F>,
    machine: &mut Machine,
    now: Instant,
    unix_us: Option<u64>,
) {
    let is_due = |timer: &Timer| timer.due.is_some_and(|due| due <= now);
    while let Some(position) = machine.timers.iter().position(is_due) {
        let task = machine.timers[position].task();
        // A package may name a function that its code doesn't have; code is checked after timers are set.
        if !storage.has_function(machine, &task.function) {
            machine.timers.remove(position);
            continue;
        }
        if !machine.timers[position].advance(now, unix_us) {
            let mut timers = core::mem::take(&mut machine.timers);
            timers.remove(position);
            #[cfg(feature = "journal")]
            let flash_bytes = machine.usage.flash_bytes;
            // If the store has no room to forget it, it fires again after a restart of the device.
            let _ = storage.keep_timers(machine, now, &timers);
            #[cfg(feature = "journal")]
            machine.note_charge(machine.usage.flash_bytes - flash_bytes);
            machine.timers = timers;
        }
        let waits = machine.queue.iter().any(|waiting| waiting.is_same_call(&task));
        if !waits && !machine.is_stopped() {
            machine.enqueue(task);
        }
    }
}

fn time_of(fuel: u64, fuel_per_second: u64) -> Duration {
    Duration::from_micros(proportion(fuel, 1_000_000, fuel_per_second.max(1)))
}
