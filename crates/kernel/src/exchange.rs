//! The exchange: who may call whom, tasks on their way into queues, and results on their way back.
//!
//! It is lent what it needs for the length of one use, by [`Parts::exchange`](crate::parts::Parts).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_wire::capability::Peer;
#[cfg(feature = "reach")]
use tenure_wire::capability::Visit;
use tenure_wire::host_call::HostError;
use tenure_wire::limits::{FUNCTION_BYTES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::{Audience, LogLevel, NoResult};
use tenure_wire::{Name, Target};
use zeroize::Zeroizing;

#[cfg(feature = "reach")]
use crate::ask::Ask;
use crate::calls::{CallId, Calls, Completion, PendingCall, Request};
use crate::clock::Clock;
use crate::config::Config;
use crate::effect::{Effect, OutgoingCall};
use crate::lifecycle::State;
use crate::machine::{Machine, Wait, Woken};
use crate::machines::Machines;
use crate::outbox::Outbox;
use crate::record::MachineRecord;
use crate::slot::Slot;
use crate::storage::Storage;
use crate::task::{ENTRY, IncomingCall, ReplyTo, Standing, Task, Ticket};
#[cfg(feature = "reach")]
use crate::visit::OutgoingVisit;

/// How long a public key is.
const KEY_BYTES: usize = 32;

/// Calls and tasks, with what they pass through.
pub(crate) struct Exchange<'a, F> {
    pub(crate) machines: &'a mut Machines,
    pub(crate) calls: &'a mut Calls,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) storage: &'a Storage<F>,
    pub(crate) clock: &'a mut Clock,
    pub(crate) config: &'a Config,
    pub(crate) now: Instant,
}

/// The asker for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Another machine: only what the package exports, and never the start.
    Others,
    /// The machine itself: any function its code offers.
    Own,
}

impl<F: Flash> Exchange<'_, F> {
    /// Queues a call from outside.
    pub(crate) fn deliver(&mut self, call: IncomingCall, ticket: Ticket) -> Result<(), NoResult> {
        let machine = self.machines.with_id(call.to).ok_or(NoResult::NoSuchMachine)?;
        let (slot, errors) = (machine.slot, machine.record.errors);
        let is_told = call.standing == Standing::Owner || errors == Audience::Callers;
        self.admit(slot, &call)?;
        let task = Task {
            caller: call.caller,
            function: call.function,
            parameter: call.parameter,
            reply_to: ReplyTo::Outside(ticket),
            deadline: Some(call.deadline.min(self.now + self.config.deadline_max)),
            is_event: false,
            callback_of: None,
            is_told,
        };
        self.submit(slot, task, Access::Others)
    }

    /// Sends a call on its way: to a machine of this device, or out.
    pub(crate) fn dispatch(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else {
            debug_assert!(false, "{id:?} isn't under way");
            return;
        };
        let caller = call.caller;
        match call.request.clone() {
            Request::Resolve { target } => match self.local(caller, &target) {
                Some(Some(slot)) => {
                    let machine = self.machines.known(slot);
                    let key = machine.map(|machine| machine.public_key().0.to_vec());
                    self.complete(id, Ok(key));
                }
                Some(None) => self.complete(id, Err(NoResult::NotFound)),
                None => self.outbox.push(Effect::Resolve { id, target }),
            },
            Request::Secret { name } => {
                if let Some(machine) = self.machines.known(caller) {
                    let tenant = machine.record.tenant;
                    self.outbox.push(Effect::Secret { id, tenant, name });
                }
            }
            Request::Peers { others: true, .. } => self.outbox.push(Effect::Peers { id }),
            Request::Peers { others: false, .. } => self.complete(id, Ok(Some(Vec::new()))),
            #[cfg(feature = "reach")]
            Request::Visit(ask) => self.visit(id, ask),
            Request::Call { target, function, parameter } => match self.local(caller, &target) {
                Some(slot) => self.call_local(id, caller, slot, function, parameter),
                None => self.call_out(id, target, function, parameter),
            },
        }
    }

    /// Takes the answer to a call. An answer that nobody waits for any more is dropped: its machine was
    /// stopped, or its deadline came first.
    pub(crate) fn complete(&mut self, id: CallId, result: Result<Option<Vec<u8>>, NoResult>) {
        self.complete_with(id, result, Vec::new());
    }

    /// As [`Exchange::complete`], with what the called machine says of a failure.
    pub(crate) fn complete_with(
        &mut self,
        id: CallId,
        result: Result<Option<Vec<u8>>, NoResult>,
        words: Vec<u8>,
    ) {
        if let Err(failed) = &result
            && self.calls.retry_later(id, self.now, *failed)
        {
            self.clock.timers_changed();
            return;
        }
        // It was given up before: its deadline passed, or its caller is gone.
        let Some(call) = self.calls.remove(id) else { return };
        match call.completion {
            Completion::Blocking => {
                let result = match call.request {
                    Request::Peers { own: true, .. } => Ok(Some(self.own_keys_and(result))),
                    _ => result,
                };
                self.wake_with(call.caller, id, (result, words));
            }
            Completion::Callbacks { on_success, on_failure } => {
                let bytes = result.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len);
                let result = match result {
                    // It ran, and what it returned is lost.
                    Ok(_) if !self.has_room_for(call.caller, bytes) => {
                        Err(NoResult::OutcomeUnknown)
                    }
                    result => result,
                };
                let (function, parameter) = match result {
                    Ok(value) => (on_success, value),
                    Err(reason) => (on_failure, Some(words_for_machine(reason, &words))),
                };
                self.call_back(call.caller, id, function, parameter);
            }
        }
    }

    /// Ends what a machine that was stopped has under way: of queued calls nobody can tell any more what
    /// became of them, and their callbacks say so once the machine has started again.
    pub(crate) fn abandon_calls_of(&mut self, slot: Slot) {
        for (id, call) in self.calls.take_all_of(slot) {
            if let Completion::Callbacks { on_failure, .. } = call.completion {
                let reason = words_for_machine(NoResult::OutcomeUnknown, &[]);
                self.call_back(slot, id, on_failure, Some(reason));
            }
        }
    }

    /// Passes the result of a task to whoever waits for it.
    pub(crate) fn answer(&mut self, reply_to: ReplyTo, result: Result<Option<Vec<u8>>, NoResult>) {
        self.pass_on(reply_to, result, Vec::new());
    }

    /// Passes the result of `task` to whoever waits for it, and on a failure the machine's own `words`, if
    /// that one may know them.
    pub(crate) fn answer_with(
        &mut self,
        task: &Task,
        result: Result<Option<Vec<u8>>, NoResult>,
        words: Vec<u8>,
    ) {
        self.pass_on(task.reply_to, result, if task.is_told { words } else { Vec::new() });
    }

    fn pass_on(
        &mut self,
        reply_to: ReplyTo,
        result: Result<Option<Vec<u8>>, NoResult>,
        words: Vec<u8>,
    ) {
        match reply_to {
            ReplyTo::Nobody => {}
            ReplyTo::Call(id) => self.complete_with(id, result, words),
            ReplyTo::Outside(ticket) => self.outbox.push(Effect::Reply { ticket, result, words }),
        }
    }

    /// Answers those who wait for `tasks`, which won't be run.
    pub(crate) fn refuse(&mut self, tasks: impl Iterator<Item = Task>, reason: NoResult) {
        for task in tasks {
            self.answer(task.reply_to, Err(reason));
        }
    }

    /// Lets a call from outside in, or notes why not: in the log of the machine that is called, and
    /// of a stranger in the log of the device.
    fn admit(&mut self, slot: Slot, call: &IncomingCall) -> Result<(), NoResult> {
        let key = call.caller.as_ref();
        let caller = match &call.standing {
            Standing::Owner => return Ok(()),
            Standing::Stranger => Peer { key, ..Peer::default() },
            Standing::Named { machine, device } => {
                Peer { machine: Some(machine), device: Some(device), is_here: false, key }
            }
        };
        let machine = self.machines.known_mut(slot).ok_or(NoResult::NoSuchMachine)?;
        let Err(denied) = machine.grants.admit(&caller) else { return Ok(()) };
        // A stranger has no part of the machine's log.
        let (log, denied) = match (&call.standing, &self.config.device) {
            (Standing::Stranger, Some(device)) => {
                (Some(device), alloc::format!("{}: {denied}", machine.record.name))
            }
            _ => (None, denied.to_string()),
        };
        self.outbox.log_denial(machine, self.now, log, denied);
        Err(NoResult::Denied)
    }

    /// Lets a call of another machine of this device in; of the machine itself, always.
    fn admit_local(&mut self, slot: Slot, caller: Slot) -> Result<(), NoResult> {
        if slot == caller {
            return Ok(());
        }
        let caller = self.machines.known(caller).ok_or(NoResult::Denied)?;
        let (name, key) = (caller.record.name.clone(), caller.public_key());
        let device = self.config.device.as_ref();
        let peer = Peer { machine: Some(&name), device, is_here: true, key: Some(&key) };
        let callee = self.machines.known_mut(slot).ok_or(NoResult::NoSuchMachine)?;
        let admitted = self.outbox.ask(callee, self.now, |grants| grants.admit(&peer));
        admitted.map_err(|_| NoResult::Denied)
    }

    /// Queues a task if its function may be called and the queue has room.
    fn submit(&mut self, slot: Slot, task: Task, access: Access) -> Result<(), NoResult> {
        if task.function.len() > FUNCTION_BYTES_MAX
            || task.parameter.as_ref().is_some_and(|bytes| bytes.len() > PARAMETER_BYTES_MAX)
        {
            return Err(NoResult::TooLong);
        }
        let machine = self.machines.known(slot).ok_or(NoResult::NoSuchMachine)?;
        match machine.state {
            State::Banned => return Err(NoResult::Banned),
            State::Over => return Err(NoResult::LeaseOver),
            State::Halted => return Err(NoResult::Halted),
            _ => {}
        }
        if let Some(restart_at) = machine.restarts_too_late_for(&task) {
            return Err(NoResult::Stopped { again_in: restart_at.since(self.now) });
        }
        let offered = task.function != ENTRY && machine.record.exports.contains(&task.function);
        if access == Access::Others && !offered {
            return Err(NoResult::NoSuchFunction);
        }
        let taken = machine.tasks_waiting() + self.calls.count_of(slot);
        if taken >= usize::from(machine.record.budget.queue_length)
            || !self.has_room_for(slot, task.parameter.as_ref().map_or(0, Vec::len))
        {
            return Err(NoResult::Busy);
        }
        if access == Access::Own && !self.storage.has_function(machine, &task.function) {
            return Err(NoResult::NoSuchFunction);
        }
        self.clock.timers_changed();
        let machine = self.machines.known_mut(slot).ok_or(NoResult::NoSuchMachine)?;
        machine.enqueue(task);
        Ok(())
    }

    /// Whether the machine in `slot` may hold `bytes` more bytes of parameters.
    fn has_room_for(&self, slot: Slot, bytes: usize) -> bool {
        let tasks = self.machines.known(slot).map_or(0, Machine::parameter_bytes);
        let held = tasks + self.calls.parameter_bytes_of(slot);
        let taken = self.machines.parameter_bytes() + self.calls.parameter_bytes();
        self.config.has_room_for(bytes, held, taken)
    }

    /// The slot that `target` means if it can only be on this device; `Some(None)` if it would be
    /// here and isn't, `None` if it is elsewhere.
    #[allow(clippy::option_option)]
    fn local(&self, caller: Slot, target: &Target) -> Option<Option<Slot>> {
        match target {
            Target::Own => Some(Some(caller)),
            _ => match local_machine(self.machines, self.config.device.as_ref(), target) {
                Sought::Here(machine) => Some(Some(machine.slot)),
                Sought::Nobody => Some(None),
                Sought::Elsewhere => None,
            },
        }
    }

    fn call_local(
        &mut self,
        id: CallId,
        caller: Slot,
        slot: Option<Slot>,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        let callee = slot.and_then(|slot| self.machines.known(slot));
        let task = Task {
            caller: self.machines.known(caller).map(Machine::public_key),
            function,
            parameter,
            reply_to: ReplyTo::Call(id),
            deadline: self.calls.get(id).map(|call| call.deadline),
            is_event: false,
            callback_of: None,
            is_told: callee.is_some_and(|callee| callee.record.errors == Audience::Callers),
        };
        let access = if slot == Some(caller) { Access::Own } else { Access::Others };
        let submitted = match slot {
            Some(slot) => {
                self.admit_local(slot, caller).and_then(|()| self.submit(slot, task, access))
            }
            None => Err(NoResult::NoSuchMachine),
        };
        if let Err(error) = submitted {
            self.complete(id, Err(error));
        }
    }

    fn call_out(
        &mut self,
        id: CallId,
        target: Target,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        let Some((call, machine)) = self.leaving(id) else { return };
        self.outbox.push(Effect::Call(OutgoingCall {
            id,
            from: machine.id,
            target,
            function,
            parameter,
            deadline: call.deadline,
            attempts: call.retries_left.saturating_add(1),
        }));
    }

    /// A call that leaves the device, and the machine that made it.
    fn leaving(&self, id: CallId) -> Option<(&PendingCall, &Machine)> {
        let leaving = self.calls.get(id).and_then(|call| {
            let machine = self.machines.known(call.caller)?;
            Some((call, machine))
        });
        debug_assert!(leaving.is_some(), "{id:?} leaves the device without a caller");
        leaving
    }

    #[cfg(feature = "reach")]
    fn visit(&mut self, id: CallId, ask: Ask) {
        let Some((call, machine)) = self.leaving(id) else { return };
        self.outbox.push(Effect::Visit(OutgoingVisit {
            id,
            from: machine.id,
            ask,
            granted: machine.grants.reached().cloned().collect(),
            deadline: call.deadline,
            attempts: call.retries_left.saturating_add(1),
        }));
    }

    /// Bills a machine for what it sent to servers and received from them, if it is still there.
    #[cfg(feature = "reach")]
    pub(crate) fn bill_visit(&mut self, id: CallId, (sent, received): (u64, u64)) {
        let Some(caller) = self.calls.get(id).map(|call| call.caller) else { return };
        let Some(machine) = self.machines.known_mut(caller) else { return };
        machine.meters.message_bytes.charge(self.now, received);
        let air_bytes = &mut machine.usage.air_bytes;
        *air_bytes = air_bytes.saturating_add(sent.saturating_add(received));
    }

    /// Notes in a machine's log why a server gave it no answer.
    #[cfg(feature = "reach")]
    pub(crate) fn log_visit(&mut self, id: CallId, words: &[u8]) {
        let Some(call) = self.calls.get(id) else { return };
        let Request::Visit(Ask::Request { method, url, .. }) = &call.request else { return };
        let why = String::from_utf8_lossy(words);
        let message = alloc::format!("{}: {why}", Visit { method, url });
        let Some(machine) = self.machines.known_mut(call.caller) else { return };
        self.outbox.log_of(machine, self.now, LogLevel::Warning, message);
    }

    /// The keys of this device's machines, then those that were found elsewhere, if any.
    fn own_keys_and(&self, others: Result<Option<Vec<u8>>, NoResult>) -> Vec<u8> {
        let own = self.machines.iter().flat_map(|machine| machine.public_key().0);
        own.chain(others.ok().flatten().unwrap_or_default()).collect()
    }

    /// Lets a machine that waits for call `id` go on.
    fn wake_with(
        &mut self,
        slot: Slot,
        id: CallId,
        (result, words): (Result<Option<Vec<u8>>, NoResult>, Vec<u8>),
    ) {
        let Some(machine) = self.machines.known_mut(slot) else { return };
        let into = match machine.wait {
            Some(Wait::Call(waited)) if waited == id => None,
            Some(Wait::Keys(waited, into)) if waited == id => Some((into, KEY_BYTES)),
            Some(Wait::Secret(waited, into)) if waited == id => Some((into, 1)),
            waits => {
                debug_assert!(false, "{id:?} blocks a machine that waits for {waits:?}");
                return;
            }
        };
        let woken = match (result, into) {
            (Err(reason), _) => {
                let wait = reason.again_in().map(|wait| wait.as_millis().to_string().into_bytes());
                machine.call_result = wait.unwrap_or(words);
                Woken::with_status(reason.host_error().code())
            }
            (Ok(None), None) => Woken::with_status(HostError::Null.code()),
            (Ok(None), Some(_)) => Woken::with_status(HostError::NotFound.code()),
            (Ok(Some(value)), None) => {
                machine.call_result = value;
                Woken::with_status(machine.call_result.len() as i32)
            }
            (Ok(Some(bytes)), Some((into, unit))) => {
                let (status, mut bytes) = (bytes.len() as i32, Zeroizing::new(bytes));
                bytes.truncate(into.capacity() / unit * unit);
                Woken { status: Some(status), copy: Some((into, bytes)) }
            }
        };
        machine.wake(woken);
    }

    fn call_back(&mut self, slot: Slot, id: CallId, function: String, parameter: Option<Vec<u8>>) {
        if function.is_empty() {
            return;
        }
        let Some(machine) = self.machines.known_mut(slot) else { return };
        if self.storage.has_function(machine, &function) {
            let callback_of = Some(id);
            machine.enqueue(Task { callback_of, ..Task::of_kernel(function, parameter) });
        } else {
            let message = alloc::format!("callback `{function}`: no such function");
            self.outbox.log_of(machine, self.now, LogLevel::Error, message);
        }
    }
}

/// The machine that a target means, as far as this device can tell by itself.
pub(crate) enum Sought<'a> {
    /// A machine of this device.
    Here(&'a Machine),
    /// Nobody: it would be on this device, and isn't.
    Nobody,
    /// A caller on another device.
    Elsewhere,
}

/// The machine that `target`, which isn't the caller itself, means among `machines` of the device of that name.
pub(crate) fn local_machine<'a>(
    machines: &'a Machines,
    device: Option<&Name>,
    target: &Target,
) -> Sought<'a> {
    let (found, is_here_if_at_all) = match target {
        Target::Own => (None, true),
        Target::Local(name) => (machines.with_name(name), true),
        Target::Remote { machine, device: there } if device == Some(there) => {
            (machines.with_name(machine), true)
        }
        Target::Remote { .. } => (None, false),
        Target::Id(id) => (machines.with_id(*id), false),
        Target::Key(key) => (machines.with_key(key), false),
    };
    match found {
        Some(machine) => Sought::Here(machine),
        None if is_here_if_at_all => Sought::Nobody,
        None => Sought::Elsewhere,
    }
}

/// Whether `machine` is the one that `target` means on the device of that name.
pub(crate) fn is_meant(machine: &Machine, device: Option<&Name>, target: &Target) -> bool {
    let is_named = |name: &Name| !machine.is_removed && machine.record.name == *name;
    match target {
        Target::Own => true,
        Target::Local(name) => is_named(name),
        Target::Remote { machine, device: there } => device == Some(there) && is_named(machine),
        Target::Id(id) => machine.id == *id,
        Target::Key(key) => machine.public_key() == *key,
    }
}

/// The receiver of a machine's call, as its grants are asked for.
pub(crate) fn callee<'a>(
    device: Option<&'a Name>,
    sought: &Sought<'a>,
    target: &'a Target,
) -> Peer<'a> {
    if let Sought::Here(machine) = sought {
        let MachineRecord { name, public_key, .. } = &machine.record;
        return Peer { machine: Some(name), device, is_here: true, key: Some(public_key) };
    }
    match target {
        Target::Own | Target::Id(_) => Peer::default(),
        Target::Local(name) => Peer { machine: Some(name), device, is_here: true, key: None },
        Target::Remote { machine, device: there } => Peer {
            machine: Some(machine),
            device: Some(there),
            is_here: device == Some(there),
            key: None,
        },
        Target::Key(key) => Peer { key: Some(key), ..Peer::default() },
    }
}

/// A reason in the words that a machine's callback receives, and behind them those of the machine that
/// was called.
fn words_for_machine(reason: NoResult, words: &[u8]) -> Vec<u8> {
    let told = match (reason.host_error(), reason.again_in()) {
        (error, Some(wait)) => alloc::format!("{error}, {} ms more", wait.as_millis()),
        (error, None) if words.is_empty() => error.to_string(),
        (error, None) => alloc::format!("{error}: {}", String::from_utf8_lossy(words)),
    };
    told.into_bytes()
}
