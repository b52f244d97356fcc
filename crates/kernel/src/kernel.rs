//! The kernel: its machines by slot, boot, and the tasks that come from outside.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Entropy, Flash, Instant, Retained, UnixTime};
use tenure_pipeline::Pipeline;
use tenure_store::{ReadError, Store, TreeId};
use tenure_vm::{Image, Wall};
use tenure_wire::limits::{FUNCTION_BYTES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::{CodeKind, MachineId, Name, PublicKey, Share};

use crate::calls::Calls;
use crate::code::CodeRegion;
use crate::config::Config;
use crate::effect::{Effect, LogLevel};
use crate::events::Handler;
use crate::lifecycle::{Event, State};
use crate::machine::{CodeToken, Fault, FaultKind, Machine};
use crate::native::NativeBinary;
use crate::policy::Policy;
use crate::program::{Engine, callable};
use crate::record::MachineRecord;
use crate::run::LastTurn;
use crate::sealing::{Sealer, read_record};
use crate::task::{IncomingCall, ReplyTo, Task, Ticket};

/// The function that runs when a machine starts.
pub(crate) const ENTRY: &str = "entry";
/// Where the kernel keeps its own things.
pub const KERNEL_TREE: TreeId = TreeId(0);
/// The path in the kernel's tree below which machines are recorded, one a slot.
pub(crate) const MACHINES_PATH: &str = "machines";
/// The digest of its package that stands before a native binary in code flash.
const DIGEST_BYTES: usize = 32;
/// What the kernel is told of the world for the length of one call.
pub struct World<'a> {
    /// The time since boot.
    pub now: Instant,
    /// The wall clock, if known.
    pub unix_time: Option<UnixTime>,
    /// Randomness for machines.
    pub entropy: &'a mut dyn Entropy,
}

/// What [`Kernel::run`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// A machine had a slice; there may be more to do at once.
    Slice,
    /// Nothing is ready; until this instant nothing will be unless something comes from outside.
    Idle {
        /// When, if ever, the kernel has something to do by itself.
        until: Option<Instant>,
    },
}

/// Machines, their tasks, and what they keep.
pub struct Kernel<F> {
    pub(crate) config: Config,
    pub(crate) store: Store<F>,
    pub(crate) sealer: Option<Box<dyn Sealer>>,
    pub(crate) code: CodeRegion<F>,
    pub(crate) machines: Vec<Option<Box<Machine>>>,
    pub(crate) calls: Calls,
    pub(crate) events: Pipeline<Handler>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) logs_dropped: u64,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) last_turn: Option<LastTurn>,
    /// A time before which no timer is due, as far as that was found out since one was set.
    pub(crate) no_timer_before: Option<Instant>,
    /// When it began, if nothing but it has happened since.
    pub(crate) turn_began: Option<Instant>,
    /// Whether the turn under way was nothing but the vm's so far.
    pub(crate) turn_is_plain: bool,
    /// What the host call under way costs beside what was known before.
    pub(crate) extra_cost: u64,
    /// The time of day at which the device booted, in microseconds since 1970, as far as it was told.
    pub(crate) booted_unix_us: Option<u64>,
    /// Until when nobody is swapped, because the flash failed.
    pub(crate) swap_again_at: Instant,
    pub(crate) engine: Option<Box<dyn Engine>>,
    /// Where it says who runs.
    pub(crate) retained: Option<Box<dyn Retained>>,
    /// The device's speed, as far as it is known.
    pub(crate) fuel_per_second: u64,
    pub(crate) wall: Option<Box<dyn Wall>>,
}

impl<F: Flash> Kernel<F> {
    /// Takes up the machines that `store` has a record of; each one's `entry` is queued.
    ///
    /// A record that can't be read, or whose image is damaged, costs that machine alone: it is
    /// reported in the log and left out.
    ///
    /// # Errors
    /// The store's, if its own tree can't be listed.
    pub fn boot(
        store: Store<F>,
        code: F,
        config: Config,
        now: Instant,
        id_of: impl Fn(&PublicKey) -> MachineId,
    ) -> Result<Self, ReadError> {
        let mut kernel = Self {
            machines: Vec::new(),
            store,
            sealer: None,
            code: CodeRegion::new(code, config.swap_bytes_max),
            calls: Calls::default(),
            events: Pipeline::new(config.events),
            effects: VecDeque::new(),
            logs_dropped: 0,
            policy: config.policy.build(config.slice_fuel, config.fuel_per_second),
            last_turn: None,
            no_timer_before: None,
            turn_began: None,
            turn_is_plain: false,
            extra_cost: 0,
            booted_unix_us: None,
            swap_again_at: Instant::default(),
            engine: None,
            retained: None,
            fuel_per_second: config.fuel_per_second.max(1),
            wall: None,
            config,
        };
        for child in kernel.store.children(KERNEL_TREE, MACHINES_PATH)? {
            let Ok(slot) = child.parse::<usize>() else { continue };
            let Some(record) = read_record(&mut kernel.store, slot) else {
                kernel.log_unreadable(slot, now);
                continue;
            };
            kernel.code.claim_all(record.extents());
            let id = id_of(&record.public_key);
            let is_removed = kernel.is_marked_as_trash(slot)?;
            if !is_removed {
                kernel.admit_at_boot(slot, &record, now);
            }
            let log_rate = kernel.config.log_bytes_per_second;
            let machine = Machine::new(record, id, tree_of(slot), now, log_rate);
            let meters = machine.meters.at_boot();
            kernel.occupy(slot, Machine { meters, is_removed, ..machine });
            kernel.recall_hidden(slot)?;
            kernel.recall_timers(slot, now);
            kernel.recall_conduct(slot, now);
            if let Some(machine) = kernel.machine_mut(slot).filter(|machine| machine.is_removed) {
                machine.step(Event::Ended);
            }
            kernel.check_image(slot, now);
        }
        Ok(kernel)
    }

    /// Says, after a boot, how many bytes a machine wrote before it in the period under way: that much
    /// is missing from what it may write at once, and no more than all but a sixteenth.
    pub fn recall_flash_use(&mut self, id: MachineId, bytes: u64) {
        let slot = self.slot_of_id(id);
        if let Some(machine) = slot.and_then(|slot| self.machine_mut(slot)) {
            machine.meters.recall_flash(bytes);
        }
    }

    /// Code flash, for whoever writes images to it.
    pub fn code(&mut self) -> &mut CodeRegion<F> {
        &mut self.code
    }

    /// The store, for the node's own tree.
    pub fn store(&mut self) -> &mut Store<F> {
        &mut self.store
    }

    /// Lends the kernel an engine; before, the vm runs what it can.
    pub fn use_engine(&mut self, engine: Box<dyn Engine>) {
        self.engine = Some(engine);
    }

    /// Lets the vm run machines behind the board's memory protection from now on.
    pub fn use_wall(&mut self, wall: Box<dyn Wall>) {
        self.wall = Some(wall);
    }

    /// What the engine that the board lends runs, if it lends one.
    pub fn engine_kind(&self) -> Option<CodeKind> {
        self.engine.as_ref().map(|engine| engine.kind())
    }

    /// Ends it, and gives its flash back: the store's and code's.
    pub fn into_flash(self) -> (F, F) {
        (self.store.into_flash(), self.code.into_flash())
    }

    /// What the kernel was configured with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Queues a call from outside. At its deadline, or after [`Config::deadline_max`], it is
    /// answered by [`HostError::Deadline`](tenure_wire::host_call::HostError::Deadline) at the latest, and doesn't begin any more.
    ///
    /// # Errors
    /// As [`DeliverError`] says; nothing is queued then.
    pub fn deliver(
        &mut self,
        now: Instant,
        call: IncomingCall,
        ticket: Ticket,
    ) -> Result<(), DeliverError> {
        let slot = self.slot_of_id(call.to).ok_or(DeliverError::NoSuchMachine)?;
        self.admit(now, slot, &call)?;
        let task = Task {
            caller: call.caller,
            function: call.function,
            parameter: call.parameter,
            reply_to: ReplyTo::Outside(ticket),
            deadline: Some(call.deadline.min(now + self.config.deadline_max)),
            is_event: false,
            callback_of: None,
        };
        self.submit(now, slot, task, Access::Others)
    }

    /// The next thing the node has to do for the kernel.
    pub fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Queues a task if its function may be called and the queue has room.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        slot: usize,
        task: Task,
        access: Access,
    ) -> Result<(), DeliverError> {
        if task.function.len() > FUNCTION_BYTES_MAX
            || task.parameter.as_ref().is_some_and(|bytes| bytes.len() > PARAMETER_BYTES_MAX)
        {
            return Err(DeliverError::TooLong);
        }
        let busy = self.calls.count_of(slot);
        let machine = self.machine_mut(slot).ok_or(DeliverError::NoSuchMachine)?;
        match machine.state {
            State::Banned => return Err(DeliverError::Banned),
            State::Over => return Err(DeliverError::LeaseOver),
            _ => {}
        }
        if let Some(restart_at) = machine.restarts_too_late_for(&task) {
            return Err(DeliverError::Stopped { restarts_in: restart_at.since(now) });
        }
        let offered = task.function != ENTRY && machine.record.exports.contains(&task.function);
        if access == Access::Others && !offered {
            return Err(DeliverError::NoSuchFunction);
        }
        if machine.tasks_waiting() + busy >= usize::from(machine.record.budget.queue_length) {
            return Err(DeliverError::Busy);
        }
        if !self.has_room_for(slot, task.parameter.as_ref().map_or(0, Vec::len)) {
            return Err(DeliverError::Busy);
        }
        if access == Access::Own && !self.has_function(slot, &task.function) {
            return Err(DeliverError::NoSuchFunction);
        }
        self.no_timer_before = None;
        if let Some(machine) = self.machine_mut(slot) {
            machine.enqueue(task);
        }
        Ok(())
    }

    /// Whether the machine in `slot` may hold `bytes` more bytes of parameters: what it holds must
    /// not be more than what is left (dynamic thresholds, Choudhury and Hahne 1998).
    pub(crate) fn has_room_for(&self, slot: usize, bytes: usize) -> bool {
        let of_tasks = |slot| self.machine(slot).map_or(0, Machine::parameter_bytes);
        let held_by = |slot| of_tasks(slot) + self.calls.parameter_bytes_of(slot);
        let taken: usize = (0..self.machines.len()).map(held_by).sum();
        bytes == 0 || held_by(slot) + bytes <= self.config.parameter_bytes_max.saturating_sub(taken)
    }

    pub(crate) fn machine(&self, slot: usize) -> Option<&Machine> {
        self.machines.get(slot)?.as_deref()
    }

    pub(crate) fn machine_mut(&mut self, slot: usize) -> Option<&mut Machine> {
        self.machines.get_mut(slot)?.as_deref_mut()
    }

    pub(crate) fn slot_of_id(&self, id: MachineId) -> Option<usize> {
        self.slot_where(|machine| machine.id == id)
    }

    pub(crate) fn slot_of_key(&self, key: &PublicKey) -> Option<usize> {
        self.slot_where(|machine| !machine.is_removed && machine.public_key() == *key)
    }

    pub(crate) fn slot_of_name(&self, name: &Name) -> Option<usize> {
        self.slot_where(|machine| !machine.is_removed && machine.record.name == *name)
    }

    /// Whether the image of `slot` offers `function` in the form that tasks have: no parameters,
    /// no results.
    pub(crate) fn has_function(&self, slot: usize, function: &str) -> bool {
        match self.image(slot) {
            Some(image) => callable(&image, function).is_some(),
            None => self.binary(slot).is_some_and(|binary| binary.function(function).is_some()),
        }
    }

    /// The image of `slot`, if it has one, which was checked when the machine took its slot.
    pub(crate) fn image(&self, slot: usize) -> Option<Image<'_>> {
        let machine = self.machine(slot)?;
        let Some(CodeToken::Image(token)) = &machine.token else { return None };
        Image::reopen(self.code.view(machine.record.image).ok()?, token).ok()
    }

    /// The native binary of `slot`, if it has one, which was checked when the machine took its slot.
    pub(crate) fn binary(&self, slot: usize) -> Option<NativeBinary<'_>> {
        let machine = self.machine(slot)?;
        let Some(CodeToken::Native) = machine.token else { return None };
        let bytes = self.code.view(machine.record.image).ok()?;
        NativeBinary::reopen(bytes.get(DIGEST_BYTES..)?).ok()
    }

    fn slot_where(&self, wanted: impl Fn(&Machine) -> bool) -> Option<usize> {
        self.machines.iter().position(|slot| slot.as_deref().is_some_and(&wanted))
    }

    pub(crate) fn occupy(&mut self, slot: usize, machine: Machine) {
        if self.machines.len() <= slot {
            self.machines.resize_with(slot + 1, || None);
        }
        self.machines[slot] = Some(Box::new(machine));
        self.no_timer_before = None;
    }

    /// Checks the code of `slot` once, and queues its `entry`; a damaged one stops the machine.
    pub(crate) fn check_image(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine(slot) else { return };
        let MachineRecord { code, image, package, .. } = &machine.record;
        let view = self.code.view(*image).ok();
        let whole = self.base(slot).is_some();
        let token = view.filter(|_| whole).and_then(|bytes| match code {
            CodeKind::WebAssembly => {
                let image = Image::parse_bound(bytes, &package.0).ok()?;
                Some(CodeToken::Image(image.token()))
            }
            kind => {
                let binary = NativeBinary::parse(bytes.strip_prefix(&package.0)?).ok()?;
                (binary.kind() == *kind).then_some(CodeToken::Native)
            }
        });
        if let Some(machine) = self.machine_mut(slot) {
            machine.token = token;
        }
        match token {
            Some(_) => self.enqueue_entry(slot),
            None if self
                .machine(slot)
                .is_some_and(|machine| matches!(machine.state, State::Banned | State::Over)) => {}
            None => self.fault(slot, now, Fault::of(FaultKind::Image)),
        }
    }

    /// Queues `entry` ahead of everything else, if the machine has one.
    pub(crate) fn enqueue_entry(&mut self, slot: usize) {
        if !self.has_function(slot, ENTRY) {
            return;
        }
        if let Some(machine) = self.machine_mut(slot)
            && !matches!(machine.state, State::Banned | State::Over)
        {
            machine.queue.reserve_exact(1);
            machine.queue.push_front(Task::of_kernel(ENTRY.to_string(), None));
            if machine.state == State::Idle {
                machine.step(Event::Enqueued);
            }
        }
    }

    /// Lets the policy know of a machine. One whose reservation doesn't fit, because the device has
    /// another policy now, runs without.
    fn admit_at_boot(&mut self, slot: usize, record: &MachineRecord, now: Instant) {
        if self.policy.admit(slot, &record.share).is_err() {
            let unreserved = Share { period_ms: 0, bandwidth_permille: 0, ..record.share };
            let _ = self.policy.admit(slot, &unreserved);
            let message = "its reservation doesn't fit beside the others': it runs without";
            self.log(now, record.name.clone(), LogLevel::Error, message.to_string());
        }
    }

    /// Says of whom nothing is known but its slot that it is left out.
    fn log_unreadable(&mut self, slot: usize, now: Instant) {
        let Some(device) = self.config.device.clone().or_else(|| "device".parse().ok()) else {
            return;
        };
        let message = alloc::format!("the record of machine {slot} can't be read: it is left out");
        self.log(now, device, LogLevel::Fault, message);
    }
}

/// Who asks for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Another machine: only what the package exports, and never the start.
    Others,
    /// The machine itself: any function its code offers.
    Own,
}

pub(crate) fn tree_of(slot: usize) -> TreeId {
    TreeId(slot as u16 + 1)
}

pub(crate) fn record_path(slot: usize) -> String {
    alloc::format!("{MACHINES_PATH}.{slot}")
}

/// Why a call was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliverError {
    /// No machine with that id here.
    NoSuchMachine,
    /// The machine doesn't offer that function.
    NoSuchFunction,
    /// The machine doesn't let this caller call it.
    Denied,
    /// The machine is banned and serves nobody.
    Banned,
    /// The machine was stopped for a fault and starts again after the call's deadline.
    Stopped {
        /// How long until then.
        restarts_in: Duration,
    },
    /// Its lease is over.
    LeaseOver,
    /// The machine's queue is full.
    Busy,
    /// Function name or parameter are over the limit.
    TooLong,
}
