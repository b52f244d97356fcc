//! Deep sleep: everything that a kernel knows beside what its store keeps, written down and taken up.
//!
//! Instances go to code flash as those of machines that don't fit into RAM do (see
//! [`residence`](crate::residence)); what is written down here says where each stands, and holds the
//! rest: queues, timers, calls under way, events. A machine goes on where it was, in the middle of a
//! function or of a call if need be, and notices nothing but that time has passed.
//!
//! A written state must be taken up once at most, or machines would live through the same time
//! twice; whoever keeps it sees to that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_pipeline::State as PipelineState;
#[cfg(feature = "reach")]
use tenure_wire::NoResult;
use tenure_wire::{Digest, MachineId};

use crate::bucket::Meters;
#[cfg(feature = "reach")]
use crate::calls::Request;
use crate::calls::{CallId, Calls};
use crate::code::{CodeError, Extent};
use crate::conduct::Conduct;
use crate::events::Handler;
use crate::lifecycle::State;
use crate::machine::{Machine, Running, Wait, Woken};
use crate::parts::Parts;
use crate::policy::Slots;
use crate::residence::NotWrittenDown;
use crate::slot::Slot;
use crate::task::{ReplyTo, Task};
use crate::timer::Timer;

/// The function that is called when a device is about to sleep for its duty cycle.
pub(crate) const ON_SLEEP: &str = "on_sleep";
/// The function that is called when a device has woken from deep sleep.
pub(crate) const ON_WAKE: &str = "on_wake";

/// A kernel, written down.
#[derive(Serialize, Deserialize)]
struct Asleep {
    machines: Vec<AsleepMachine>,
    calls: Calls,
    events: PipelineState<Handler>,
}

/// A machine, as far as the store doesn't keep it.
#[derive(Serialize, Deserialize)]
struct AsleepMachine {
    slot: Slot,
    id: MachineId,
    package: Digest,
    placement: u64,
    instance: Option<Extent>,
    state: State,
    queue: VecDeque<Task>,
    current: Option<Box<Running>>,
    wait: Option<Wait>,
    woken: Option<Woken>,
    call_result: Vec<u8>,
    conduct: Conduct,
    meters: Meters,
    #[serde(with = "crate::moment::optional")]
    restart_at: Option<Instant>,
    timers: Vec<Timer>,
    fuel_used: u64,
    tasks_done: u64,
}

impl<F: Flash> Parts<F> {
    /// Suspends all machines, or writes down where they stand, and returns everything that is to be kept
    /// beside them. Until the device is off, the kernel can go on as if nothing had been.
    pub(crate) fn fall_asleep(&mut self) -> Result<Vec<u8>, SleepError> {
        // Nobody comes in, so that the time doesn't matter.
        let now = Instant::default();
        for slot in self.machines.slots() {
            let written = self.residence(now).write_down(slot);
            written.map_err(|error| self.not_asleep(slot, error))?;
        }
        self.residence(now).suspend_all().map_err(SleepError::Code)?;
        let machines = self.machines.iter_mut().map(AsleepMachine::of).collect();
        let calls = core::mem::take(&mut self.calls);
        let asleep = Asleep { machines, calls, events: self.events.state().clone() };
        let bytes = postcard::to_allocvec(&asleep).map_err(|_| SleepError::Memory);
        self.calls = asleep.calls;
        for asleep in asleep.machines {
            if let Some(machine) = self.machines.known_mut(asleep.slot) {
                asleep.give_back(machine);
            }
        }
        bytes
    }

    /// Takes up what [`Parts::fall_asleep`] returned, right after boot.
    pub(crate) fn wake_up(
        &mut self,
        bytes: &[u8],
        now: Instant,
        under_way: &[CallId],
    ) -> Result<(), NotAsleep> {
        let Asleep { machines, calls, events } =
            postcard::from_bytes(bytes).map_err(|_| NotAsleep)?;
        self.calls = calls;
        self.clock.timers_changed();
        let mut awake = Slots::default();
        for asleep in machines {
            // A machine that isn't the same any more starts afresh.
            let known = self.machines.get_mut(asleep.slot);
            let Some(machine) = known.filter(|machine| asleep.is_of(machine)) else { continue };
            awake.insert(machine.slot.index());
            if let Some(extent) = asleep.instance {
                self.storage.code.claim(extent);
            }
            asleep.wake(machine);
        }
        self.calls.keep_only(awake);
        self.events.wake_up(self.config.events, events, |slot| awake.contains(slot.index()));
        self.send_again(now, under_way);
        Ok(())
    }

    /// Queues a call of `function` for each machine that has it and may run.
    pub(crate) fn call_all(&mut self, function: &str, parameter: Option<&str>) {
        for machine in self.machines.iter_mut() {
            if self.storage.has_function(machine, function)
                && !machine.is_stopped()
                && !machine.queue.iter().any(|task| task.function == function)
            {
                let parameter = parameter.map(|text| text.as_bytes().to_vec());
                machine.enqueue(Task::of_kernel(function.to_string(), parameter));
            }
        }
    }

    fn not_asleep(&self, slot: Slot, error: NotWrittenDown) -> SleepError {
        match (error, self.machines.known(slot)) {
            (NotWrittenDown::Code(error), _) => SleepError::Code(error),
            (NotWrittenDown::Engine, Some(machine)) => {
                SleepError::Engine { machine: machine.record.name.clone() }
            }
            (NotWrittenDown::Engine | NotWrittenDown::Memory, _) => SleepError::Memory,
        }
    }

    /// Sends what waited for something that the sleep has ended, such as the directory's answer.
    fn send_again(&mut self, now: Instant, under_way: &[CallId]) {
        let tasks = self.machines.iter().flat_map(Machine::tasks);
        let served_here: Vec<CallId> = tasks
            .filter_map(|task| match task.reply_to {
                ReplyTo::Call(id) => Some(id),
                _ => None,
            })
            .collect();
        for id in self.calls.sent() {
            if served_here.contains(&id) || under_way.contains(&id) {
                continue;
            }
            match self.calls.get(id).map(|call| &call.request) {
                // The server may have done it before the sleep.
                #[cfg(feature = "reach")]
                Some(Request::Visit(ask)) if !ask.is_safe() => {
                    self.exchange(now).complete(id, Err(NoResult::OutcomeUnknown));
                }
                _ => self.exchange(now).dispatch(id),
            }
        }
    }
}

impl AsleepMachine {
    /// Takes what there is of `machine`, to be given back.
    fn of(machine: &mut Machine) -> Self {
        Self {
            slot: machine.slot,
            id: machine.id,
            package: machine.record.package,
            placement: machine.record.placement,
            instance: machine.suspended,
            state: machine.state,
            queue: core::mem::take(&mut machine.queue),
            current: machine.current.take(),
            wait: machine.wait,
            woken: machine.woken.take(),
            call_result: core::mem::take(&mut machine.call_result),
            conduct: machine.conduct,
            meters: machine.meters,
            restart_at: machine.restart_at,
            timers: machine.timers.clone(),
            fuel_used: machine.fuel_used,
            tasks_done: machine.tasks_done,
        }
    }

    fn give_back(self, machine: &mut Machine) {
        machine.queue = self.queue;
        machine.current = self.current;
        machine.woken = self.woken;
        machine.call_result = self.call_result;
    }

    fn is_of(&self, machine: &Machine) -> bool {
        (self.id, self.package, self.placement)
            == (machine.id, machine.record.package, machine.record.placement)
            && machine.token.is_some()
    }

    /// Makes `machine`, which has just been made, what it was.
    fn wake(self, machine: &mut Machine) {
        machine.suspended = self.instance;
        machine.state = self.state;
        machine.wait = self.wait;
        machine.conduct = self.conduct;
        machine.meters = self.meters;
        machine.restart_at = self.restart_at;
        machine.timers.clone_from(&self.timers);
        machine.fuel_used = self.fuel_used;
        machine.tasks_done = self.tasks_done;
        self.give_back(machine);
    }
}

/// Why a kernel doesn't fall asleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SleepError {
    /// Code flash has no room for what machines have in RAM, or failed.
    Code(CodeError),
    /// An engine runs that machine and can't write down where it stands.
    Engine {
        /// Which.
        machine: tenure_wire::Name,
    },
    /// There is no memory to write everything down.
    Memory,
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(error) => write!(f, "machines can't be suspended: {error}"),
            Self::Engine { machine } => {
                write!(f, "`{machine}` runs at native speed, which can't be suspended")
            }
            Self::Memory => f.write_str("there is no memory to write everything down"),
        }
    }
}

impl core::error::Error for SleepError {}

/// The bytes to be taken up are no sleeping kernel of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAsleep;
