//! Host calls: what machines ask, checked and done.

mod calls;
mod events;
#[cfg(feature = "journal")]
mod journal;
#[cfg(not(feature = "journal"))]
#[path = "host/no_journal.rs"]
mod journal;
mod timers;
mod tree;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant};
use tenure_store::{DeleteError, ReadError, SetError};
use tenure_vm::{FunctionType, HostFunctions, Value, ValueType};
use tenure_wire::LogLevel;
use tenure_wire::PublicKey;
use tenure_wire::host_call::{
    BadPointer, GuestBuffer, GuestBytes, GuestText, HostCall, HostError, MODULE, TABLE, TextError,
    WasmType,
};
use tenure_wire::limits::{
    FUNCTION_BYTES_MAX, LOG_BYTES_MAX, PARAMETER_BYTES_MAX, WORDS_BYTES_MAX,
};

use crate::calls::CallId;
use crate::cost;
use crate::events::Events;
use crate::fault::FaultKind;
use crate::machine::{LongCall, Machine, Progress, Wait};
use crate::program::Program;
use crate::storage::Storage;
use crate::timer::First;
use crate::turn::{HostResult, Turn, Verdict};
#[cfg(feature = "journal")]
pub(crate) use journal::Asks;
pub(crate) use journal::Door;
use journal::Question;

/// Ends a line of the log that was cut.
const CUT: &str = "…";

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
    /// The machine is told the call's number, and the call is sent on its way.
    Send(CallId),
    /// The machine is told what its journal says.
    #[cfg_attr(not(feature = "journal"), expect(dead_code, reason = "no journal is played"))]
    Played(usize),
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

impl<F: Flash> Turn<'_, '_, F> {
    /// Does what the machine asks.
    pub(crate) fn serve(&mut self, call: &HostCall) -> Verdict {
        commit_ranges(&mut self.program, call);
        if let Some(verdict) = self.door().tell_time(call) {
            return verdict;
        }
        let status = match *call {
            HostCall::log { level, message } => return self.log(level, message),
            HostCall::abort { message } => return self.abort(message),
            HostCall::fail {} => return self.fail(),
            HostCall::yield_now {} => return Verdict::Yield,
            HostCall::sleep_ms { duration_ms } => {
                let until = self.now() + Duration::from_millis(u64::from(duration_ms));
                return Verdict::Wait(Wait::Until(until));
            }
            HostCall::uptime_us {} => return time(Some(self.now().as_micros())),
            HostCall::unix_time_s {} => {
                return time(self.world.unix_time.map(|unix| unix.seconds));
            }
            HostCall::public_key { into } => {
                write_whole(&mut self.program, into, &self.machine.public_key().0)
            }
            HostCall::caller { into } => self.caller(into),
            HostCall::parameter_length {} => self.parameter_length(),
            HostCall::parameter_read { offset, into } => self.parameter_read(offset, into),
            HostCall::reply { value } => self.reply(value),
            HostCall::raise_tier { tier, fuel } => self.raise_tier(tier, fuel),
            HostCall::callback_of {} => self.callback_of(),
            HostCall::budget_left { which } => self.budget_left(which),
            HostCall::random { into } => self.random(into),
            HostCall::tree_set { path, kind, value } => self.tree_set(path, kind, value),
            HostCall::tree_get { path, into } => self.tree_get(path, into),
            HostCall::tree_delete { path } => self.tree_delete(path),
            HostCall::tree_list { path, into } => self.tree_list(path, into),
            HostCall::call { target, function, parameter, deadline_ms } => {
                self.call((target, function, parameter), deadline_ms)
            }
            HostCall::result_read { offset, into } => {
                write_from(&mut self.program, into, &self.machine.call_result, offset)
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
                self.queue((target, function, parameter), callbacks, (deadline_ms, retries))
            }
            HostCall::peers { which, into } => self.peers(which, into),
            HostCall::resolve { target, into } => self.resolve(target, into),
            HostCall::secret_read { name, into } => self.secret_read(name, into),
            HostCall::timer_after { function, parameter, delay_ms, period_ms } => {
                self.timer_set((function, parameter), (First::After(delay_ms), period_ms))
            }
            HostCall::timer_at { function, parameter, unix_time_s, period_ms } => {
                self.timer_set((function, parameter), (First::At(unix_time_s), period_ms))
            }
            HostCall::timer_schedule { function, parameter, schedule } => {
                self.timer_schedule((function, parameter), schedule)
            }
            HostCall::timer_cancel { function } => self.timer_cancel(function),
            HostCall::publish { topic, payload } => self.publish(topic, payload),
            HostCall::subscribe { topic, policy, depth, handler } => {
                self.subscribe(topic, (policy, depth), handler)
            }
            HostCall::unsubscribe { topic } => self.unsubscribe(topic),
            HostCall::event_next { timeout_ms } => self.event_next(timeout_ms),
            HostCall::event_topic { into } => self.event_topic(into),
            HostCall::event_read { offset, into } => self.event_read(offset, into),
            HostCall::event_dropped {} => self.event_dropped(),
            HostCall::topic_dropped { topic } => self.topic_dropped(topic),
        };
        self.door().note_answer(call, &status);
        self.verdict(call, status)
    }

    fn verdict(&mut self, call: &HostCall, status: Status) -> Verdict {
        match status {
            Ok(length) | Err(Stop::Played(length)) => Verdict::Continue(word(length_word(length))),
            Err(Stop::Error(error)) => Verdict::Continue(word(error.code())),
            Err(Stop::Fault(kind)) => Verdict::Fault(kind),
            Err(Stop::Wait(wait)) => Verdict::Wait(wait),
            Err(Stop::Send(id)) => Verdict::Send(word(length_word(number_of(id))), id),
            Err(Stop::More(progress)) => {
                self.machine.long_call = Some(Box::new(LongCall { call: *call, progress }));
                Verdict::More
            }
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now
    }

    fn log(&mut self, level: u32, message: GuestText) -> Verdict {
        let Ok(bytes) = message.read_bytes(self.program.memory(), LOG_BYTES_MAX) else {
            return Verdict::Fault(FaultKind::BadPointer);
        };
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let (now, level) = (self.now(), LogLevel::from_number(level));
        if level > self.machine.record.log {
            return Verdict::Continue(HostResult(None));
        }
        if message.length() > LOG_BYTES_MAX {
            text.truncate(text.floor_char_boundary(LOG_BYTES_MAX - CUT.len()));
            text.push_str(CUT);
        }
        self.parts.outbox.log_of(&mut self.machine, now, level, text);
        Verdict::Continue(HostResult(None))
    }

    fn fail(&mut self) -> Verdict {
        if let Some(running) = &mut self.machine.current {
            let said = core::mem::replace(&mut running.reply, Err(HostError::Execution));
            if let Ok(Some(mut words)) = said {
                words.truncate(WORDS_BYTES_MAX);
                running.words = words;
            }
        }
        Verdict::Continue(HostResult(None))
    }

    fn abort(&mut self, message: GuestText) -> Verdict {
        let _ = self.log(0, message);
        let words = message.read_bytes(self.program.memory(), WORDS_BYTES_MAX).map(<[u8]>::to_vec);
        if let (Some(running), Ok(words)) = (&mut self.machine.current, words) {
            running.words = words;
        }
        Verdict::Fault(FaultKind::Aborted)
    }

    fn caller(&mut self, into: GuestBuffer) -> Status {
        match self.machine.current.as_ref().and_then(|running| running.task.caller) {
            Some(PublicKey(key)) => write_whole(&mut self.program, into, &key),
            None => Ok(0),
        }
    }

    fn parameter_length(&self) -> Status {
        Ok(parameter(&self.machine, &self.parts.events).ok_or(HostError::NotFound)?.len())
    }

    fn parameter_read(&mut self, offset: u32, into: GuestBuffer) -> Status {
        let parameter = parameter(&self.machine, &self.parts.events);
        write_from(&mut self.program, into, parameter.ok_or(HostError::NotFound)?, offset)
    }

    fn reply(&mut self, value: Option<GuestBytes>) -> Status {
        let reply = read_parameter(&self.program, value)?;
        if let Some(running) = &mut self.machine.current
            && running.reply.is_ok()
        {
            running.reply = Ok(reply);
        }
        Ok(0)
    }

    fn random(&mut self, into: GuestBuffer) -> Status {
        let wanted = into.capacity().min(PARAMETER_BYTES_MAX);
        let done = self.machine.take_progress().bytes;
        let mut bytes = alloc::vec![0; wanted.saturating_sub(done).min(cost::PIECE_RANDOM_BYTES)];
        self.door().ask_failure()?;
        if !self.door().play_random(&mut bytes)? {
            self.world.entropy.fill(&mut bytes).map_err(|_| HostError::Device)?;
        }
        self.door().note_random(&bytes);
        into.write_at(self.program.memory_mut(), done, &bytes)?;
        self.extra_cost += cost::of_random(bytes.len());
        let bytes = done + bytes.len();
        if bytes >= wanted {
            return Ok(bytes);
        }
        Err(Stop::More(Progress { bytes, ..Progress::default() }))
    }

    fn raise_tier(&mut self, tier: u32, fuel: u32) -> Status {
        self.door().ask(Question::STATUS)?;
        let machine = &mut self.machine;
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

    fn callback_of(&self) -> Status {
        let call = self.machine.current.as_ref().and_then(|running| running.task.callback_of);
        Ok(number_of(call.ok_or(HostError::NotFound)?))
    }

    fn budget_left(&mut self, which: u32) -> Status {
        self.door().ask(Question::STATUS)?;
        let (now, slot) = (self.now(), self.machine.slot);
        let tasks = self.machine.tasks_waiting() + self.parts.calls.count_of(slot);
        let (budget, meters) = (self.machine.record.budget, &mut self.machine.meters);
        let left = match which {
            0 => meters.fuel.as_mut().map_or(i64::MAX, |fuel| fuel.level(now)),
            1 => meters.flash.level(now),
            2 => meters.messages.level(now),
            3 => meters.message_bytes.level(now),
            4 => i64::from(budget.stored_bytes) - self.parts.storage.stored_bytes(slot) as i64,
            5 => i64::from(budget.queue_length) - tasks as i64,
            _ => return Err(HostError::Invalid.into()),
        };
        Ok(usize::try_from(left.max(0)).unwrap_or(usize::MAX))
    }
}

/// The parameter of the task that `machine` runs, or the payload of the event that it handles.
fn parameter<'a>(machine: &'a Machine, events: &'a Events) -> Option<&'a [u8]> {
    let task = &machine.current.as_ref()?.task;
    if task.is_event {
        events.held(machine.slot).map(|event| event.payload)
    } else {
        task.parameter.as_deref()
    }
}

/// Checks that `machine` may write to flash. What it may write today can be overdrawn by one
/// write, so that a long value isn't refused where many short ones pass.
fn check_flash<F: Flash>(
    storage: &Storage<F>,
    machine: &mut Machine,
    now: Instant,
) -> Result<(), Stop> {
    storage.bill(machine, now);
    if machine.meters.flash.level(now) > 0 { Ok(()) } else { Err(HostError::FlashBudget.into()) }
}

/// Takes a message of `bytes` from the budget of `machine`.
///
/// # Errors
/// [`HostError::MessageBudget`] if it is spent; nothing was taken then.
fn spend_message(machine: &mut Machine, now: Instant, bytes: usize) -> Result<(), HostError> {
    let may = machine.meters.take_message(now, bytes);
    machine.usage.messages += u64::from(may);
    if may { Ok(()) } else { Err(HostError::MessageBudget) }
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

fn length_word(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn word(value: i32) -> HostResult {
    HostResult(Some([Value::I32(value)]))
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
fn write_from(instance: &mut Program, into: GuestBuffer, bytes: &[u8], offset: u32) -> Status {
    let rest = bytes.get(offset as usize..).unwrap_or_default();
    Ok(into.write(instance.memory_mut(), rest)?)
}

/// A text of at most `bytes_max` bytes, which is looked at before any of them.
fn text(instance: &Program, text: GuestText, bytes_max: usize) -> Result<&str, Stop> {
    let is_unlimited = is_planted(Weakness::TextsReadToTheEnd);
    let read_max = if is_unlimited { usize::MAX } else { bytes_max };
    let text = text.read(instance.memory(), read_max).map_err(|error| match error {
        TextError::Pointer(error) => Stop::from(error),
        TextError::TooLong => HostError::TooLong.into(),
        TextError::NotText => HostError::Invalid.into(),
    })?;
    #[cfg(planted)]
    tenure_hal::planted::watch_text(text.len());
    if text.len() > bytes_max { Err(HostError::TooLong.into()) } else { Ok(text) }
}

fn function_name(instance: &Program, name: GuestText) -> Result<&str, Stop> {
    text(instance, name, FUNCTION_BYTES_MAX)
}

fn read_parameter(instance: &Program, value: Option<GuestBytes>) -> Result<Option<Vec<u8>>, Stop> {
    let Some(value) = value else { return Ok(None) };
    if value.length() > PARAMETER_BYTES_MAX {
        return Err(HostError::TooLong.into());
    }
    Ok(Some(value.read(instance.memory())?.to_vec()))
}
