//! One machine as the kernel sees it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_pipeline::Publication;
use tenure_store::{Deletion, Hidden};
use tenure_vm::{ImageToken, Value};
use tenure_wire::host_call::{GuestBuffer, HostCall, HostError};
use tenure_wire::usage::Usage;
use tenure_wire::{Grants, MachineId, PublicKey};
use zeroize::Zeroizing;

use crate::bucket::Meters;
use crate::calls::CallId;
use crate::code::Extent;
use crate::conduct::{Conduct, Repute};
use crate::fault::Fault;
use crate::lifecycle::{Event, State};
use crate::log::{Denials, LogMeter};
use crate::program::Program;
use crate::record::MachineRecord;
use crate::slot::Slot;
use crate::task::{ReplyTo, Task};
use crate::timer::Timer;

/// A machine in its slot.
pub(crate) struct Machine {
    pub(crate) record: MachineRecord,
    pub(crate) id: MachineId,
    /// Its rights; asked at each use.
    pub(crate) grants: Grants,
    pub(crate) slot: Slot,
    /// The values that it has deleted of the tree that it began with.
    pub(crate) hidden: Hidden,
    /// The mark that its code is known by since it was checked; absent if it is damaged.
    pub(crate) token: Option<CodeToken>,
    pub(crate) state: State,
    /// Whether it is in the trash; its state is [`State::Over`] then.
    pub(crate) is_removed: bool,
    /// Whether its owner stopped it; a lease that is over, or the trash, hides that.
    pub(crate) is_halted: bool,
    pub(crate) queue: VecDeque<Task>,
    /// The task being run, with what it has gathered. Boxed, as what else is seldom there: most
    /// machines rest most of the time.
    pub(crate) current: Option<Box<Running>>,
    /// Memory, globals and stack; absent until the first task and after a fault, and while the
    /// vm runs it.
    pub(crate) instance: Option<Program>,
    /// Whether the board's engine wouldn't run it, so that the vm does.
    pub(crate) engine_refused: bool,
    /// Whether it runs code that was compiled from its image, which was checked.
    pub(crate) runs_compiled: bool,
    /// Since when it waits for the board's engine to be prepared, if it does.
    pub(crate) compiling_since: Option<Instant>,
    /// Since when it is in RAM, if it is.
    pub(crate) resident_since: Instant,
    /// When it had its last turn.
    pub(crate) ran_at: Instant,
    /// Where its instance stands in code flash while it isn't in RAM.
    pub(crate) suspended: Option<Extent>,
    /// The event that it waits for, if [`State::Waiting`].
    pub(crate) wait: Option<Wait>,
    /// The event that it waited for, to be handed over when it runs next.
    pub(crate) woken: Option<Woken>,
    /// A host call that is done in pieces, if it is in the middle of one.
    pub(crate) long_call: Option<Box<LongCall>>,
    /// The result of its last `call`.
    pub(crate) call_result: Vec<u8>,
    /// The price of its faults so far.
    pub(crate) conduct: Conduct,
    /// The fuel it had used when it was started last.
    pub(crate) fuel_at_start: u64,
    /// When a back-off ends.
    pub(crate) restart_at: Option<Instant>,
    /// Fuel used since boot.
    pub(crate) fuel_used: u64,
    /// Its use since that was last taken.
    pub(crate) usage: Usage,
    /// Up to when what it stores has been counted.
    pub(crate) stored_until: Instant,
    /// The rest of its budgets by time.
    pub(crate) meters: Meters,
    /// The rest of its allowance in the log.
    pub(crate) log: LogMeter,
    /// The rights lately denied to it, or to callers of it.
    pub(crate) denials: Option<Box<Denials>>,
    /// The times at which it wants to be called.
    pub(crate) timers: Vec<Timer>,
    /// A higher tier, and for how much more fuel, if it is in a critical section.
    pub(crate) critical: Option<(u16, u64)>,
    /// The fuel that it has left for critical sections.
    pub(crate) critical_fuel: u64,
    /// Since when it has wanted the processor without having it.
    pub(crate) ready_since: Option<Instant>,
    /// The longest it has waited for its turn since boot, or since its last update.
    pub(crate) waited_max: Duration,
    /// Tasks finished since boot, well or badly.
    pub(crate) tasks_done: u64,
    pub(crate) last_fault: Option<Fault>,
    /// What is written down of all that enters it, if that is.
    #[cfg(feature = "journal")]
    pub(crate) journal: Option<Box<crate::journal::Journal>>,
}

/// The mark that checked code is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeToken {
    /// An image.
    Image(ImageToken),
    /// A native binary.
    Native,
}

/// A task being run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) task: Task,
    /// Whether the module's start function has yet to end before the task begins.
    pub(crate) starting: bool,
    /// When it began.
    #[serde(with = "crate::moment")]
    pub(crate) begun: Instant,
    /// The result that `reply` set, or the error that `fail` did.
    pub(crate) reply: Result<Option<Vec<u8>>, HostError>,
    /// Its own words on its failure.
    pub(crate) words: Vec<u8>,
    pub(crate) fuel_used: u64,
}

/// A host call that would take longer than a turn may, and how far it has come. If that gets lost, as in
/// a deep sleep, the call begins again.
pub(crate) struct LongCall {
    pub(crate) call: HostCall,
    pub(crate) progress: Progress,
}

/// How far a long host call has come.
#[derive(Default)]
pub(crate) struct Progress {
    /// How many bytes it has given so far, whether there was room for them or not.
    pub(crate) bytes: usize,
    /// The last name that it gave.
    pub(crate) last_name: Option<String>,
    /// How far it has deleted.
    pub(crate) deletion: Deletion,
    /// How far it has published.
    pub(crate) publication: Option<Publication>,
}

/// The event that a waiting machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wait {
    /// The answer to a call, which `call_result` and a status will tell.
    Call(CallId),
    /// Public keys, to be written to the machine's memory.
    Keys(CallId, GuestBuffer),
    /// A secret, to be written to the machine's memory.
    Secret(CallId, GuestBuffer),
    /// A time.
    Until(#[serde(with = "crate::moment")] Instant),
    /// An event, until that time.
    Event(#[serde(with = "crate::moment::optional")] Option<Instant>),
}

/// The result of a host call that waited. It is kept beside the instance, which may be in flash when the
/// answer comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Woken {
    /// The value that it returns, if it returns anything.
    pub(crate) status: Option<i32>,
    /// The bytes that it writes to the machine's memory, and where.
    pub(crate) copy: Option<(GuestBuffer, Zeroizing<Vec<u8>>)>,
}

impl Woken {
    /// A call that returns `status` and writes nothing.
    pub(crate) fn with_status(status: i32) -> Self {
        Self { status: Some(status), copy: None }
    }

    /// Hands it to the instance that made the call; `None` if that isn't waiting.
    pub(crate) fn hand_to(&self, instance: &mut Program) -> Option<()> {
        let written = match &self.copy {
            Some((into, bytes)) => into.write(instance.memory_mut(), bytes).is_ok(),
            None => true,
        };
        let invalid = HostError::Invalid.code();
        let status = self.status.map(|status| Value::I32(if written { status } else { invalid }));
        instance.finish_host_call(status.as_slice()).then_some(())
    }
}

impl Machine {
    /// `log_bytes_per_second` is what it may write to the log.
    pub(crate) fn new(
        record: MachineRecord,
        id: MachineId,
        slot: Slot,
        now: Instant,
        log_bytes_per_second: u64,
    ) -> Self {
        Self {
            log: LogMeter::new(log_bytes_per_second, now),
            denials: None,
            timers: Vec::new(),
            grants: Grants::new(&record.grants),
            meters: Meters::new(&record.budget, now),
            record,
            id,
            slot,
            hidden: Hidden::default(),
            token: None,
            state: State::Idle,
            is_removed: false,
            is_halted: false,
            queue: VecDeque::new(),
            current: None,
            instance: None,
            engine_refused: false,
            runs_compiled: false,
            compiling_since: None,
            resident_since: now,
            ran_at: now,
            suspended: None,
            wait: None,
            woken: None,
            long_call: None,
            call_result: Vec::new(),
            conduct: Conduct::default(),
            fuel_at_start: 0,
            restart_at: None,
            fuel_used: 0,
            usage: Usage::default(),
            stored_until: now,
            critical: None,
            critical_fuel: 0,
            ready_since: None,
            waited_max: Duration::ZERO,
            tasks_done: 0,
            last_fault: None,
            #[cfg(feature = "journal")]
            journal: None,
        }
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        self.record.public_key
    }

    /// Moves along the lifecycle. An event that can't happen in this state changes nothing.
    pub(crate) fn step(&mut self, event: Event) {
        let next = self.state.after(event);
        debug_assert!(next.is_some(), "{event:?} in {:?}", self.state);
        self.state = next.unwrap_or(self.state);
    }

    /// Whether it is banned, its lease is over, or its owner stopped it: nobody calls it, and it starts
    /// nothing.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, State::Banned | State::Over | State::Halted)
    }

    /// Notes that its queue has become empty, if it has and nothing is under way.
    pub(crate) fn settle_queue(&mut self) {
        if self.state == State::Ready && self.current.is_none() && self.queue.is_empty() {
            self.step(Event::Drained);
        }
    }

    /// Queues its start ahead of everything else.
    pub(crate) fn enqueue_first(&mut self, task: Task) {
        self.queue.reserve_exact(1);
        self.queue.push_front(task);
        if self.state == State::Idle {
            self.step(Event::Enqueued);
        }
    }

    /// Lets it begin anew once its lease went on or it was fetched back: a ban and its owner's stop stay.
    pub(crate) fn renew(&mut self) {
        self.step(Event::Renewed);
        self.stay_down();
    }

    /// How far the host call under way has come.
    pub(crate) fn take_progress(&mut self) -> Progress {
        let under_way = self.long_call.take();
        under_way.map_or_else(Progress::default, |under_way| under_way.progress)
    }

    /// Puts bytes that were written to flash for it down to its budget and its bill.
    pub(crate) fn charge_flash(&mut self, now: Instant, bytes: usize) {
        self.meters.flash.charge(now, bytes as u64);
        self.usage.flash_writes += 1;
        self.usage.flash_bytes += bytes as u64;
    }

    /// The linear memory that it has committed, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.instance.as_ref().map_or(0, |program| program.memory().len())
    }

    /// Puts the fuel of a turn down to its bill, with the memory in use after it.
    pub(crate) fn count_turn(&mut self, fuel: u64) {
        self.usage.fuel += fuel;
        let memory = self.memory_bytes() as u64;
        self.usage.memory_bytes_peak = self.usage.memory_bytes_peak.max(memory);
    }

    /// Whether it stands in flash and not in RAM.
    pub(crate) fn is_swapped(&self) -> bool {
        self.suspended.is_some() && self.instance.is_none()
    }

    /// Adds a task at the end of the queue, whatever its length.
    pub(crate) fn enqueue(&mut self, task: Task) {
        // Room for four would be kept for good, and most machines never have two waiting.
        self.queue.reserve_exact(1);
        self.queue.push_back(task);
        self.step(Event::Enqueued);
    }

    /// How many tasks wait, but for those that handle events: they have queues of their own.
    pub(crate) fn tasks_waiting(&self) -> usize {
        self.queue.iter().filter(|task| !task.is_event).count()
    }

    /// Takes a task out of the queue for whose result nobody waits any more, or lets whoever waits
    /// for the one being run go; gives whom to tell.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Option<ReplyTo> {
        if let Some(position) = self.queue.iter().position(|task| task.is_overdue(now)) {
            let task = self.queue.remove(position)?;
            self.settle_queue();
            return Some(task.reply_to);
        }
        let task = &mut self.current.as_mut()?.task;
        if !task.is_overdue(now) {
            return None;
        }
        task.deadline = None;
        Some(core::mem::replace(&mut task.reply_to, ReplyTo::Nobody))
    }

    /// When it starts again, if it is stopped and whoever waits for the task won't wait for that.
    pub(crate) fn restarts_too_late_for(&self, task: &Task) -> Option<Instant> {
        let restart_at = self.restart_at.filter(|_| self.state == State::BackedOff)?;
        task.deadline.is_some_and(|deadline| deadline <= restart_at).then_some(restart_at)
    }

    /// Takes out the tasks that wait for it for nothing, now that it is stopped.
    pub(crate) fn take_hopeless(&mut self) -> VecDeque<Task> {
        let hopeless = |machine: &Self, task: &Task| {
            machine.state == State::Banned || machine.restarts_too_late_for(task).is_some()
        };
        let (taken, kept) =
            core::mem::take(&mut self.queue).into_iter().partition(|task| hopeless(self, task));
        self.queue = kept;
        taken
    }

    /// The task that it runs, and those that wait.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.current.iter().map(|running| &running.task).chain(&self.queue)
    }

    /// When the first of those who wait for its tasks stops waiting.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.tasks().filter_map(|task| task.deadline).min()
    }

    /// Lets a waiting machine go on at its next turn, with what its host call gives.
    pub(crate) fn wake(&mut self, woken: Woken) {
        if self.wait.take().is_some() {
            self.woken = Some(woken);
            self.step(Event::Woken);
        }
    }

    /// Stops it until its back-off is over, or for good; memory, stack and globals are gone, queue and
    /// tree stay. `ran` is how long it has run since it was started.
    pub(crate) fn back_off(&mut self, now: Instant, ran: Duration, fault: Fault) {
        self.restart_at = self.conduct.fault(now, ran);
        self.fuel_at_start = self.fuel_used;
        self.clear();
        self.last_fault = Some(fault);
        self.step(Event::Faulted);
        if self.conduct.repute() == Repute::Banned {
            self.step(Event::Banned);
        }
    }

    /// Its owner stops it: its timers go.
    pub(crate) fn halt(&mut self) {
        self.is_halted = true;
        self.timers.clear();
    }

    /// Keeps a machine that begins anew from running, if its owner or its conduct says so.
    pub(crate) fn stay_down(&mut self) {
        if self.is_halted {
            self.state = State::Halted;
        } else if self.conduct.repute() == Repute::Banned {
            self.state = State::Banned;
        }
    }

    /// Stops it for good, as far as it knows: all but its record and what it used goes. Gives the task
    /// under way, and those that wait.
    pub(crate) fn end(&mut self, event: Event) -> (Option<Task>, VecDeque<Task>) {
        self.clear();
        self.restart_at = None;
        self.step(event);
        (self.current.take().map(|running| running.task), core::mem::take(&mut self.queue))
    }

    /// Forgets what it was in the middle of.
    fn clear(&mut self) {
        self.instance = None;
        self.wait = None;
        self.woken = None;
        self.long_call = None;
        self.ready_since = None;
        self.critical = None;
        self.call_result.clear();
    }

    /// How long the parameters of its tasks are together.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.tasks().filter_map(|task| task.parameter.as_ref()).map(Vec::len).sum()
    }

    /// The memory that its budget promises it, in bytes.
    pub(crate) fn memory_promised(&self) -> u64 {
        let budget = self.record.budget;
        u64::from(budget.memory_bytes) + u64::from(budget.stack_bytes)
    }

    /// When it wants the kernel's attention by itself.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        match (self.state, self.wait) {
            (State::BackedOff, _) => self.restart_at,
            (State::Waiting, Some(Wait::Until(at))) => Some(at),
            (State::Waiting, Some(Wait::Event(until))) => until,
            _ => None,
        }
    }
}
