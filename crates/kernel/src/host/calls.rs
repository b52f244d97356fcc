//! Host calls that call other machines, or ask for keys and secrets.

use alloc::string::ToString;
use core::time::Duration;

use tenure_hal::Flash;
#[cfg(feature = "reach")]
use tenure_wire::capability::Visit;
use tenure_wire::host_call::{GuestBuffer, GuestBytes, GuestText, HostError};
use tenure_wire::limits::{NAME_BYTES_MAX, TARGET_BYTES_MAX};
#[cfg(feature = "reach")]
use tenure_wire::url::URL_BYTES_MAX;
use tenure_wire::{Name, Target};

use super::Question;
use super::{Status, Stop, function_name, read_parameter, spend_message, text};
#[cfg(feature = "reach")]
use crate::ask::Ask;
use crate::calls::{CallId, Completion, Request};
use crate::exchange::{Sought, callee, is_meant, local_machine};
use crate::machine::Wait;
use crate::program::Program;
use crate::turn::Turn;

/// The bits of [`Turn::peers`] that ask for this device's machines, and for others'.
const PEERS_HERE: u32 = 1;
const PEERS_ELSEWHERE: u32 = 2;

/// The function of a server by which the next part of its answer is asked for. Methods have capital letters.
#[cfg(feature = "reach")]
const MORE: &str = "more";

/// Target, function and parameter of a call.
type Called = (GuestText, GuestText, Option<GuestBytes>);

impl<F: Flash> Turn<'_, '_, F> {
    pub(super) fn call(&mut self, called: Called, deadline_ms: u32) -> Status {
        // One that is refused at once has no result, nor the one before it any longer.
        self.machine.call_result.clear();
        let request = read_request(&self.program, called)?;
        self.door().ask(Question::waiting(Wait::Call(CallId(0))))?;
        if let Request::Call { target, .. } = &request
            && is_meant(&self.machine, self.parts.config.device.as_ref(), target)
        {
            // It does one task at a time, so it would wait for itself until the deadline.
            return Err(HostError::Denied.into());
        }
        self.check_request(&request)?;
        let id = self.insert_blocking(deadline_ms, request)?;
        Err(Stop::Wait(Wait::Call(id)))
    }

    pub(super) fn queue(
        &mut self,
        called: Called,
        (on_success, on_failure): (GuestText, GuestText),
        (deadline_ms, retries): (u32, u32),
    ) -> Status {
        let request = read_request(&self.program, called)?;
        let completion = Completion::Callbacks {
            on_success: function_name(&self.program, on_success)?.to_string(),
            on_failure: function_name(&self.program, on_failure)?.to_string(),
        };
        #[cfg(feature = "reach")]
        if matches!(request, Request::Visit(Ask::More)) {
            return Err(HostError::Invalid.into());
        }
        self.door().ask(Question::MESSAGE)?;
        self.check_request(&request)?;
        let retries = u8::try_from(retries).unwrap_or(u8::MAX);
        Err(Stop::Send(self.insert(request, completion, deadline_ms, retries)?))
    }

    pub(super) fn resolve(&mut self, target: GuestText, into: GuestBuffer) -> Status {
        into.write(self.program.memory_mut(), &[])?;
        let target = target_of(&self.program, target)?;
        self.door().ask(Question::waiting(Wait::Keys(CallId(0), into)))?;
        let id = self.insert_blocking(0, Request::Resolve { target })?;
        Err(Stop::Wait(Wait::Keys(id, into)))
    }

    pub(super) fn secret_read(&mut self, name: GuestText, into: GuestBuffer) -> Status {
        into.write(self.program.memory_mut(), &[])?;
        let name = text(&self.program, name, NAME_BYTES_MAX)?;
        let name = name.parse::<Name>().map_err(|_| HostError::Invalid)?;
        self.door().ask(Question::waiting(Wait::Secret(CallId(0), into)))?;
        let now = self.now();
        let (outbox, machine) = (&mut self.parts.outbox, &mut self.machine);
        let granted = outbox.ask(machine, now, |grants| grants.read_secret(name.as_str()));
        granted.map_err(|_| HostError::NotGranted)?;
        let id = self.insert_blocking(0, Request::Secret { name })?;
        Err(Stop::Wait(Wait::Secret(id, into)))
    }

    pub(super) fn peers(&mut self, which: u32, into: GuestBuffer) -> Status {
        into.write(self.program.memory_mut(), &[])?;
        self.door().ask(Question::waiting(Wait::Keys(CallId(0), into)))?;
        let own = which & PEERS_HERE != 0;
        let others = which & PEERS_ELSEWHERE != 0;
        let id = self.insert_blocking(0, Request::Peers { own, others })?;
        Err(Stop::Wait(Wait::Keys(id, into)))
    }

    /// Whether the machine may make that call.
    fn check_request(&mut self, request: &Request) -> Result<(), HostError> {
        match request {
            Request::Call { target, .. } => self.check_call(target),
            #[cfg(feature = "reach")]
            Request::Visit(ask) => self.check_visit(ask),
            // Each is checked where it is made.
            Request::Resolve { .. } | Request::Secret { .. } | Request::Peers { .. } => Ok(()),
        }
    }

    /// Whether the machine may call `target`.
    fn check_call(&mut self, target: &Target) -> Result<(), HostError> {
        let now = self.now();
        let device = self.parts.config.device.as_ref();
        if is_meant(&self.machine, device, target) {
            return Ok(());
        }
        let sought: Sought<'_> = local_machine(&self.parts.machines, device, target);
        let callee = callee(device, &sought, target);
        let (outbox, machine) = (&mut self.parts.outbox, &mut self.machine);
        let granted = outbox.ask(machine, now, |grants| grants.call(&callee));
        granted.map_err(|_| HostError::NotGranted)
    }

    /// Whether the machine may ask a server that. What follows an answer was granted with it.
    #[cfg(feature = "reach")]
    fn check_visit(&mut self, ask: &Ask) -> Result<(), HostError> {
        let Ask::Request { method, url, .. } = ask else { return Ok(()) };
        let now = self.now();
        let (outbox, machine) = (&mut self.parts.outbox, &mut self.machine);
        let granted = outbox.ask(machine, now, |grants| grants.reach(&Visit { method, url }));
        granted.map_err(|_| HostError::NotGranted)
    }

    /// Makes a call that the machine waits for.
    fn insert_blocking(&mut self, deadline_ms: u32, request: Request) -> Result<CallId, Stop> {
        self.insert(request, Completion::Blocking, deadline_ms, 0)
    }

    /// Makes a call, if there is room for it and a message left.
    ///
    /// A machine's tasks and calls share one limit, so that each call's callback has its room.
    fn insert(
        &mut self,
        request: Request,
        completion: Completion,
        deadline_ms: u32,
        retries: u8,
    ) -> Result<CallId, Stop> {
        let now = self.now();
        let (parts, machine) = (&mut *self.parts, &mut self.machine);
        let slot = machine.slot;
        let taken = machine.tasks_waiting() + parts.calls.count_of(slot);
        if taken >= usize::from(machine.record.budget.queue_length) {
            return Err(HostError::QueueBudget.into());
        }
        let own_tasks = machine.parameter_bytes();
        let held = own_tasks + parts.calls.parameter_bytes_of(slot);
        let taken = own_tasks + parts.machines.parameter_bytes() + parts.calls.parameter_bytes();
        if !parts.config.has_room_for(request.parameter_bytes(), held, taken) {
            return Err(HostError::Full.into());
        }
        parts.clock.timers_changed();
        spend_message(machine, now, request.message_bytes())?;
        let wanted = match deadline_ms {
            0 => parts.config.deadline_default,
            _ => Duration::from_millis(u64::from(deadline_ms)),
        };
        let deadline = now + wanted.min(parts.config.deadline_max);
        Ok(parts.calls.insert(slot, request, completion, deadline, retries))
    }
}

fn target_of(program: &Program, target: GuestText) -> Result<Target, Stop> {
    let target = text(program, target, TARGET_BYTES_MAX)?.parse::<Target>();
    Ok(target.map_err(|_| HostError::Invalid)?)
}

/// The call of a machine, or the question to a server if the target is a URL.
fn read_request(program: &Program, called: Called) -> Result<Request, Stop> {
    #[cfg(feature = "reach")]
    if let Some(ask) = read_visit(program, &called)? {
        return Ok(Request::Visit(ask));
    }
    read_call(program, called)
}

/// The question to a server, if the target is a URL.
#[cfg(feature = "reach")]
fn read_visit(
    program: &Program,
    (target, function, parameter): &Called,
) -> Result<Option<Ask>, Stop> {
    let url = text(program, *target, URL_BYTES_MAX)?;
    if !url.contains("://") {
        return Ok(None);
    }
    let url = url.parse().map_err(|_| HostError::Invalid)?;
    let function = function_name(program, *function)?;
    if function == MORE {
        return Ok(Some(Ask::More));
    }
    let method = function.parse().map_err(|_| HostError::Invalid)?;
    let message = read_parameter(program, *parameter)?;
    Ok(Some(Ask::Request { method, url, message }))
}

fn read_call(program: &Program, (target, function, parameter): Called) -> Result<Request, Stop> {
    let target = target_of(program, target)?;
    let function = function_name(program, function)?.to_string();
    if function.is_empty() {
        return Err(HostError::Invalid.into());
    }
    let parameter = read_parameter(program, parameter)?;
    Ok(Request::Call { target, function, parameter })
}
