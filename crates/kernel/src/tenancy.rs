//! Tenancy: how machines come to a device and leave it, and for how long their leases count.
//!
//! A machine's record, tree and code come and go as one: each change is one batch of the store. A machine
//! in the trash has its record, its tree and its code, and runs nothing; its name is free, its reservation
//! and its memory are others'. A mark beside its record says that it is there.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant};
use tenure_store::{BatchError, Change, Hidden, ReadError, SEAL_BYTES, Store, TreeId, ValueKind};
use tenure_wire::LogLevel;
use tenure_wire::NoResult;
use tenure_wire::usage::Usage;
use tenure_wire::{Budget, MachineId, Name, Term};

use crate::install_error::InstallError;
use crate::lifecycle::{Event, State};
use crate::machine::Machine;
use crate::parts::Parts;
use crate::policy::{Overbooked, Policy};
use crate::record::MachineRecord;
use crate::residence::has_memory_for;
use crate::slot::{KERNEL_TREE, Slot};
use crate::storage::{delete, set};

/// The path in the kernel's tree below which the last placements of removed machines are kept, by
/// name, so that an old placement doesn't bring a machine back.
const REMOVED_PATH: &str = "removed";
/// The path in the kernel's tree below which slots are marked whose machines are in the trash.
const TRASH_PATH: &str = "trash";

/// A machine to be put on this device, or a new version of one.
pub struct Installation {
    /// The record to be kept.
    pub record: MachineRecord,
    /// Its id, the digest of the public key in the record.
    pub id: MachineId,
}

/// The operations that change which machines a device has, at one time.
pub struct Tenancy<'a, F> {
    pub(crate) parts: &'a mut Parts<F>,
    pub(crate) policy: &'a mut dyn Policy,
    pub(crate) now: Instant,
}

impl<F: Flash> Tenancy<'_, F> {
    /// Puts a machine on the device, or replaces the code of the one with that name and key, and
    /// queues its `entry`. Either all of it is kept or nothing.
    ///
    /// A machine that is replaced keeps what it changed in its tree, on top of what its new package
    /// gives it; what it had deleted stays deleted.
    ///
    /// # Errors
    /// As [`InstallError`] says; the device is as before then.
    pub fn install(&mut self, installation: Installation) -> Result<(), InstallError> {
        let Installation { record, id } = installation;
        let slot = self.slot_for(&record)?;
        self.check_memory(slot, &record.budget)?;
        let replaced = self.parts.machines.get(slot).map(|machine| machine.record.share);
        let admitted = self.policy.admit(slot.index(), &record.share);
        admitted.map_err(|Overbooked| InstallError::Overbooked)?;
        if replaced.is_none() {
            self.parts.storage.seal_tree(slot, &record);
        }
        let hidden = self.hidden_after_update(slot, &record);
        if let Err(error) = self.keep_record(slot, &record, &hidden, replaced.is_some()) {
            match replaced {
                Some(share) => drop(self.policy.admit(slot.index(), &share)),
                None => {
                    self.policy.leave(slot.index());
                    self.parts.storage.unseal_tree(slot);
                }
            }
            return Err(error);
        }
        let unbilled = match replaced {
            Some(_) => self.parts.vacate(self.now, slot),
            None => Usage::default(),
        };
        self.begin(slot, record, id, hidden, unbilled, "installed");
        Ok(())
    }

    /// Replaces a machine's tree by these values, all of them or none, and starts it afresh.
    ///
    /// # Errors
    /// As [`InstallError`] says; the tree is as before then.
    pub fn restore(
        &mut self,
        name: &Name,
        values: &[(String, ValueKind, Vec<u8>)],
    ) -> Result<(), InstallError> {
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        let (slot, record, id) = (machine.slot, machine.record.clone(), machine.id);
        let overlay = storage.tree(machine).ok_or(InstallError::Store)?;
        let (set, hidden) = overlay.difference(values);
        let chunks = hidden.chunks();
        let mut changes = alloc::vec![clear(slot.tree()), clear(slot.hidden_tree())];
        changes.extend(set.iter().map(|value| Change::Set {
            tree: slot.tree(),
            path: value.path,
            kind: value.kind,
            value: value.bytes,
        }));
        changes.extend(changes_of(slot.hidden_tree(), &chunks));
        let records = changes.iter().map(|change| match change {
            Change::Set { tree, path, value, .. } => storage.store.record_bytes(*tree, path, value),
            Change::Delete { .. } => 0,
        });
        if records.sum::<usize>() > record.budget.stored_bytes as usize {
            return Err(InstallError::StoredBudget);
        }
        storage.store.batch(&changes)?;
        let used = self.parts.vacate(self.now, slot);
        let unbilled =
            if is_planted(Weakness::RestoreForgetsUse) { Usage::default() } else { used };
        self.parts.storage.code.claim_all(record.extents());
        self.begin(slot, record, id, hidden, unbilled, "its tree was restored");
        Ok(())
    }

    /// Stops a machine and starts it from its entry: memory, tasks and calls under way go, and its callers
    /// get a failure; tree, timers, budgets, bill and what is held against it stay.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or [`InstallError::Stopped`] if it is banned, its lease is over or
    /// its owner stopped it.
    pub fn restart(&mut self, name: &Name) -> Result<(), InstallError> {
        let log_rate = self.parts.config.log_bytes_per_second;
        let before = self.parts.machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        if before.is_stopped() {
            return Err(InstallError::Stopped);
        }
        let slot = before.slot;
        #[cfg(feature = "journal")]
        before.note_stop(tenure_journal::Why::Ended);
        let fresh = Machine::new(before.record.clone(), before.id, slot, self.now, log_rate);
        let mut machine = Machine {
            hidden: before.hidden.clone(),
            grants: before.grants.clone(),
            conduct: before.conduct,
            meters: before.meters,
            log: before.log,
            fuel_used: before.fuel_used,
            fuel_at_start: before.fuel_used,
            tasks_done: before.tasks_done,
            waited_max: before.waited_max,
            last_fault: before.last_fault,
            timers: before.timers.clone(),
            #[cfg(feature = "journal")]
            journal: before.journal.take(),
            ..fresh
        };
        #[cfg(feature = "journal")]
        {
            machine.engine_refused = machine.journal.is_some();
        }
        machine.usage = self.parts.vacate(self.now, slot);
        self.parts.storage.code.claim_all(machine.record.extents());
        self.parts.occupy(self.now, machine);
        self.parts.log(self.now, slot, LogLevel::Info, "restarted by its owner");
        Ok(())
    }

    /// Removes a machine with everything it stored. Its callers get a failure.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's.
    pub fn remove(&mut self, name: &Name) -> Result<(), InstallError> {
        let machine = self.parts.machines.with_name(name).ok_or(InstallError::NotFound)?;
        let (slot, placement) = (machine.slot, machine.record.placement);
        self.forget_record(slot, name, placement)?;
        // Its use was billed before it was removed.
        let _ = self.parts.vacate(self.now, slot);
        self.parts.storage.unseal_tree(slot);
        self.policy.leave(slot.index());
        Ok(())
    }

    /// Deletes all that a machine stored whose record can't be read, and frees its slot.
    ///
    /// # Errors
    /// [`InstallError::NotFound`] if that slot isn't such a machine's, or the store's.
    pub fn clear(&mut self, slot: Slot) -> Result<(), InstallError> {
        if !self.parts.machines.unreadable().contains(&slot) {
            return Err(InstallError::NotFound);
        }
        self.erase(slot)?;
        self.parts.machines.give_up(slot);
        Ok(())
    }

    /// Stops a machine whose lease is over: who waits for it is told so, and it runs no more until its
    /// lease is renewed. Its code and its tree stay; its memory, its queue and its calls go.
    pub fn end_lease(&mut self, id: MachineId) {
        let machine = self.parts.machines.with_id(id);
        // It is gone, or its lease is over already.
        let Some(machine) = machine.filter(|machine| machine.state != State::Over) else { return };
        let slot = machine.slot;
        self.parts.end(self.now, slot, Event::Ended, NoResult::LeaseOver);
        self.parts.log(self.now, slot, LogLevel::Warning, "its lease is over");
    }

    /// Gives a machine another term, under the number of the owner's word for it; one whose lease was
    /// over starts again.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::Stale`] if the number isn't higher than the last, or
    /// the store's; all is as before then.
    pub fn renew(&mut self, id: MachineId, number: u64, term: Term) -> Result<(), InstallError> {
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_id_mut(id).ok_or(InstallError::NotFound)?;
        if machine.record.placement >= number {
            return Err(InstallError::Stale);
        }
        let record = MachineRecord { placement: number, term, ..machine.record.clone() };
        let bytes = record_bytes(&storage.store, &record)?;
        storage.keep_term(machine.slot, &bytes, &machine.conduct, number)?;
        machine.record = record;
        let slot = machine.slot;
        self.parts.renew(self.now, slot, "its lease was renewed");
        Ok(())
    }

    /// Lets a machine go on whose lease isn't over after all: the time by which it was is corrected.
    pub fn resume_lease(&mut self, id: MachineId) {
        if let Some(slot) = self.parts.machines.with_id(id).map(|machine| machine.slot) {
            self.parts.renew(self.now, slot, "its lease goes on: the time was corrected");
        }
    }

    /// Puts a machine into the trash: it is stopped as by [`Tenancy::remove`], and its code and its tree
    /// stay.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's; the machine is as before then.
    pub fn discard(&mut self, name: &Name) -> Result<(), InstallError> {
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        let placement = machine.record.placement.to_le_bytes();
        let (trash_path, removed_path) = (machine.slot.path(TRASH_PATH), removed_path(name));
        storage.store.batch(&[set(&trash_path, &[1]), set(&removed_path, &placement)])?;
        machine.is_removed = true;
        let slot = machine.slot;
        self.policy.leave(slot.index());
        self.parts.end(self.now, slot, Event::Ended, NoResult::Execution);
        Ok(())
    }

    /// Takes a machine out of the trash again: it starts afresh, under the name and with the rights that
    /// it had.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::NameTaken`] if another machine has its name now,
    /// [`InstallError::NoMemory`] or [`InstallError::Overbooked`] if others have its room, or the store's.
    pub fn fetch_back(&mut self, id: MachineId) -> Result<(), InstallError> {
        let machine = self.in_trash(id).ok_or(InstallError::NotFound)?;
        let (slot, name) = (machine.slot, machine.record.name.clone());
        let (budget, share) = (machine.record.budget, machine.record.share);
        if self.parts.machines.with_name(&name).is_some() {
            return Err(InstallError::NameTaken);
        }
        self.check_memory(slot, &budget)?;
        let admitted = self.policy.admit(slot.index(), &share);
        admitted.map_err(|Overbooked| InstallError::Overbooked)?;
        let (trash_path, removed_path) = (slot.path(TRASH_PATH), removed_path(&name));
        let store = &mut self.parts.storage.store;
        if let Err(error) = store.batch(&[delete(&trash_path), delete(&removed_path)]) {
            self.policy.leave(slot.index());
            return Err(error.into());
        }
        if let Some(machine) = self.parts.machines.known_mut(slot) {
            machine.is_removed = false;
            machine.renew();
        }
        self.parts.check_code(self.now, slot);
        self.parts.log(self.now, slot, LogLevel::Info, "fetched back from the trash");
        Ok(())
    }

    /// Deletes the record of a slot and everything stored there, at once. The number of its placement stays where it was kept
    /// when its machine was removed.
    fn erase(&mut self, slot: Slot) -> Result<(), InstallError> {
        let (record_path, trash_path) = (slot.record_path(), slot.path(TRASH_PATH));
        self.parts.storage.store.batch(&[
            delete(&record_path),
            delete(&trash_path),
            clear(slot.tree()),
            clear(slot.hidden_tree()),
        ])?;
        Ok(())
    }

    /// Deletes a machine in the trash with everything it stored.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's.
    pub fn delete_trash(&mut self, id: MachineId) -> Result<(), InstallError> {
        let slot = self.in_trash(id).ok_or(InstallError::NotFound)?.slot;
        self.erase(slot)?;
        // Its use was billed before it was removed.
        let _ = self.parts.vacate(self.now, slot);
        self.parts.storage.unseal_tree(slot);
        Ok(())
    }

    /// Puts a machine into its slot, starts it, and says so in its log.
    fn begin(
        &mut self,
        slot: Slot,
        record: MachineRecord,
        id: MachineId,
        hidden: Hidden,
        unbilled: Usage,
        message: &str,
    ) {
        let log_rate = self.parts.config.log_bytes_per_second;
        let mut machine = Machine::new(record, id, slot, self.now, log_rate);
        (machine.hidden, machine.usage) = (hidden, unbilled);
        self.parts.recall_timers(self.now, &mut machine);
        self.parts.storage.recall_halt(&mut machine);
        self.parts.occupy(self.now, machine);
        self.parts.log(self.now, slot, LogLevel::Info, message);
    }

    fn in_trash(&self, id: MachineId) -> Option<&Machine> {
        self.parts.machines.with_id(id).filter(|machine| machine.is_removed)
    }

    /// The slot of the machine with that name, or a free one.
    fn slot_for(&mut self, record: &MachineRecord) -> Result<Slot, InstallError> {
        if let Some(current) = self.parts.machines.with_name(&record.name) {
            if current.record.tenant != record.tenant {
                return Err(InstallError::OtherTenant);
            }
            if current.record.placement >= record.placement {
                return Err(InstallError::Stale);
            }
            return Ok(current.slot);
        }
        let store = &mut self.parts.storage.store;
        let last = placement_before_removal(store, &record.name)?;
        if last.is_some_and(|last| last >= record.placement) {
            return Err(InstallError::Stale);
        }
        let free = self.parts.machines.free_slot();
        free.filter(|slot| slot.index() < self.parts.config.machines_max)
            .ok_or(InstallError::NoSlot)
    }

    /// Checks that the device can keep the promise of `budget`, whatever the others use of theirs.
    fn check_memory(&self, slot: Slot, budget: &Budget) -> Result<(), InstallError> {
        let others = self.parts.machines.iter();
        let others = others.filter(|machine| machine.slot != slot && !machine.is_removed);
        let sector_bytes = self.parts.storage.code.sector_bytes();
        let fits = has_memory_for(budget, others, &self.parts.config, sector_bytes);
        fits.then_some(()).ok_or(InstallError::NoMemory)
    }

    /// Deletes a machine's record and tree in one go, and keeps the number of its placement. In a store
    /// that is full the number follows once the record and the tree have made room for it.
    fn forget_record(
        &mut self,
        slot: Slot,
        name: &Name,
        placement: u64,
    ) -> Result<(), InstallError> {
        let (record_path, removed_path) = (slot.record_path(), removed_path(name));
        let placement = placement.to_le_bytes();
        let changes = [
            delete(&record_path),
            clear(slot.tree()),
            clear(slot.hidden_tree()),
            set(&removed_path, &placement),
        ];
        let store = &mut self.parts.storage.store;
        match store.batch(&changes) {
            Err(BatchError::Full) => {
                store.batch(&changes[..3])?;
                Ok(store.batch(&changes[3..])?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// The values that stay deleted of the tree that the machine in `slot` begins with, once it is replaced.
    fn hidden_after_update(&self, slot: Slot, next: &MachineRecord) -> Hidden {
        let storage = &self.parts.storage;
        let Some(machine) = self.parts.machines.get(slot) else { return Hidden::default() };
        match (storage.base(machine.record.base), storage.base(next.base)) {
            (Some(base), Some(next)) => machine.hidden.carried_over(&base, &next),
            _ => Hidden::default(),
        }
    }

    /// Writes the record, and what stays deleted of the tree, in one go.
    fn keep_record(
        &mut self,
        slot: Slot,
        record: &MachineRecord,
        hidden: &Hidden,
        replaced: bool,
    ) -> Result<(), InstallError> {
        let store = &mut self.parts.storage.store;
        let bytes = record_bytes(store, record)?;
        let record_path = slot.record_path();
        let chunks = hidden.chunks();
        let mut changes = Vec::new();
        if !replaced {
            changes.push(clear(slot.tree()));
        }
        changes.push(clear(slot.hidden_tree()));
        changes.extend(changes_of(slot.hidden_tree(), &chunks));
        changes.push(set(&record_path, &bytes));
        let removed_path = removed_path(&record.name);
        if store.exists(KERNEL_TREE, &removed_path)? {
            changes.push(delete(&removed_path));
        }
        Ok(store.batch(&changes)?)
    }
}

/// The number of the last placement of a machine that was removed, if `name` had one.
pub(crate) fn placement_before_removal<F: Flash>(
    store: &mut Store<F>,
    name: &Name,
) -> Result<Option<u64>, InstallError> {
    let value = store.get(KERNEL_TREE, &removed_path(name))?;
    Ok(value.and_then(|value| value.bytes.try_into().ok().map(u64::from_le_bytes)))
}

/// Whether the machine in `slot` is in the trash, by the store.
pub(crate) fn is_marked_as_trash<F: Flash>(
    store: &mut Store<F>,
    slot: Slot,
) -> Result<bool, ReadError> {
    store.exists(KERNEL_TREE, &slot.path(TRASH_PATH))
}

/// `record` as `store` can keep it.
fn record_bytes<F: Flash>(
    store: &Store<F>,
    record: &MachineRecord,
) -> Result<Vec<u8>, InstallError> {
    let bytes = record.to_bytes().ok_or(InstallError::Record)?;
    if bytes.len() + SEAL_BYTES > store.value_bytes_max() {
        return Err(InstallError::Record);
    }
    Ok(bytes)
}

fn clear(tree: TreeId) -> Change<'static> {
    Change::Delete { tree, path: "" }
}

fn changes_of(tree: TreeId, chunks: &[(String, Vec<u8>)]) -> impl Iterator<Item = Change<'_>> {
    let kind = ValueKind::Bytes;
    chunks.iter().map(move |(path, value)| Change::Set { tree, path, kind, value })
}

fn removed_path(name: &Name) -> String {
    alloc::format!("{REMOVED_PATH}.{name}")
}
