//! The kernel's face to the node: boot, install, remove, deliver, look.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tenure_hal::{Entropy, Flash, Instant, UnixTime};
use tenure_store::{BatchError, Change, ReadError, Store, TreeId, Value, ValueKind};
use tenure_vm::Image;
use tenure_wire::host_call::HostError;
use tenure_wire::limits::{FUNCTION_BYTES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::{Budget, MachineId, Name, PublicKey};

use crate::calls::Calls;
use crate::code::{CodeError, CodeRegion};
use crate::effect::{Effect, LogEntry, LogLevel};
use crate::lifecycle::State;
use crate::machine::{Fault, FaultKind, Machine};
use crate::record::MachineRecord;
use crate::task::{IncomingCall, ReplyTo, Task, Ticket};

/// The function that runs when a machine starts.
pub(crate) const ENTRY: &str = "entry";
/// Where the kernel keeps its own things.
const KERNEL_TREE: TreeId = TreeId(0);
/// The path in the kernel's tree below which machines are recorded, one a slot.
const MACHINES_PATH: &str = "machines";
/// The path in the kernel's tree below which the last placements of removed machines are kept, by
/// name, so that an old placement doesn't bring a machine back.
const REMOVED_PATH: &str = "removed";

/// What a device gives its kernel.
#[derive(Clone, Debug)]
pub struct Config {
    /// This device's name, if it has one.
    pub device: Option<Name>,
    /// The most machines at a time.
    pub machines_max: usize,
    /// Linear memory and stacks of all machines together, in bytes. A machine whose budget doesn't
    /// fit into what the others' leave is not installed, so that nobody's budget is an empty promise.
    pub memory_bytes_max: usize,
    /// Parameters of tasks and of calls under way, of all machines together, in bytes. No machine
    /// gets more of it than it leaves, so that however many hoard, the next one finds some.
    pub parameter_bytes_max: usize,
    /// The fuel of one slice.
    pub slice_fuel: u64,
    /// How long a call may take whose caller didn't say.
    pub deadline_default: Duration,
    /// The longest deadline that a machine can ask for.
    pub deadline_max: Duration,
    /// The most effects that wait for the node; log lines beyond are dropped and counted.
    pub effects_max: usize,
}

impl Default for Config {
    /// What fits on the smallest class of device.
    fn default() -> Self {
        Self {
            device: None,
            machines_max: 16,
            memory_bytes_max: 320 * 1024,
            parameter_bytes_max: 64 * 1024,
            slice_fuel: 20_000,
            deadline_default: Duration::from_secs(10),
            deadline_max: Duration::from_secs(600),
            effects_max: 64,
        }
    }
}

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

/// A machine to be put on this device, or a new version of one.
pub struct Installation {
    /// The record to be kept.
    pub record: MachineRecord,
    /// Its id, the digest of the public key in the record.
    pub id: MachineId,
    /// What its tree begins with: path, kind, value.
    pub initial_tree: Vec<(String, ValueKind, Vec<u8>)>,
}

/// Machines, their tasks, and what they keep.
pub struct Kernel<F> {
    pub(crate) config: Config,
    pub(crate) store: Store<F>,
    pub(crate) code: CodeRegion<F>,
    pub(crate) machines: Vec<Option<Machine>>,
    pub(crate) calls: Calls,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) logs_dropped: u64,
    /// The slot that had the last slice.
    pub(crate) turn: usize,
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
            code: CodeRegion::new(code),
            calls: Calls::default(),
            effects: VecDeque::new(),
            logs_dropped: 0,
            turn: 0,
            config,
        };
        for child in kernel.store.children(KERNEL_TREE, MACHINES_PATH)? {
            let Ok(slot) = child.parse::<usize>() else { continue };
            let Some(record) = kernel.read_record(slot) else {
                kernel.log_unreadable(slot, now);
                continue;
            };
            kernel.code.claim(record.image);
            let id = id_of(&record.public_key);
            kernel.occupy(slot, Machine::new(record, id, tree_of(slot)));
            kernel.check_image(slot, now);
        }
        Ok(kernel)
    }

    /// Code flash, for whoever writes images to it.
    pub fn code(&mut self) -> &mut CodeRegion<F> {
        &mut self.code
    }

    /// The store, for the node's own tree.
    pub fn store(&mut self) -> &mut Store<F> {
        &mut self.store
    }

    /// What the kernel was configured with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Puts a machine on the device, or replaces the code of the one with that name and key, and
    /// queues its `entry`. Either all of it is kept or nothing.
    ///
    /// # Errors
    /// As [`InstallError`] says; the device is as before then.
    pub fn install(
        &mut self,
        now: Instant,
        installation: Installation,
    ) -> Result<(), InstallError> {
        let Installation { record, id, initial_tree } = installation;
        let slot = self.slot_for(&record)?;
        self.check_memory(slot, &record.budget)?;
        let replaced = self.machines.get(slot).and_then(Option::as_ref).is_some();
        self.keep_record(slot, &record, initial_tree, replaced)?;
        if replaced {
            self.vacate(slot, now);
        }
        let name = record.name.clone();
        self.occupy(slot, Machine::new(record, id, tree_of(slot)));
        self.check_image(slot, now);
        self.log(now, name, LogLevel::Info, "installed".to_string());
        Ok(())
    }

    /// Removes a machine with everything it stored. Its callers get a failure.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's.
    pub fn remove(&mut self, now: Instant, name: &Name) -> Result<(), InstallError> {
        let slot = self.slot_of_name(name).ok_or(InstallError::NotFound)?;
        self.forget_record(slot, name)?;
        self.vacate(slot, now);
        Ok(())
    }

    /// The machines on this device, in the order of their slots.
    pub fn machines(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.machines.iter().flatten().map(|machine| MachineInfo {
            record: &machine.record,
            id: machine.id,
            state: machine.state,
            queue_length: machine.queue.len(),
            fuel_used: machine.fuel_used,
            tasks_done: machine.tasks_done,
            faults: machine.faults,
            last_fault: machine.last_fault,
            memory_bytes: machine.instance.as_ref().map_or(0, |instance| instance.memory().len()),
            stored_bytes: self.store.stored_bytes(machine.tree),
        })
    }

    /// Queues a call from outside. At its deadline, or after [`Config::deadline_max`], it is
    /// answered by [`HostError::Deadline`] at the latest, and doesn't begin any more.
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
        let task = Task {
            caller: call.caller,
            function: call.function,
            parameter: call.parameter,
            reply_to: ReplyTo::Outside(ticket),
            deadline: Some(call.deadline.min(now + self.config.deadline_max)),
        };
        self.submit(slot, task, Access::Others)
    }

    /// The value at `path` in the tree of machine `name`, for the owner's eyes.
    ///
    /// # Errors
    /// [`LookError`].
    pub fn look(&mut self, name: &Name, path: &str) -> Result<Look, LookError> {
        let slot = self.slot_of_name(name).ok_or(LookError::NoSuchMachine)?;
        let tree = tree_of(slot);
        let value = match path {
            "" => None,
            _ => self.store.get(tree, path).map_err(LookError::Store)?,
        };
        let children = self.store.children(tree, path).map_err(LookError::Store)?;
        Ok(Look { value, children })
    }

    /// The next thing the node has to do for the kernel.
    pub fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// How many log lines were dropped because nobody took them.
    pub fn logs_dropped(&self) -> u64 {
        self.logs_dropped
    }

    /// Queues a task if its function may be called and the queue has room.
    pub(crate) fn submit(
        &mut self,
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
        let offered = task.function != ENTRY && machine.record.exports.contains(&task.function);
        if access == Access::Others && !offered {
            return Err(DeliverError::NoSuchFunction);
        }
        if machine.queue.len() + busy >= usize::from(machine.record.budget.queue_length) {
            return Err(DeliverError::Busy);
        }
        if !self.has_room_for(slot, task.parameter.as_ref().map_or(0, Vec::len)) {
            return Err(DeliverError::Busy);
        }
        if access == Access::Own && !self.has_function(slot, &task.function) {
            return Err(DeliverError::NoSuchFunction);
        }
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
        self.machines.get(slot)?.as_ref()
    }

    pub(crate) fn machine_mut(&mut self, slot: usize) -> Option<&mut Machine> {
        self.machines.get_mut(slot)?.as_mut()
    }

    pub(crate) fn slot_of_id(&self, id: MachineId) -> Option<usize> {
        self.slot_where(|machine| machine.id == id)
    }

    pub(crate) fn slot_of_key(&self, key: &PublicKey) -> Option<usize> {
        self.slot_where(|machine| machine.public_key() == *key)
    }

    pub(crate) fn slot_of_name(&self, name: &Name) -> Option<usize> {
        self.slot_where(|machine| machine.record.name == *name)
    }

    /// Adds a line to the log, unless the node has left too many untaken.
    pub(crate) fn log(&mut self, at: Instant, machine: Name, level: LogLevel, message: String) {
        if self.effects.len() >= self.config.effects_max {
            self.logs_dropped += 1;
            return;
        }
        self.effects.push_back(Effect::Log(LogEntry { at, machine, level, message }));
    }

    /// Whether the image of `slot` offers `function` in the form that tasks have: no parameters,
    /// no results.
    pub(crate) fn has_function(&self, slot: usize, function: &str) -> bool {
        self.image(slot).is_some_and(|image| callable(&image, function).is_some())
    }

    /// The image of `slot`, which was checked when the machine took its slot.
    pub(crate) fn image(&self, slot: usize) -> Option<Image<'_>> {
        let machine = self.machine(slot)?;
        let bytes = self.code.view(machine.record.image).ok()?;
        Image::reopen(bytes, machine.token.as_ref()?).ok()
    }

    fn slot_where(&self, wanted: impl Fn(&Machine) -> bool) -> Option<usize> {
        self.machines.iter().position(|slot| slot.as_ref().is_some_and(&wanted))
    }

    /// The slot of the machine with that name, or a free one.
    fn slot_for(&mut self, record: &MachineRecord) -> Result<usize, InstallError> {
        if let Some(slot) = self.slot_of_name(&record.name) {
            let current = &self.machines[slot].as_ref().expect("a slot found is taken").record;
            if current.tenant != record.tenant {
                return Err(InstallError::OtherTenant);
            }
            if current.placement >= record.placement {
                return Err(InstallError::Stale);
            }
            return Ok(slot);
        }
        if self.placement_before_removal(&record.name)?.is_some_and(|last| last >= record.placement)
        {
            return Err(InstallError::Stale);
        }
        let free = self.machines.iter().position(Option::is_none).unwrap_or(self.machines.len());
        if free >= self.config.machines_max {
            return Err(InstallError::NoSlot);
        }
        Ok(free)
    }

    /// Checks that the device can keep the promise of `budget`, whatever the others use of theirs.
    fn check_memory(&self, slot: usize, budget: &Budget) -> Result<(), InstallError> {
        let others = self.machines.iter().enumerate().filter(|(other, _)| *other != slot);
        let promised: u64 =
            others.filter_map(|(_, machine)| machine.as_ref()).map(Machine::memory_promised).sum();
        let wanted = u64::from(budget.memory_bytes) + u64::from(budget.stack_bytes);
        if promised + wanted > self.config.memory_bytes_max as u64 {
            return Err(InstallError::NoMemory);
        }
        Ok(())
    }

    /// The number of the last placement of a machine that was removed, if `name` had one.
    fn placement_before_removal(&mut self, name: &Name) -> Result<Option<u64>, InstallError> {
        let value = self.store.get(KERNEL_TREE, &removed_path(name))?;
        Ok(value.and_then(|value| value.bytes.try_into().ok().map(u64::from_le_bytes)))
    }

    /// Deletes a machine's record and tree in one go, and keeps the number of its placement; in a
    /// store that has no room even for that, the room counts more.
    fn forget_record(&mut self, slot: usize, name: &Name) -> Result<(), InstallError> {
        let placement = self.machine(slot).map_or(0, |machine| machine.record.placement);
        let (record_path, removed_path) = (record_path(slot), removed_path(name));
        let changes = [
            Change::Delete { tree: KERNEL_TREE, path: &record_path },
            Change::Delete { tree: tree_of(slot), path: "" },
            Change::Set {
                tree: KERNEL_TREE,
                path: &removed_path,
                kind: ValueKind::Bytes,
                value: &placement.to_le_bytes(),
            },
        ];
        match self.store.batch(&changes) {
            Err(BatchError::Full) => Ok(self.store.batch(&changes[..2])?),
            outcome => Ok(outcome?),
        }
    }

    /// Writes record and initial tree in one go. A machine that is replaced keeps its own values.
    fn keep_record(
        &mut self,
        slot: usize,
        record: &MachineRecord,
        initial_tree: Vec<(String, ValueKind, Vec<u8>)>,
        replaced: bool,
    ) -> Result<(), InstallError> {
        let bytes = postcard::to_allocvec(record).map_err(|_| InstallError::Record)?;
        let (tree, record_path) = (tree_of(slot), record_path(slot));
        let mut changes = Vec::new();
        if !replaced {
            changes.push(Change::Delete { tree, path: "" });
        }
        for (path, kind, value) in &initial_tree {
            let kept = replaced && self.store.exists(tree, path)?;
            if !kept {
                changes.push(Change::Set { tree, path, kind: *kind, value });
            }
        }
        changes.push(Change::Set {
            tree: KERNEL_TREE,
            path: &record_path,
            kind: ValueKind::Bytes,
            value: &bytes,
        });
        let removed_path = removed_path(&record.name);
        if self.store.exists(KERNEL_TREE, &removed_path)? {
            changes.push(Change::Delete { tree: KERNEL_TREE, path: &removed_path });
        }
        Ok(self.store.batch(&changes)?)
    }

    /// Empties a slot: its callers get a failure, its code its room back.
    fn vacate(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machines[slot].take() else { return };
        self.code.release(machine.record.image);
        if let Some(extent) = machine.suspended {
            self.code.release(extent);
        }
        self.calls.remove_all_of(slot);
        let current = machine.current.map(|running| running.task);
        for task in current.into_iter().chain(machine.queue) {
            self.answer(now, task.reply_to, Err(HostError::Execution));
        }
    }

    fn occupy(&mut self, slot: usize, machine: Machine) {
        if self.machines.len() <= slot {
            self.machines.resize_with(slot + 1, || None);
        }
        self.machines[slot] = Some(machine);
    }

    /// Checks the image of `slot` once, and queues its `entry`; a damaged one stops the machine.
    fn check_image(&mut self, slot: usize, now: Instant) {
        let Some(machine) = self.machine(slot) else { return };
        let (extent, package) = (machine.record.image, machine.record.package);
        let view = self.code.view(extent).ok();
        let checked = view.and_then(|bytes| Image::parse_bound(bytes, &package.0).ok());
        let token = checked.map(|image| image.token());
        if let Some(machine) = self.machine_mut(slot) {
            machine.token = token;
        }
        match token {
            Some(_) => self.enqueue_entry(slot),
            None => self.fault(slot, now, Fault::of(FaultKind::Image)),
        }
    }

    /// Queues `entry` ahead of everything else, if the machine has one.
    pub(crate) fn enqueue_entry(&mut self, slot: usize) {
        if !self.has_function(slot, ENTRY) {
            return;
        }
        if let Some(machine) = self.machine_mut(slot) {
            machine.queue.push_front(Task::of_kernel(ENTRY.to_string(), None));
            if machine.state == State::Idle {
                machine.step(crate::lifecycle::Event::Enqueued);
            }
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

    fn read_record(&mut self, slot: usize) -> Option<MachineRecord> {
        let value = self.store.get(KERNEL_TREE, &record_path(slot)).ok()??;
        postcard::from_bytes(&value.bytes).ok()
    }
}

/// A function in the form that tasks have.
pub(crate) fn callable(image: &Image<'_>, function: &str) -> Option<tenure_vm::FunctionIndex> {
    let export = image.function(function)?;
    export.signature.is(&[], &[]).then_some(export.index)
}

/// Who asks for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Another machine: only what the package exports, and never the start.
    Others,
    /// The machine itself: any function its code offers.
    Own,
}

fn tree_of(slot: usize) -> TreeId {
    TreeId(slot as u16 + 1)
}

fn removed_path(name: &Name) -> String {
    alloc::format!("{REMOVED_PATH}.{name}")
}

fn record_path(slot: usize) -> String {
    alloc::format!("{MACHINES_PATH}.{slot}")
}

/// A machine as others may see it.
#[derive(Clone, Debug)]
pub struct MachineInfo<'a> {
    /// What the store keeps of it.
    pub record: &'a MachineRecord,
    /// Its id.
    pub id: MachineId,
    /// What it is doing.
    pub state: State,
    /// Tasks waiting.
    pub queue_length: usize,
    /// Fuel used since boot.
    pub fuel_used: u64,
    /// Tasks finished since boot.
    pub tasks_done: u64,
    /// Faults in a row.
    pub faults: u32,
    /// The last fault since boot.
    pub last_fault: Option<Fault>,
    /// Linear memory committed, in bytes.
    pub memory_bytes: usize,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: usize,
}

/// What stands at a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The value, if there is one.
    pub value: Option<Value>,
    /// The names of the children, in order.
    pub children: Vec<String>,
}

/// Why there is nothing to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookError {
    /// The caller's mistake: no machine of that name.
    NoSuchMachine,
    /// The store's fault, or a path that is none.
    Store(ReadError),
}

/// Why a call was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliverError {
    /// No machine with that id here.
    NoSuchMachine,
    /// The machine doesn't offer that function.
    NoSuchFunction,
    /// The machine's queue is full.
    Busy,
    /// Function name or parameter are over the limit.
    TooLong,
}

/// Why a machine was not installed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// No machine of that name.
    NotFound,
    /// The name belongs to a machine of another tenant.
    OtherTenant,
    /// A placement with this or a higher number is in force already.
    Stale,
    /// Every slot is taken.
    NoSlot,
    /// The budgets of the machines here leave too little memory for this one's.
    NoMemory,
    /// The store is full.
    StoreFull,
    /// A path or value of the initial tree is not allowed.
    InitialTree,
    /// The record doesn't fit its format.
    Record,
    /// Code flash.
    Code(CodeError),
    /// The store failed.
    Store,
}

impl From<BatchError> for InstallError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Path { .. } | BatchError::ValueTooLong { .. } => Self::InitialTree,
            BatchError::Full => Self::StoreFull,
            BatchError::Flash(_) => Self::Store,
        }
    }
}

impl From<ReadError> for InstallError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Path(_) => Self::InitialTree,
            ReadError::Corrupt | ReadError::Flash(_) => Self::Store,
        }
    }
}

impl From<CodeError> for InstallError {
    fn from(error: CodeError) -> Self {
        Self::Code(error)
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no machine of that name"),
            Self::OtherTenant => f.write_str("the name belongs to another tenant's machine"),
            Self::Stale => f.write_str("a newer placement is in force"),
            Self::NoSlot => f.write_str("the device has no room for another machine"),
            Self::NoMemory => f.write_str("the device has too little memory left for its budget"),
            Self::StoreFull => f.write_str("the device's store is full"),
            Self::InitialTree => f.write_str("the initial tree has a path or value not allowed"),
            Self::Record => f.write_str("the machine's record can't be written"),
            Self::Code(error) => write!(f, "{error}"),
            Self::Store => f.write_str("the device's store failed"),
        }
    }
}

impl core::error::Error for InstallError {}
