//! Host calls: what machines ask, checked and done.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_store::{DeleteError, ReadError, SetError, ValueKind};
use tenure_vm::{FunctionType, HostFunctions, Value, ValueType};
use tenure_wire::host_call::{
    BadPointer, GuestBuffer, GuestBytes, GuestText, HostCall, HostError, MODULE, TABLE, TextError,
    WasmType,
};
use tenure_wire::limits::{
    FUNCTION_BYTES_MAX, LOG_BYTES_MAX, NAME_BYTES_MAX, PARAMETER_BYTES_MAX, PATH_BYTES_MAX,
    TARGET_BYTES_MAX, VALUE_BYTES_MAX,
};
use tenure_wire::{Name, PublicKey, Target};

use crate::calls::{CallId, Completion, Request};
use crate::cost;
use crate::effect::LogLevel;
use crate::kernel::{Kernel, World};
use crate::machine::{FaultKind, LongCall, Progress, Wait};
use crate::program::Program;
use crate::timer::First;

/// The host calls as the vm checks a module's imports against them.
pub fn host_functions() -> impl HostFunctions {
    TableOfHostCalls
}

struct TableOfHostCalls;

impl HostFunctions for TableOfHostCalls {
    fn resolve(&self, module: &str, name: &str, signature: &FunctionType<'_>) -> Option<u16> {
        let call = TABLE.iter().find(|call| module == MODULE && call.name == name)?;
        let parameters = call.wasm_parameters().map(value_type);
        let results = call.wasm_result().map(value_type).into_iter();
        (signature.params().eq(parameters) && signature.results().eq(results))
            .then_some(call.number)
    }
}

fn value_type(wasm: WasmType) -> ValueType {
    match wasm {
        WasmType::I32 => ValueType::I32,
        WasmType::I64 => ValueType::I64,
    }
}

/// What becomes of a machine that made a host call.
pub(crate) enum Verdict {
    /// It goes on with this result.
    Continue(HostResult),
    /// It goes on at its next turn.
    Yield,
    /// The call goes on with its next piece, at the machine's next turn if this one's fuel is used.
    More,
    /// It waits.
    Wait(Wait),
    /// It is stopped.
    Fault(FaultKind),
}

/// What a host call gives back: nothing, or one value.
pub(crate) struct HostResult(Option<[Value; 1]>);

impl HostResult {
    pub(crate) fn as_slice(&self) -> &[Value] {
        self.0.as_ref().map_or(&[], |value| value.as_slice())
    }
}

/// Why a host call doesn't simply go on.
pub(crate) enum Stop {
    /// The machine is told.
    Error(HostError),
    /// The machine is stopped.
    Fault(FaultKind),
    /// The machine waits.
    Wait(Wait),
    /// There is more of the call to be done.
    More(Progress),
}

impl From<BadPointer> for Stop {
    fn from(_: BadPointer) -> Self {
        Self::Fault(FaultKind::BadPointer)
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self::Error(error)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Error(match error {
            ReadError::Path(_) => HostError::Invalid,
            _ => HostError::Device,
        })
    }
}

impl From<SetError> for Stop {
    fn from(error: SetError) -> Self {
        Self::Error(match error {
            SetError::Path(_) => HostError::Invalid,
            SetError::ValueTooLong { .. } => HostError::TooLong,
            SetError::Full => HostError::Full,
            SetError::Flash(_) => HostError::Device,
        })
    }
}

impl From<DeleteError> for Stop {
    fn from(error: DeleteError) -> Self {
        Self::Error(match error {
            DeleteError::Path(_) => HostError::Invalid,
            DeleteError::Full => HostError::Full,
            DeleteError::Flash(_) => HostError::Device,
        })
    }
}

/// A length or count that a host call returns.
pub(crate) type Status = Result<usize, Stop>;

impl<F: Flash> Kernel<F> {
    /// Does what the machine in `slot`, whose `instance` is out of its slot, asks.
    pub(crate) fn serve(
        &mut self,
        slot: usize,
        instance: &mut Program,
        world: &mut World<'_>,
        call: &HostCall,
    ) -> Verdict {
        let now = world.now;
        commit_ranges(instance, call);
        let status = match *call {
            HostCall::log { level, message } => {
                return match self.host_log(slot, instance, now, level, message) {
                    Ok(()) => Verdict::Continue(HostResult(None)),
                    Err(BadPointer) => Verdict::Fault(FaultKind::BadPointer),
                };
            }
            HostCall::abort { message } => {
                let _ = self.host_log(slot, instance, now, 0, message);
                return Verdict::Fault(FaultKind::Aborted);
            }
            HostCall::fail {} => {
                self.host_fail(slot);
                return Verdict::Continue(HostResult(None));
            }
            HostCall::yield_now {} => return Verdict::Yield,
            HostCall::sleep_ms { duration_ms } => {
                let until = now + Duration::from_millis(u64::from(duration_ms));
                return Verdict::Wait(Wait::Until(until));
            }
            HostCall::uptime_us {} => return time(Some(now.as_micros())),
            HostCall::unix_time_s {} => return time(world.unix_time.map(|unix| unix.seconds)),
            HostCall::public_key { into } => self.host_public_key(slot, instance, into),
            HostCall::caller { into } => self.host_caller(slot, instance, into),
            HostCall::parameter_length {} => self.host_parameter_length(slot),
            HostCall::parameter_read { offset, into } => {
                self.host_parameter_read(slot, instance, offset, into)
            }
            HostCall::reply { value } => self.host_reply(slot, instance, value),
            HostCall::tree_set { path, kind, value } => {
                self.host_tree_set(slot, instance, now, path, kind, value)
            }
            HostCall::raise_tier { tier, fuel } => self.host_raise_tier(slot, tier, fuel),
            HostCall::callback_of {} => self.host_callback_of(slot),
            HostCall::budget_left { which } => self.host_budget_left(slot, now, which),
            HostCall::tree_get { path, into } => self.host_tree_get(slot, instance, path, into),
            HostCall::tree_delete { path } => self.host_tree_delete(slot, instance, now, path),
            HostCall::tree_list { path, into } => self.host_tree_list(slot, instance, path, into),
            HostCall::call { target, function, parameter, deadline_ms } => {
                self.host_call(slot, instance, now, target, function, parameter, deadline_ms)
            }
            HostCall::result_read { offset, into } => {
                self.host_result_read(slot, instance, offset, into)
            }
            HostCall::queue {
                target,
                function,
                parameter,
                on_success,
                on_failure,
                deadline_ms,
                retries,
            } => {
                let callbacks = (on_success, on_failure);
                let times = (deadline_ms, retries);
                self.host_queue(
                    slot,
                    instance,
                    now,
                    (target, function, parameter),
                    callbacks,
                    times,
                )
            }
            HostCall::timer_after { function, parameter, delay_ms, period_ms } => {
                let when = (First::After(delay_ms), period_ms);
                self.host_timer_set(slot, instance, now, (function, parameter), when)
            }
            HostCall::timer_at { function, parameter, unix_time_s, period_ms } => {
                let when = (First::At(unix_time_s), period_ms);
                self.host_timer_set(slot, instance, now, (function, parameter), when)
            }
            HostCall::timer_cancel { function } => {
                self.host_timer_cancel(slot, instance, now, function)
            }
            HostCall::publish { topic, payload } => {
                self.host_publish(slot, instance, now, topic, payload)
            }
            HostCall::subscribe { topic, policy, depth, handler } => {
                self.host_subscribe(slot, instance, now, topic, (policy, depth), handler)
            }
            HostCall::unsubscribe { topic } => self.host_unsubscribe(slot, instance, topic),
            HostCall::event_next { timeout_ms } => self.host_event_next(slot, now, timeout_ms),
            HostCall::event_topic { into } => self.host_event_topic(slot, instance, into),
            HostCall::event_read { offset, into } => {
                self.host_event_read(slot, instance, offset, into)
            }
            HostCall::event_dropped {} => self.host_event_dropped(slot),
            HostCall::topic_dropped { topic } => self.host_topic_dropped(slot, instance, topic),
            HostCall::random { into } => self.host_random(slot, instance, world, into),
            HostCall::peers { which, into } => self.host_peers(slot, instance, now, which, into),
            HostCall::resolve { target, into } => {
                self.host_resolve(slot, instance, now, target, into)
            }
            HostCall::secret_read { name, into } => {
                self.host_secret_read(slot, instance, now, name, into)
            }
        };
        match status {
            Ok(length) => word(i32::try_from(length).unwrap_or(i32::MAX)),
            Err(Stop::Error(error)) => word(error.code()),
            Err(Stop::Fault(kind)) => Verdict::Fault(kind),
            Err(Stop::Wait(wait)) => Verdict::Wait(wait),
            Err(Stop::More(progress)) => {
                if let Some(machine) = self.machine_mut(slot) {
                    machine.long_call = Some(Box::new(LongCall { call: *call, progress }));
                }
                Verdict::More
            }
        }
    }

    fn host_log(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        level: u32,
        message: GuestText,
    ) -> Result<(), BadPointer> {
        let bytes = message.read_bytes(instance.memory(), LOG_BYTES_MAX)?;
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.log_of(slot, now, LogLevel::from_number(level), text);
        Ok(())
    }

    fn host_public_key(&self, slot: usize, instance: &mut Program, into: GuestBuffer) -> Status {
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        write_whole(instance, into, &machine.public_key().0)
    }

    fn host_caller(&self, slot: usize, instance: &mut Program, into: GuestBuffer) -> Status {
        match self.running(slot).and_then(|running| running.task.caller) {
            Some(PublicKey(key)) => write_whole(instance, into, &key),
            None => Ok(0),
        }
    }

    fn host_parameter_length(&self, slot: usize) -> Status {
        Ok(self.parameter(slot).ok_or(HostError::NotFound)?.len())
    }

    fn host_parameter_read(
        &self,
        slot: usize,
        instance: &mut Program,
        offset: u32,
        into: GuestBuffer,
    ) -> Status {
        let parameter = self.parameter(slot).ok_or(HostError::NotFound)?;
        write_from(instance, into, parameter, offset)
    }

    fn host_reply(&mut self, slot: usize, instance: &Program, value: Option<GuestBytes>) -> Status {
        let reply = read_parameter(instance, value)?;
        if let Some(running) = self.running_mut(slot)
            && running.reply.is_ok()
        {
            running.reply = Ok(reply);
        }
        Ok(0)
    }

    fn host_fail(&mut self, slot: usize) {
        if let Some(running) = self.running_mut(slot) {
            running.reply = Err(HostError::Execution);
        }
    }

    fn host_tree_set(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        path: GuestText,
        kind: u32,
        value: GuestBytes,
    ) -> Status {
        let path = path_of(instance, path)?;
        if value.length() > VALUE_BYTES_MAX {
            return Err(HostError::TooLong.into());
        }
        let bytes = value.read(instance.memory())?;
        let kind = match kind {
            0 => ValueKind::Bytes,
            1 if core::str::from_utf8(bytes).is_ok() => ValueKind::Text,
            _ => return Err(HostError::Invalid.into()),
        };
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        let (tree, limit) = (machine.tree, machine.record.budget.stored_bytes as usize);
        let stored = self.stored_bytes(slot);
        let replaced = match self.store.get(tree, path) {
            Ok(Some(value)) => self.store.record_bytes(tree, path, &value.bytes),
            Ok(None) | Err(ReadError::Corrupt | ReadError::Unsealable) => 0,
            Err(error) => return Err(error.into()),
        };
        let kept = stored.saturating_sub(replaced);
        let appended = self.store.record_bytes(tree, path, bytes);
        if kept + appended > limit {
            return Err(HostError::StoredBudget.into());
        }
        self.check_flash(slot, now)?;
        self.tree(slot).ok_or(HostError::Device)?.set(path, kind, bytes)?;
        self.charge_flash(slot, now, appended);
        Ok(0)
    }

    fn host_tree_get(
        &mut self,
        slot: usize,
        instance: &mut Program,
        path: GuestText,
        into: GuestBuffer,
    ) -> Status {
        let path = path_of(instance, path)?;
        let mut tree = self.tree(slot).ok_or(HostError::Device)?;
        let value = tree.get(path)?.ok_or(HostError::NotFound)?;
        into.write(instance.memory_mut(), &value.bytes)?;
        Ok(value.bytes.len())
    }

    fn host_tree_delete(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        path: GuestText,
    ) -> Status {
        let mut progress = self.take_progress(slot);
        let path = path_of(instance, path)?;
        if progress.deletion.is_new() {
            self.check_flash(slot, now)?;
        }
        self.count_storage(slot, now);
        let mut tree = self.tree(slot).ok_or(HostError::Device)?;
        let step = tree.delete_step(path, &mut progress.deletion, cost::PIECE_VALUES)?;
        self.extra_cost += cost::of_deleting(&step);
        if step.written_bytes > 0 {
            self.charge_flash(slot, now, step.written_bytes);
        }
        match progress.deletion {
            ref deletion if deletion.is_done() => Ok(deletion.values),
            _ => Err(Stop::More(progress)),
        }
    }

    fn host_tree_list(
        &mut self,
        slot: usize,
        instance: &mut Program,
        path: GuestText,
        into: GuestBuffer,
    ) -> Status {
        let Progress { mut bytes, mut last_name, .. } = self.take_progress(slot);
        let path = path_of(instance, path)?;
        let mut tree = self.tree(slot).ok_or(HostError::Device)?;
        let mut list = Vec::new();
        let mut names = 0;
        while names < cost::PIECE_NAMES {
            let next = tree.next_child(path, last_name.as_deref())?;
            let Some(name) = next else { break };
            list.extend_from_slice(name.as_bytes());
            list.push(0);
            last_name = Some(name);
            names += 1;
        }
        self.extra_cost += cost::of_names(names.max(1), list.len());
        into.write_at(instance.memory_mut(), bytes, &list)?;
        bytes += list.len();
        if names < cost::PIECE_NAMES {
            return Ok(bytes);
        }
        Err(Stop::More(Progress { bytes, last_name, ..Progress::default() }))
    }

    fn host_random(
        &mut self,
        slot: usize,
        instance: &mut Program,
        world: &mut World<'_>,
        into: GuestBuffer,
    ) -> Status {
        let wanted = into.capacity().min(PARAMETER_BYTES_MAX);
        let done = self.take_progress(slot).bytes;
        let mut bytes = alloc::vec![0; wanted.saturating_sub(done).min(cost::PIECE_RANDOM_BYTES)];
        world.entropy.fill(&mut bytes).map_err(|_| HostError::Device)?;
        into.write_at(instance.memory_mut(), done, &bytes)?;
        self.extra_cost += cost::of_random(bytes.len());
        let bytes = done + bytes.len();
        if bytes >= wanted {
            return Ok(bytes);
        }
        Err(Stop::More(Progress { bytes, ..Progress::default() }))
    }

    /// How far the host call under way has come.
    pub(crate) fn take_progress(&mut self, slot: usize) -> Progress {
        let under_way = self.machine_mut(slot).and_then(|machine| machine.long_call.take());
        under_way.map_or_else(Progress::default, |under_way| under_way.progress)
    }

    #[allow(clippy::too_many_arguments)] // as many as the host call has
    fn host_call(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        target: GuestText,
        function: GuestText,
        parameter: Option<GuestBytes>,
        deadline_ms: u32,
    ) -> Status {
        let request = read_call(instance, target, function, parameter)?;
        if let Request::Call { target, .. } = &request
            && self.local_slot(slot, target) == Some(Some(slot))
        {
            // It does one task at a time, so it would wait for itself until the deadline.
            return Err(HostError::Denied.into());
        }
        self.check_call(slot, now, &request)?;
        let id = self.insert_blocking(slot, now, deadline_ms, request)?;
        Err(Stop::Wait(Wait::Call(id)))
    }

    fn host_queue(
        &mut self,
        slot: usize,
        instance: &Program,
        now: Instant,
        (target, function, parameter): (GuestText, GuestText, Option<GuestBytes>),
        (on_success, on_failure): (GuestText, GuestText),
        (deadline_ms, retries): (u32, u32),
    ) -> Status {
        let request = read_call(instance, target, function, parameter)?;
        let completion = Completion::Callbacks {
            on_success: function_name(instance, on_success)?.to_string(),
            on_failure: function_name(instance, on_failure)?.to_string(),
        };
        self.check_call(slot, now, &request)?;
        self.admit_call(slot, now, &request)?;
        let deadline = self.deadline(now, deadline_ms);
        let retries = u8::try_from(retries).unwrap_or(u8::MAX);
        let id = self.calls.insert(slot, request, completion, deadline, retries);
        self.dispatch(now, id);
        Ok(number_of(id))
    }

    fn host_resolve(
        &mut self,
        slot: usize,
        instance: &mut Program,
        now: Instant,
        target: GuestText,
        into: GuestBuffer,
    ) -> Status {
        into.write(instance.memory_mut(), &[])?;
        let target = target_of(instance, target)?;
        let request = Request::Resolve { target };
        let id = self.insert_blocking(slot, now, 0, request)?;
        Err(Stop::Wait(Wait::Keys(id, into)))
    }

    fn host_secret_read(
        &mut self,
        slot: usize,
        instance: &mut Program,
        now: Instant,
        name: GuestText,
        into: GuestBuffer,
    ) -> Status {
        into.write(instance.memory_mut(), &[])?;
        let name = text(instance, name, NAME_BYTES_MAX)?;
        let name = name.parse::<Name>().map_err(|_| HostError::Invalid)?;
        self.ask(now, slot, |grants| grants.read_secret(name.as_str()))
            .map_err(|_| HostError::NotGranted)?;
        let request = Request::Secret { name };
        let id = self.insert_blocking(slot, now, 0, request)?;
        Err(Stop::Wait(Wait::Secret(id, into)))
    }

    fn host_result_read(
        &self,
        slot: usize,
        instance: &mut Program,
        offset: u32,
        into: GuestBuffer,
    ) -> Status {
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        write_from(instance, into, &machine.call_result, offset)
    }

    fn host_peers(
        &mut self,
        slot: usize,
        instance: &mut Program,
        now: Instant,
        which: u32,
        into: GuestBuffer,
    ) -> Status {
        into.write(instance.memory_mut(), &[])?;
        let request = Request::Peers { own: which & 1 != 0, others: which & 2 != 0 };
        let id = self.insert_blocking(slot, now, 0, request)?;
        Err(Stop::Wait(Wait::Keys(id, into)))
    }

    fn host_raise_tier(&mut self, slot: usize, tier: u32, fuel: u32) -> Status {
        let machine = self.machine_mut(slot).ok_or(HostError::NotFound)?;
        let share = machine.record.share;
        let tier = u16::try_from(tier).unwrap_or(u16::MAX);
        if tier > share.tier_max {
            return Err(HostError::NotGranted.into());
        }
        let fuel = u64::from(fuel).min(machine.critical_fuel);
        let raised = tier > share.tier && fuel > 0;
        machine.critical = raised.then_some((tier, fuel));
        Ok(if raised { tier } else { share.tier }.into())
    }

    fn host_callback_of(&self, slot: usize) -> Status {
        let call = self.running(slot).and_then(|running| running.task.callback_of);
        Ok(number_of(call.ok_or(HostError::NotFound)?))
    }

    fn host_budget_left(&mut self, slot: usize, now: Instant, which: u32) -> Status {
        let calls = self.calls.count_of(slot);
        let stored = self.stored_bytes(slot) as i64;
        let machine = self.machine_mut(slot).ok_or(HostError::NotFound)?;
        let (budget, meters) = (machine.record.budget, &mut machine.meters);
        let left = match which {
            0 => meters.fuel.as_mut().map_or(i64::MAX, |fuel| fuel.level(now)),
            1 => meters.flash.level(now),
            2 => meters.messages.level(now),
            3 => meters.message_bytes.level(now),
            4 => i64::from(budget.stored_bytes) - stored,
            5 => i64::from(budget.queue_length) - (machine.tasks_waiting() + calls) as i64,
            _ => return Err(HostError::Invalid.into()),
        };
        Ok(usize::try_from(left.max(0)).unwrap_or(usize::MAX))
    }

    /// Checks that the machine may write to flash. What it may write today can be overdrawn by one
    /// write, so that a long value isn't refused where many short ones pass.
    pub(crate) fn check_flash(&mut self, slot: usize, now: Instant) -> Result<(), Stop> {
        self.count_storage(slot, now);
        let machine = self.machine_mut(slot).ok_or(HostError::NotFound)?;
        if machine.meters.flash.level(now) > 0 {
            Ok(())
        } else {
            Err(HostError::FlashBudget.into())
        }
    }

    pub(crate) fn charge_flash(&mut self, slot: usize, now: Instant, bytes: usize) {
        if let Some(machine) = self.machine_mut(slot) {
            machine.meters.flash.charge(now, bytes as u64);
            machine.usage.flash_writes += 1;
            machine.usage.flash_bytes += bytes as u64;
        }
    }

    fn running(&self, slot: usize) -> Option<&crate::machine::Running> {
        self.machine(slot)?.current.as_deref()
    }

    fn running_mut(&mut self, slot: usize) -> Option<&mut crate::machine::Running> {
        self.machine_mut(slot)?.current.as_deref_mut()
    }

    fn parameter(&self, slot: usize) -> Option<&[u8]> {
        let task = &self.running(slot)?.task;
        if task.is_event { self.event_payload(slot) } else { task.parameter.as_deref() }
    }

    /// Makes a call that its machine waits for.
    fn insert_blocking(
        &mut self,
        slot: usize,
        now: Instant,
        deadline_ms: u32,
        request: Request,
    ) -> Result<CallId, Stop> {
        self.admit_call(slot, now, &request)?;
        let deadline = self.deadline(now, deadline_ms);
        Ok(self.calls.insert(slot, request, Completion::Blocking, deadline, 0))
    }

    /// Takes the room and the message that a call needs.
    ///
    /// A machine's tasks and calls share one limit, so that each call's callback has its room.
    fn admit_call(&mut self, slot: usize, now: Instant, request: &Request) -> Result<(), Stop> {
        let machine = self.machine(slot).ok_or(HostError::NotFound)?;
        let taken = machine.tasks_waiting() + self.calls.count_of(slot);
        if taken >= usize::from(machine.record.budget.queue_length) {
            return Err(HostError::QueueBudget.into());
        }
        if !self.has_room_for(slot, request.parameter_bytes()) {
            return Err(HostError::Full.into());
        }
        self.no_timer_before = None;
        Ok(self.spend_message(slot, now, request.message_bytes())?)
    }

    /// Takes a message of `bytes` from the budget of the machine in `slot`.
    ///
    /// # Errors
    /// [`HostError::MessageBudget`] if it is spent; nothing was taken then.
    pub(crate) fn spend_message(
        &mut self,
        slot: usize,
        now: Instant,
        bytes: usize,
    ) -> Result<(), HostError> {
        let machine = self.machine_mut(slot).ok_or(HostError::NotFound)?;
        let may = machine.meters.take_message(now, bytes);
        machine.usage.messages += u64::from(may);
        if may { Ok(()) } else { Err(HostError::MessageBudget) }
    }

    fn deadline(&self, now: Instant, deadline_ms: u32) -> Instant {
        let wanted = match deadline_ms {
            0 => self.config.deadline_default,
            _ => Duration::from_millis(u64::from(deadline_ms)),
        };
        now + wanted.min(self.config.deadline_max)
    }
}

/// Commits the memory that the machine's pointers name.
fn commit_ranges(instance: &mut Program, call: &HostCall) {
    call.for_each_range(|range| {
        instance.commit(range.pointer(), u32::try_from(range.length()).unwrap_or(u32::MAX));
    });
}

/// The number that a machine knows its call by.
fn number_of(id: CallId) -> usize {
    (id.0 & 0x7FFF_FFFF) as usize
}

fn word(value: i32) -> Verdict {
    Verdict::Continue(HostResult(Some([Value::I32(value)])))
}

/// A time that the device may not know.
fn time(value: Option<u64>) -> Verdict {
    let value = value.and_then(|value| i64::try_from(value).ok()).unwrap_or(-1);
    Verdict::Continue(HostResult(Some([Value::I64(value)])))
}

/// Writes all of `bytes` or says that the room is too small.
fn write_whole(instance: &mut Program, into: GuestBuffer, bytes: &[u8]) -> Status {
    if into.capacity() < bytes.len() {
        return Err(HostError::TooLong.into());
    }
    Ok(into.write(instance.memory_mut(), bytes)?)
}

/// Writes what of `bytes` comes after `offset`, as far as there is room; gives how much that would be.
pub(crate) fn write_from(
    instance: &mut Program,
    into: GuestBuffer,
    bytes: &[u8],
    offset: u32,
) -> Status {
    let rest = bytes.get(offset as usize..).unwrap_or_default();
    Ok(into.write(instance.memory_mut(), rest)?)
}

/// A text of at most `bytes_max` bytes, which is looked at before any of them.
pub(crate) fn text(instance: &Program, text: GuestText, bytes_max: usize) -> Result<&str, Stop> {
    text.read(instance.memory(), bytes_max).map_err(|error| match error {
        TextError::Pointer(error) => error.into(),
        TextError::TooLong => HostError::TooLong.into(),
        TextError::NotText => HostError::Invalid.into(),
    })
}

pub(crate) fn function_name(instance: &Program, name: GuestText) -> Result<&str, Stop> {
    text(instance, name, FUNCTION_BYTES_MAX)
}

fn path_of(instance: &Program, path: GuestText) -> Result<&str, Stop> {
    text(instance, path, PATH_BYTES_MAX)
}

fn target_of(instance: &Program, target: GuestText) -> Result<Target, Stop> {
    let target = text(instance, target, TARGET_BYTES_MAX)?.parse::<Target>();
    Ok(target.map_err(|_| HostError::Invalid)?)
}

pub(crate) fn read_parameter(
    instance: &Program,
    value: Option<GuestBytes>,
) -> Result<Option<Vec<u8>>, Stop> {
    let Some(value) = value else { return Ok(None) };
    if value.length() > PARAMETER_BYTES_MAX {
        return Err(HostError::TooLong.into());
    }
    Ok(Some(value.read(instance.memory())?.to_vec()))
}

fn read_call(
    instance: &Program,
    target: GuestText,
    function: GuestText,
    parameter: Option<GuestBytes>,
) -> Result<Request, Stop> {
    let target = target_of(instance, target)?;
    let function = function_name(instance, function)?.to_string();
    if function.is_empty() {
        return Err(HostError::Invalid.into());
    }
    Ok(Request::Call { target, function, parameter: read_parameter(instance, parameter)? })
}
