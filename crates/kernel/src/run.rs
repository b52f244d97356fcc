//! Running: timers, the choice of the next machine, one slice, and what follows from it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_vm::{Instance, InstanceConfig, Outcome, TrapKind};
use tenure_wire::Target;
use tenure_wire::host_call::{HostCall, HostError};

use crate::calls::{CallId, Completion, Request};
use crate::cost;
use crate::effect::{Effect, LogLevel, OutgoingCall};
use crate::host::Verdict;
use crate::kernel::{Access, DeliverError, Kernel, Ran, World, callable};
use crate::lifecycle::{Event, State};
use crate::machine::{Fault, FaultKind, Machine, Running, Wait, Woken};
use crate::task::{ReplyTo, Task};

/// How long a public key is.
const KEY_BYTES: usize = 32;

/// How a slice ended.
enum End {
    /// The slice's fuel is spent.
    Slice,
    /// The machine gave the rest of its slice away.
    Yielded,
    /// The machine waits.
    Blocked(Wait),
    /// The task is done.
    Done,
    /// The machine is stopped.
    Faulted(Fault),
}

impl<F: Flash> Kernel<F> {
    /// Does what is due, then runs one slice of the machine whose turn it is.
    pub fn run(&mut self, world: &mut World<'_>) -> Ran {
        self.attend_to_timers(world.now);
        let Some(slot) = self.next_ready() else {
            return Ran::Idle { until: self.next_event() };
        };
        self.turn = slot;
        self.run_slice(slot, world);
        Ran::Slice
    }

    /// Takes the answer to a call or a resolution that left the device. An answer that nobody
    /// waits for any more is dropped.
    pub fn complete(
        &mut self,
        now: Instant,
        id: CallId,
        result: Result<Option<Vec<u8>>, HostError>,
    ) {
        if let Err(error) = &result
            && self.calls.retry_later(id, now, *error)
        {
            return;
        }
        let Some(call) = self.calls.remove(id) else { return };
        match call.completion {
            Completion::Blocking => {
                let result = match call.request {
                    Request::Peers { own: true, .. } => Ok(Some(self.own_keys_and(result))),
                    _ => result,
                };
                self.wake_with(call.caller, id, result);
            }
            Completion::Callbacks { on_success, on_failure } => {
                let (function, parameter) = match result {
                    Ok(value) => (on_success, value),
                    Err(error) => (on_failure, Some(error.to_string().into_bytes())),
                };
                self.call_back(now, call.caller, function, parameter);
            }
        }
    }

    /// Whether a machine still waits for the answer to call `id`.
    pub fn awaits(&self, id: CallId) -> bool {
        self.calls.get(id).is_some()
    }

    /// Sends a call on its way: to a machine of this device, or out.
    pub(crate) fn dispatch(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let caller = call.caller;
        match call.request.clone() {
            Request::Resolve { target } => match self.local_slot(caller, &target) {
                Some(Some(slot)) => {
                    let key = self.machine(slot).map(|machine| machine.public_key().0.to_vec());
                    self.complete(now, id, Ok(key));
                }
                Some(None) => self.complete(now, id, Err(HostError::NotFound)),
                None => self.effects.push_back(Effect::Resolve { id, target }),
            },
            Request::Peers { others: true, .. } => self.effects.push_back(Effect::Peers { id }),
            Request::Peers { others: false, .. } => self.complete(now, id, Ok(Some(Vec::new()))),
            Request::Call { target, function, parameter } => {
                match self.local_slot(caller, &target) {
                    Some(slot) => self.call_local(now, id, caller, slot, function, parameter),
                    None => self.call_out(id, target, function, parameter),
                }
            }
        }
    }

    /// Gives the result of a task to whoever waits for it.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        reply_to: ReplyTo,
        result: Result<Option<Vec<u8>>, HostError>,
    ) {
        match reply_to {
            ReplyTo::Nobody => {}
            ReplyTo::Call(id) => self.complete(now, id, result),
            ReplyTo::Outside(ticket) => self.effects.push_back(Effect::Reply { ticket, result }),
        }
    }

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
        if let Some(extent) = suspended {
            self.code.release(extent);
        }
        self.log(now, name, LogLevel::Fault, alloc::format!("stopped{function}: {fault}"));
        if let Some(task) = task {
            self.answer(now, task.reply_to, Err(HostError::Execution));
        }
    }

    /// The slot that `target` means if it can only be on this device; `Some(None)` if it would be
    /// here and isn't, `None` if it is elsewhere.
    #[allow(clippy::option_option)]
    pub(crate) fn local_slot(&self, caller: usize, target: &Target) -> Option<Option<usize>> {
        match target {
            Target::Own => Some(Some(caller)),
            Target::Local(name) => Some(self.slot_of_name(name)),
            Target::Remote { machine, device } => {
                (self.config.device.as_ref() == Some(device)).then(|| self.slot_of_name(machine))
            }
            Target::Id(id) => self.slot_of_id(*id).map(Some),
            Target::Key(key) => self.slot_of_key(key).map(Some),
        }
    }

    fn call_local(
        &mut self,
        now: Instant,
        id: CallId,
        caller: usize,
        slot: Option<usize>,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        let caller_key = self.machine(caller).map(Machine::public_key);
        let deadline = self.calls.get(id).map(|call| call.deadline);
        let reply_to = ReplyTo::Call(id);
        let task = Task { caller: caller_key, function, parameter, reply_to, deadline };
        let access = if slot == Some(caller) { Access::Own } else { Access::Others };
        let submitted = match slot {
            Some(slot) => self.submit(slot, task, access),
            None => Err(DeliverError::NoSuchMachine),
        };
        if let Err(error) = submitted {
            self.complete(now, id, Err(error.into()));
        }
    }

    fn call_out(
        &mut self,
        id: CallId,
        target: Target,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(machine) = self.machine(call.caller) else { return };
        let outgoing = OutgoingCall {
            id,
            from: machine.id,
            target,
            function,
            parameter,
            deadline: call.deadline,
            attempts: call.retries_left.saturating_add(1),
        };
        self.effects.push_back(Effect::Call(outgoing));
    }

    /// The keys of this device's machines, then those that were found elsewhere, if any.
    fn own_keys_and(&self, others: Result<Option<Vec<u8>>, HostError>) -> Vec<u8> {
        let own = self.machines.iter().flatten().flat_map(|machine| machine.public_key().0);
        own.chain(others.ok().flatten().unwrap_or_default()).collect()
    }

    /// Lets a machine that waits for call `id` go on.
    fn wake_with(&mut self, slot: usize, id: CallId, result: Result<Option<Vec<u8>>, HostError>) {
        let Some(machine) = self.machine_mut(slot) else { return };
        let into = match machine.wait {
            Some(Wait::Call(waited)) if waited == id => None,
            Some(Wait::Keys(waited, into)) if waited == id => Some(into),
            _ => return,
        };
        let woken = match (result, into) {
            (Err(error), _) => Woken::with_status(error.code()),
            (Ok(None), None) => Woken::with_status(HostError::Null.code()),
            (Ok(None), Some(_)) => Woken::with_status(HostError::NotFound.code()),
            (Ok(Some(value)), None) => {
                machine.call_result = value;
                Woken::with_status(machine.call_result.len() as i32)
            }
            (Ok(Some(mut keys)), Some(into)) => {
                let status = keys.len() as i32;
                keys.truncate(into.capacity() / KEY_BYTES * KEY_BYTES);
                Woken { status: Some(status), copy: Some((into, keys)) }
            }
        };
        machine.wake(woken);
    }

    fn call_back(
        &mut self,
        now: Instant,
        slot: usize,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        if function.is_empty() {
            return;
        }
        if !self.has_function(slot, &function) {
            let Some(machine) = self.machine(slot) else { return };
            let name = machine.record.name.clone();
            let message = alloc::format!("callback `{function}`: no such function");
            self.log(now, name, LogLevel::Error, message);
            return;
        }
        if let Some(machine) = self.machine_mut(slot) {
            machine.enqueue(Task::of_kernel(function, parameter));
        }
    }

    fn attend_to_timers(&mut self, now: Instant) {
        for id in self.calls.expired(now) {
            self.complete(now, id, Err(HostError::Deadline));
        }
        for id in self.calls.take_due_retries(now) {
            self.dispatch(now, id);
        }
        for slot in 0..self.machines.len() {
            while let Some(waiting) = self.machine_mut(slot).and_then(|one| one.take_overdue(now)) {
                self.answer(now, waiting, Err(HostError::Deadline));
            }
            let due = self.machine(slot).and_then(|machine| machine.wakes_at());
            if due.is_some_and(|at| at <= now) {
                self.attend_to_machine(slot);
            }
        }
    }

    fn attend_to_machine(&mut self, slot: usize) {
        let Some(machine) = self.machine_mut(slot) else { return };
        if machine.state != State::BackedOff {
            machine.wake(Woken::default());
            return;
        }
        machine.restart_at = None;
        machine.step(Event::Restarted);
        self.enqueue_entry(slot);
        if let Some(machine) = self.machine_mut(slot)
            && machine.queue.is_empty()
        {
            machine.step(Event::Drained);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let machines = self.machines.iter().flatten().filter_map(|machine| machine.wakes_at());
        let deadlines = self.machines.iter().flatten().filter_map(Machine::first_deadline);
        machines.chain(deadlines).chain(self.calls.next_event()).min()
    }

    /// Round robin: the next ready slot after the one that had the last turn.
    fn next_ready(&self) -> Option<usize> {
        let count = self.machines.len();
        (1..=count)
            .map(|step| (self.turn + step) % count)
            .find(|slot| self.machine(*slot).is_some_and(|machine| machine.state == State::Ready))
    }

    fn run_slice(&mut self, slot: usize, world: &mut World<'_>) {
        let begins = self.take_task(slot);
        let prepared = self.take_instance(slot).and_then(|mut instance| {
            if begins {
                self.prepare_task(slot, &mut instance)?;
            }
            Ok(instance)
        });
        let mut instance = match prepared {
            Ok(instance) => instance,
            Err(fault) => return self.fault(slot, world.now, fault),
        };
        let granted = self.config.slice_fuel;
        let mut fuel = granted - self.pay_debt(slot, granted);
        let mut end = self.run_until(slot, &mut instance, &mut fuel, world);
        let used = granted - fuel;
        if let Some(machine) = self.machine_mut(slot) {
            machine.instance = Some(instance);
            machine.fuel_used += used;
            if let Some(running) = &mut machine.current {
                running.fuel_used += used;
                let limit = machine.record.budget.task_fuel;
                if limit > 0 && running.fuel_used > limit && !matches!(end, End::Done) {
                    end = End::Faulted(Fault::of(FaultKind::TaskFuel));
                }
            }
        }
        self.conclude(slot, world.now, end);
    }

    /// Pays as much of the machine's debt as `granted` covers; gives how much.
    fn pay_debt(&mut self, slot: usize, granted: u64) -> u64 {
        let Some(machine) = self.machine_mut(slot) else { return 0 };
        let paid = machine.fuel_debt.min(granted);
        machine.fuel_debt -= paid;
        paid
    }

    /// Takes `cost` from `fuel`; what it doesn't cover becomes the machine's debt.
    fn charge(&mut self, slot: usize, fuel: &mut u64, cost: u64) {
        let paid = cost.min(*fuel);
        *fuel -= paid;
        if let Some(machine) = self.machine_mut(slot) {
            machine.fuel_debt += cost - paid;
        }
    }

    /// The machine's instance, brought back from flash or made anew from its image if it isn't in
    /// RAM; with what its last host call waited for.
    fn take_instance(&mut self, slot: usize) -> Result<Instance, Fault> {
        let kept = self.machine_mut(slot).and_then(|machine| machine.instance.take());
        let mut instance = match kept {
            Some(instance) => instance,
            None => match self.resume(slot)? {
                Some(instance) => instance,
                None => self.new_instance(slot)?,
            },
        };
        let woken = self.machine_mut(slot).and_then(|machine| machine.woken.take());
        if let Some(woken) = woken {
            woken.hand_to(&mut instance).ok_or(Fault::of(FaultKind::Suspended))?;
        }
        Ok(instance)
    }

    fn new_instance(&self, slot: usize) -> Result<Instance, Fault> {
        let config = self.instance_config(slot).ok_or(Fault::of(FaultKind::Image))?;
        let image = self.image(slot).ok_or(Fault::of(FaultKind::Image))?;
        Instance::new_lazy(&image, &config).map_err(|_| Fault::of(FaultKind::Memory))
    }

    /// What the machine's budget and the device's memory leave to an instance.
    pub(crate) fn instance_config(&self, slot: usize) -> Option<InstanceConfig> {
        let budget = self.machine(slot)?.record.budget;
        let stack_bytes = budget.stack_bytes as usize;
        let room = self.config.memory_bytes_max.saturating_sub(self.memory_in_use());
        Some(InstanceConfig {
            stack_bytes: stack_bytes.min(room),
            memory_bytes_max: (room - stack_bytes.min(room)).min(budget.memory_bytes as usize),
        })
    }

    fn memory_in_use(&self) -> usize {
        let with_memory = self.machines.iter().flatten().filter(|one| one.instance.is_some());
        usize::try_from(with_memory.map(Machine::memory_promised).sum::<u64>())
            .unwrap_or(usize::MAX)
    }

    /// Takes the next task if none is under way; gives whether it did.
    fn take_task(&mut self, slot: usize) -> bool {
        let Some(machine) = self.machine_mut(slot) else { return false };
        if machine.current.is_some() {
            return false;
        }
        let next = machine.queue.pop_front();
        machine.current = next.map(|task| Running { task, reply: Ok(None), fuel_used: 0 });
        machine.current.is_some()
    }

    /// Gets the machine ready to run the task that it has just taken.
    fn prepare_task(&self, slot: usize, instance: &mut Instance) -> Result<(), Fault> {
        let image = self.image(slot).ok_or(Fault::of(FaultKind::Image))?;
        let running = self.machine(slot).and_then(|machine| machine.current.as_ref());
        let function = running.map_or("", |running| running.task.function.as_str());
        let index = callable(&image, function).ok_or(Fault::of(FaultKind::Function))?;
        instance.prepare(&image, index, &[]).map_err(|_| Fault::of(FaultKind::Function))
    }

    fn run_until(
        &mut self,
        slot: usize,
        instance: &mut Instance,
        fuel: &mut u64,
        world: &mut World<'_>,
    ) -> End {
        loop {
            let Some(image) = self.image(slot) else {
                return End::Faulted(Fault::of(FaultKind::Image));
            };
            match instance.run(&image, fuel) {
                Outcome::Done => return End::Done,
                Outcome::OutOfFuel => return End::Slice,
                Outcome::Trap(trap) => {
                    return End::Faulted(Fault {
                        kind: FaultKind::Trap(trap.kind),
                        function: Some(trap.function),
                        offset: Some(trap.offset),
                    });
                }
                Outcome::HostCall { function } => {
                    let call = HostCall::decode(function, instance.host_arguments());
                    let Some(call) = call else {
                        return End::Faulted(Fault::of(FaultKind::Trap(TrapKind::Unreachable)));
                    };
                    self.charge(slot, fuel, cost::of(&call));
                    match self.serve(slot, instance, world, call) {
                        Verdict::Continue(results) => {
                            if instance.finish_host_call(results.as_slice()).is_err() {
                                return End::Faulted(Fault::of(FaultKind::Image));
                            }
                        }
                        Verdict::Yield => {
                            let _ = instance.finish_host_call(&[]);
                            return End::Yielded;
                        }
                        Verdict::Wait(wait) => return End::Blocked(wait),
                        Verdict::Fault(kind) => return End::Faulted(Fault::of(kind)),
                    }
                }
            }
        }
    }

    fn conclude(&mut self, slot: usize, now: Instant, end: End) {
        match end {
            End::Slice | End::Yielded => {}
            End::Blocked(wait) => {
                if let Some(machine) = self.machine_mut(slot) {
                    machine.wait = Some(wait);
                    machine.step(Event::Blocked);
                }
                if let Wait::Call(id) | Wait::Keys(id, _) = wait {
                    self.dispatch(now, id);
                }
            }
            End::Done => self.finish_task(slot, now),
            End::Faulted(fault) => self.fault(slot, now, fault),
        }
    }

    fn finish_task(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine_mut(slot) else { return };
        machine.faults = 0;
        machine.tasks_done += 1;
        let finished = machine.current.take();
        if machine.queue.is_empty() {
            machine.step(Event::Drained);
        }
        if let Some(Running { task, reply, .. }) = finished {
            self.answer(now, task.reply_to, reply);
        }
    }
}

impl From<DeliverError> for HostError {
    fn from(error: DeliverError) -> Self {
        match error {
            DeliverError::NoSuchMachine | DeliverError::NoSuchFunction => Self::NotFound,
            DeliverError::Busy => Self::Full,
            DeliverError::TooLong => Self::TooLong,
        }
    }
}
