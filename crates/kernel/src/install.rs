//! Installing and removing: a machine's record, tree and code come and go as one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tenure_hal::{Flash, Instant};
use tenure_store::{BatchError, Change, Hidden, ReadError, SEAL_BYTES, TreeId, ValueKind};
use tenure_wire::host_call::HostError;
use tenure_wire::{MachineId, Name};

use crate::code::CodeError;
use crate::effect::LogLevel;
use crate::kernel::{KERNEL_TREE, Kernel, record_path, tree_of};
use crate::lifecycle::State;
use crate::machine::Machine;
use crate::policy::{Overbooked, SLOTS_MAX};
use crate::record::MachineRecord;
use crate::tree::hidden_tree_of;

/// The path in the kernel's tree below which the last placements of removed machines are kept, by
/// name, so that an old placement doesn't bring a machine back.
const REMOVED_PATH: &str = "removed";

/// A machine to be put on this device, or a new version of one.
pub struct Installation {
    /// The record to be kept.
    pub record: MachineRecord,
    /// Its id, the digest of the public key in the record.
    pub id: MachineId,
}

impl<F: Flash> Kernel<F> {
    /// Puts a machine on the device, or replaces the code of the one with that name and key, and
    /// queues its `entry`. Either all of it is kept or nothing.
    ///
    /// A machine that is replaced keeps what it changed in its tree, on top of what its new package
    /// gives it; what it had deleted stays deleted.
    ///
    /// # Errors
    /// As [`InstallError`] says; the device is as before then.
    pub fn install(
        &mut self,
        now: Instant,
        installation: Installation,
    ) -> Result<(), InstallError> {
        let Installation { record, id } = installation;
        let slot = self.slot_for(&record)?;
        self.check_memory(slot, &record.budget)?;
        let replaced = self.machine(slot).map(|machine| machine.record.share);
        self.policy.admit(slot, &record.share).map_err(|Overbooked| InstallError::Overbooked)?;
        if replaced.is_none() {
            self.seal_tree_of(slot, &record);
        }
        let hidden = match replaced {
            Some(_) => self.hidden_after_update(slot, &record),
            None => Hidden::default(),
        };
        if let Err(error) = self.keep_record(slot, &record, &hidden, replaced.is_some()) {
            match replaced {
                Some(share) => drop(self.policy.admit(slot, &share)),
                None => {
                    self.policy.leave(slot);
                    self.unseal_tree(tree_of(slot));
                }
            }
            return Err(error);
        }
        if replaced.is_some() {
            self.vacate(slot, now);
        }
        let name = record.name.clone();
        let machine = self.new_machine(slot, record, id, now);
        self.occupy(slot, Machine { hidden, ..machine });
        self.recall_timers(slot, now);
        self.check_image(slot, now);
        self.log(now, name, LogLevel::Info, "installed".to_string());
        Ok(())
    }

    /// Replaces a machine's tree by these values, all of them or none, and starts it afresh.
    ///
    /// # Errors
    /// As [`InstallError`] says; the tree is as before then.
    pub fn restore(
        &mut self,
        now: Instant,
        name: &Name,
        values: &[(String, ValueKind, Vec<u8>)],
    ) -> Result<(), InstallError> {
        let slot = self.slot_of_name(name).ok_or(InstallError::NotFound)?;
        let Some((record, id)) = self.machine(slot).map(|one| (one.record.clone(), one.id)) else {
            return Err(InstallError::NotFound);
        };
        let (tree, hidden_tree) = (tree_of(slot), hidden_tree_of(slot));
        let overlay = self.tree(slot).ok_or(InstallError::Store)?;
        let (set, hidden) = overlay.difference(values);
        let chunks = hidden.chunks();
        let mut changes = alloc::vec![
            Change::Delete { tree, path: "" },
            Change::Delete { tree: hidden_tree, path: "" }
        ];
        changes.extend(set.iter().map(|value| Change::Set {
            tree,
            path: value.path,
            kind: value.kind,
            value: value.bytes,
        }));
        changes.extend(changes_of(hidden_tree, &chunks));
        let records = changes.iter().map(|change| match change {
            Change::Set { tree, path, value, .. } => self.store.record_bytes(*tree, path, value),
            Change::Delete { .. } => 0,
        });
        if records.sum::<usize>() > record.budget.stored_bytes as usize {
            return Err(InstallError::StoredBudget);
        }
        self.store.batch(&changes)?;
        self.vacate(slot, now);
        self.code.claim_all(record.extents());
        let machine = self.new_machine(slot, record, id, now);
        self.occupy(slot, Machine { hidden, ..machine });
        self.recall_timers(slot, now);
        self.check_image(slot, now);
        self.log(now, name.clone(), LogLevel::Info, "its tree was restored".to_string());
        Ok(())
    }

    /// Stops a machine and starts it from its entry: memory, tasks and calls under way go, and its callers
    /// get a failure; tree, timers, budgets, bill and what is held against it stay.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or [`InstallError::Stopped`] if it is banned or its lease is over.
    pub fn restart_machine(&mut self, now: Instant, name: &Name) -> Result<(), InstallError> {
        let slot = self.slot_of_name(name).ok_or(InstallError::NotFound)?;
        let machine = self.machine(slot).ok_or(InstallError::NotFound)?;
        if matches!(machine.state, State::Banned | State::Over) {
            return Err(InstallError::Stopped);
        }
        self.count_storage(slot, now);
        let Some(before) = self.machine(slot) else { return Err(InstallError::NotFound) };
        let fresh = self.new_machine(slot, before.record.clone(), before.id, now);
        let machine = Machine {
            hidden: before.hidden.clone(),
            grants: before.grants.clone(),
            conduct: before.conduct,
            meters: before.meters,
            log: before.log,
            usage: before.usage,
            stored_until: before.stored_until,
            fuel_used: before.fuel_used,
            fuel_at_start: before.fuel_used,
            tasks_done: before.tasks_done,
            waited_max: before.waited_max,
            last_fault: before.last_fault,
            timers: before.timers.clone(),
            ..fresh
        };
        self.vacate(slot, now);
        self.code.claim_all(machine.record.extents());
        self.occupy(slot, machine);
        self.check_image(slot, now);
        self.log(now, name.clone(), LogLevel::Info, "restarted by its owner".to_string());
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
        self.unseal_tree(tree_of(slot));
        self.policy.leave(slot);
        Ok(())
    }

    fn new_machine(
        &self,
        slot: usize,
        record: MachineRecord,
        id: MachineId,
        now: Instant,
    ) -> Machine {
        Machine::new(record, id, tree_of(slot), now, self.config.log_bytes_per_second)
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
        if free >= self.config.machines_max.min(SLOTS_MAX) {
            return Err(InstallError::NoSlot);
        }
        Ok(free)
    }

    /// The highest number of a placement or a renewal that counts for a machine of that name, or did before
    /// it was removed; 0 if none did.
    ///
    /// # Errors
    /// The store's.
    pub fn last_placement(&mut self, name: &Name) -> Result<u64, InstallError> {
        let in_force = self.slot_of_name(name).and_then(|slot| self.machine(slot));
        match in_force.map(|machine| machine.record.placement) {
            Some(number) => Ok(number),
            None => Ok(self.placement_before_removal(name)?.unwrap_or(0)),
        }
    }

    /// The number of the last placement of a machine that was removed, if `name` had one.
    fn placement_before_removal(&mut self, name: &Name) -> Result<Option<u64>, InstallError> {
        let value = self.store.get(KERNEL_TREE, &removed_path(name))?;
        Ok(value.and_then(|value| value.bytes.try_into().ok().map(u64::from_le_bytes)))
    }

    /// Deletes a machine's record and tree in one go, and keeps the number of its placement. In a store
    /// that is full the number follows once the record and the tree have made room for it.
    fn forget_record(&mut self, slot: usize, name: &Name) -> Result<(), InstallError> {
        let placement = self.machine(slot).map_or(0, |machine| machine.record.placement);
        let (record_path, removed_path) = (record_path(slot), removed_path(name));
        let changes = [
            Change::Delete { tree: KERNEL_TREE, path: &record_path },
            Change::Delete { tree: tree_of(slot), path: "" },
            Change::Delete { tree: hidden_tree_of(slot), path: "" },
            Change::Set {
                tree: KERNEL_TREE,
                path: &removed_path,
                kind: ValueKind::Bytes,
                value: &placement.to_le_bytes(),
            },
        ];
        match self.store.batch(&changes) {
            Err(BatchError::Full) => {
                self.store.batch(&changes[..3])?;
                Ok(self.store.batch(&changes[3..])?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// What stays deleted of the tree that the machine in `slot` begins with, once it is replaced.
    fn hidden_after_update(&self, slot: usize, next: &MachineRecord) -> Hidden {
        let (machine, base, next) = (self.machine(slot), self.base(slot), self.base_in(next.base));
        match (machine, base, next) {
            (Some(machine), Some(base), Some(next)) => machine.hidden.carried_over(&base, &next),
            _ => Hidden::default(),
        }
    }

    /// Writes the record, and what stays deleted of the tree, in one go.
    fn keep_record(
        &mut self,
        slot: usize,
        record: &MachineRecord,
        hidden: &Hidden,
        replaced: bool,
    ) -> Result<(), InstallError> {
        let bytes = record.to_bytes().ok_or(InstallError::Record)?;
        if bytes.len() + SEAL_BYTES > self.store.value_bytes_max() {
            return Err(InstallError::Record);
        }
        let record_path = record_path(slot);
        let chunks = hidden.chunks();
        let mut changes = Vec::new();
        if !replaced {
            changes.push(Change::Delete { tree: tree_of(slot), path: "" });
        }
        changes.push(Change::Delete { tree: hidden_tree_of(slot), path: "" });
        changes.extend(changes_of(hidden_tree_of(slot), &chunks));
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
    pub(crate) fn vacate(&mut self, slot: usize, now: Instant) {
        self.forget_events(slot);
        let Some(machine) = self.machines[slot].take().map(|machine| *machine) else { return };
        self.code.release_all(machine.record.extents());
        if let Some(extent) = machine.suspended {
            self.code.release(extent);
        }
        self.calls.remove_all_of(slot);
        let current = machine.current.map(|running| running.task);
        for task in current.into_iter().chain(machine.queue) {
            self.answer(now, task.reply_to, Err(HostError::Execution.into()));
        }
    }
}

fn changes_of(tree: TreeId, chunks: &[(String, Vec<u8>)]) -> impl Iterator<Item = Change<'_>> {
    let kind = ValueKind::Bytes;
    chunks.iter().map(move |(path, value)| Change::Set { tree, path, kind, value })
}

pub(crate) fn removed_path(name: &Name) -> String {
    alloc::format!("{REMOVED_PATH}.{name}")
}

/// Why a machine was not installed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// No machine of that name.
    NotFound,
    /// The name belongs to a machine of another tenant.
    OtherTenant,
    /// Another machine has that name.
    NameTaken,
    /// A placement with this or a higher number is in force already.
    Stale,
    /// The machine is banned, or its lease is over.
    Stopped,
    /// Every slot is taken.
    NoSlot,
    /// The budgets of the machines here leave too little memory for this one's.
    NoMemory,
    /// What others have reserved of the processor leaves too little for its reservation.
    Overbooked,
    /// The store is full.
    StoreFull,
    /// The values take more than the machine's budget has for them.
    StoredBudget,
    /// A path or value of a snapshot is not allowed.
    Values,
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
            BatchError::Path { .. } | BatchError::ValueTooLong { .. } => Self::Values,
            BatchError::Full => Self::StoreFull,
            BatchError::Flash(_) => Self::Store,
        }
    }
}

impl From<ReadError> for InstallError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Path(_) => Self::Values,
            _ => Self::Store,
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
            Self::NameTaken => f.write_str("another machine has that name; remove that one first"),
            Self::Stale => f.write_str(
                "the device has a lease with a higher number in force; ask it for that number",
            ),
            Self::Stopped => f.write_str("the machine is banned, or its lease is over"),
            Self::NoSlot => f.write_str("the device has no room for another machine"),
            Self::NoMemory => f.write_str("the device has too little memory left for its budget"),
            Self::Overbooked => {
                f.write_str("the device has too little of the processor left for its reservation")
            }
            Self::StoreFull => f.write_str("the device's store is full"),
            Self::StoredBudget => f.write_str("its budget has too little room for these values"),
            Self::Values => f.write_str("there is a path or value that is not allowed"),
            Self::Record => {
                f.write_str("the machine's exports and grants are too many for its record")
            }
            Self::Code(error) => write!(f, "{error}"),
            Self::Store => f.write_str("the device's store failed"),
        }
    }
}

impl core::error::Error for InstallError {}
