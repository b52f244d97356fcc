//! The way of calls: from a machine to one here or out, and the answer back.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_wire::Target;
use tenure_wire::host_call::HostError;
use zeroize::Zeroizing;

use crate::calls::{CallId, Completion, Request};
use crate::effect::{Effect, LogLevel, OutgoingCall};
use crate::failed::Failed;
use crate::kernel::{Access, DeliverError, Kernel};
use crate::machine::{Machine, Wait, Woken};
use crate::task::{ReplyTo, Task};

/// How long a public key is.
const KEY_BYTES: usize = 32;

impl<F: Flash> Kernel<F> {
    /// Takes the answer to a call or a resolution that left the device. An answer that nobody
    /// waits for any more is dropped.
    pub fn complete(&mut self, now: Instant, id: CallId, result: Result<Option<Vec<u8>>, Failed>) {
        if let Err(failed) = &result
            && self.calls.retry_later(id, now, failed.error)
        {
            self.no_timer_before = None;
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
                let bytes = result.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len);
                let result = match result {
                    // It ran, and what it gave is lost.
                    Ok(_) if !self.has_room_for(call.caller, bytes) => {
                        Err(HostError::Unknown.into())
                    }
                    result => result,
                };
                let (function, parameter) = match result {
                    Ok(value) => (on_success, value),
                    Err(failed) => (on_failure, Some(failed.to_string().into_bytes())),
                };
                self.call_back(now, call.caller, id, function, parameter);
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
                Some(None) => self.complete(now, id, Err(HostError::NotFound.into())),
                None => self.effects.push_back(Effect::Resolve { id, target }),
            },
            Request::Secret { name } => {
                if let Some(machine) = self.machine(caller) {
                    let tenant = machine.record.tenant;
                    self.effects.push_back(Effect::Secret { id, tenant, name });
                }
            }
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

    /// Ends what a machine that was stopped has under way: of queued calls nobody can tell any more what
    /// became of them, and their callbacks say so once the machine has started again.
    pub(crate) fn abandon_calls_of(&mut self, slot: usize, now: Instant) {
        for (id, call) in self.calls.take_all_of(slot) {
            if let Completion::Callbacks { on_failure, .. } = call.completion {
                let reason = HostError::Unknown.to_string().into_bytes();
                self.call_back(now, slot, id, on_failure, Some(reason));
            }
        }
    }

    /// Gives the result of a task to whoever waits for it.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        reply_to: ReplyTo,
        result: Result<Option<Vec<u8>>, Failed>,
    ) {
        match reply_to {
            ReplyTo::Nobody => {}
            ReplyTo::Call(id) => self.complete(now, id, result),
            ReplyTo::Outside(ticket) => self.effects.push_back(Effect::Reply { ticket, result }),
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
        let task = Task {
            caller: caller_key,
            function,
            parameter,
            reply_to,
            deadline,
            is_event: false,
            callback_of: None,
        };
        let access = if slot == Some(caller) { Access::Own } else { Access::Others };
        let submitted = match slot {
            Some(slot) => self
                .admit_local(now, slot, caller)
                .and_then(|()| self.submit(now, slot, task, access)),
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
    fn own_keys_and(&self, others: Result<Option<Vec<u8>>, Failed>) -> Vec<u8> {
        let own = self.machines.iter().flatten().flat_map(|machine| machine.public_key().0);
        own.chain(others.ok().flatten().unwrap_or_default()).collect()
    }

    /// Lets a machine that waits for call `id` go on.
    fn wake_with(&mut self, slot: usize, id: CallId, result: Result<Option<Vec<u8>>, Failed>) {
        let Some(machine) = self.machine_mut(slot) else { return };
        let into = match machine.wait {
            Some(Wait::Call(waited)) if waited == id => None,
            Some(Wait::Keys(waited, into)) if waited == id => Some((into, KEY_BYTES)),
            Some(Wait::Secret(waited, into)) if waited == id => Some((into, 1)),
            _ => return,
        };
        let woken = match (result, into) {
            (Err(failed), _) => {
                let wait = failed.again_in.map(|wait| wait.as_millis().to_string());
                machine.call_result = wait.unwrap_or_default().into_bytes();
                Woken::with_status(failed.error.code())
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

    fn call_back(
        &mut self,
        now: Instant,
        slot: usize,
        id: CallId,
        function: String,
        parameter: Option<Vec<u8>>,
    ) {
        if function.is_empty() {
            return;
        }
        if !self.has_function(slot, &function) {
            let message = alloc::format!("callback `{function}`: no such function");
            self.log_of(slot, now, LogLevel::Error, message);
            return;
        }
        if let Some(machine) = self.machine_mut(slot) {
            let callback_of = Some(id);
            machine.enqueue(Task { callback_of, ..Task::of_kernel(function, parameter) });
        }
    }
}
