//! Deep sleep: everything that a kernel knows beside what its store keeps, written down and taken up.
//!
//! Instances go to code flash as those of machines that don't fit into RAM do (see
//! [`suspended`](crate::suspended)); what is written down here says where each stands, and holds the
//! rest: queues, timers, calls under way, events. A machine goes on where it was, in the middle of a
//! function or of a call if need be, and notices nothing but that time has passed.
//!
//! What was written down must be taken up once at most, or machines would live through the same time
//! twice; whoever keeps it sees to that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_pipeline::{Pipeline, State as PipelineState, Subscriber};
use tenure_wire::{Digest, MachineId};

use crate::bucket::Meters;
use crate::calls::{CallId, Calls};
use crate::code::{CodeError, Extent};
use crate::conduct::Conduct;
use crate::events::Handler;
use crate::kernel::Kernel;
use crate::lifecycle::State;
use crate::machine::{Machine, Running, Wait, Woken};
use crate::task::{ReplyTo, Task, Ticket};
use crate::timer::Timer;

/// The function that is called when a device is about to sleep for its duty cycle.
const ON_SLEEP: &str = "on_sleep";
/// The function that is called when a device has woken from deep sleep.
const ON_WAKE: &str = "on_wake";

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
    slot: u16,
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

impl<F: Flash> Kernel<F> {
    /// Suspends all machines, or writes down where they stand, and gives everything that is to be kept beside them. Until the device
    /// is off, the kernel can go on as if nothing had been.
    ///
    /// # Errors
    /// As [`SleepError`] says; nothing is lost.
    pub fn fall_asleep(&mut self) -> Result<Vec<u8>, SleepError> {
        self.write_down()?;
        self.suspend_all().map_err(SleepError::Code)?;
        let occupied = self.machines.iter_mut().enumerate();
        let machines = occupied
            .filter_map(|(slot, machine)| Some(AsleepMachine::of(slot, machine.as_mut()?)))
            .collect();
        let calls = core::mem::take(&mut self.calls);
        let asleep = Asleep { machines, calls, events: self.events.state().clone() };
        let bytes = postcard::to_allocvec(&asleep).map_err(|_| SleepError::Memory);
        self.calls = asleep.calls;
        for asleep in asleep.machines {
            if let Some(machine) = self.machine_mut(asleep.slot.into()) {
                asleep.give_back(machine);
            }
        }
        bytes
    }

    /// Takes up what [`Kernel::fall_asleep`] gave, right after boot. `under_way` are the calls off
    /// the device that are still being carried; those that nobody carries any more are sent again,
    /// which they never were. A machine that isn't the same any more starts afresh.
    ///
    /// # Errors
    /// [`NotAsleep`]; all machines have started afresh then.
    pub fn wake_up(
        &mut self,
        bytes: &[u8],
        now: Instant,
        under_way: &[CallId],
    ) -> Result<(), NotAsleep> {
        let Asleep { machines, calls, events } =
            postcard::from_bytes(bytes).map_err(|_| NotAsleep)?;
        self.calls = calls;
        self.no_timer_before = None;
        self.events = Pipeline::with_state(self.config.events, events);
        let mut awake = Vec::new();
        for asleep in machines {
            let slot = usize::from(asleep.slot);
            let known = self.machine_mut(slot);
            let Some(machine) = known.filter(|machine| asleep.is_of(machine)) else { continue };
            let instance = asleep.instance;
            asleep.wake(machine);
            if let Some(extent) = instance {
                self.code.claim(extent);
            }
            awake.push(slot);
        }
        for slot in 0..self.machines.len().max(self.calls.slots()) {
            if !awake.contains(&slot) {
                self.calls.remove_all_of(slot);
                self.events.remove(Subscriber(slot as u16));
            }
        }
        self.send_again(now, under_way);
        Ok(())
    }

    /// Tells all machines that care, by a call of their `on_sleep`, that the device is about to sleep.
    pub fn announce_sleep(&mut self) {
        self.call_all(ON_SLEEP, None);
    }

    /// Tells all machines that care, by a call of their `on_wake` with the milliseconds for which it
    /// slept, that the device has woken.
    pub fn announce_wake(&mut self, slept: Duration) {
        self.call_all(ON_WAKE, Some(slept.as_millis().to_string()));
    }

    /// Whether a machine has something to do at once.
    pub fn is_busy(&self) -> bool {
        self.machines.iter().flatten().any(|machine| machine.state == State::Ready)
    }

    /// The calls from outside that machines have in their queues or serve.
    pub fn serving(&self) -> impl Iterator<Item = Ticket> {
        let tasks = self.machines.iter().flatten().flat_map(|machine| machine.tasks());
        tasks.filter_map(|task| match task.reply_to {
            ReplyTo::Outside(ticket) => Some(ticket),
            _ => None,
        })
    }

    fn call_all(&mut self, function: &str, parameter: Option<String>) {
        for slot in 0..self.machines.len() {
            if !self.has_function(slot, function) {
                continue;
            }
            if let Some(machine) = self.machine_mut(slot)
                && !matches!(machine.state, State::Banned | State::Over)
                && !machine.queue.iter().any(|task| task.function == function)
            {
                let parameter = parameter.clone().map(String::into_bytes);
                machine.enqueue(Task::of_kernel(function.to_string(), parameter));
            }
        }
    }

    /// Sends what waited for something that the sleep has ended, such as the directory's answer.
    fn send_again(&mut self, now: Instant, under_way: &[CallId]) {
        let served_here: Vec<CallId> = self
            .machines
            .iter()
            .flatten()
            .flat_map(|machine| machine.tasks())
            .filter_map(|task| match task.reply_to {
                ReplyTo::Call(id) => Some(id),
                _ => None,
            })
            .collect();
        for id in self.calls.sent() {
            if !served_here.contains(&id) && !under_way.contains(&id) {
                self.dispatch(now, id);
            }
        }
    }
}

impl AsleepMachine {
    /// Takes what there is of `machine`, to be given back.
    fn of(slot: usize, machine: &mut Machine) -> Self {
        Self {
            slot: slot as u16,
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

/// What was to be taken up is no sleeping kernel of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAsleep;
