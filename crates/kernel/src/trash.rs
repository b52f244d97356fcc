//! The trash: machines that were removed and can be fetched back, each in its slot with all it stored.
//!
//! A machine in the trash has its record, its tree and its code, and runs nothing. Its name is free, its
//! reservation and its memory are others'. A mark beside its record says that it is there, so that one
//! change of the store puts it in and takes it out.

use alloc::string::{String, ToString};

use tenure_hal::{Flash, Instant};
use tenure_store::{Change, ReadError, ValueKind};
use tenure_wire::host_call::HostError;
use tenure_wire::{MachineId, Name};

use crate::conduct::Repute;
use crate::effect::LogLevel;
use crate::install::{InstallError, removed_path};
use crate::kernel::{KERNEL_TREE, Kernel, record_path, tree_of};
use crate::lifecycle::{Event, State};
use crate::look::MachineInfo;
use crate::policy::Overbooked;
use crate::tree::hidden_tree_of;

/// The path in the kernel's tree below which slots are marked whose machines are in the trash.
const TRASH_PATH: &str = "trash";

impl<F: Flash> Kernel<F> {
    /// Puts a machine into the trash: it is stopped as by [`Kernel::remove`], and its code and its tree
    /// stay.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's; the machine is as before then.
    pub fn discard(&mut self, now: Instant, name: &Name) -> Result<(), InstallError> {
        let slot = self.slot_of_name(name).ok_or(InstallError::NotFound)?;
        let placement = self.machine(slot).map_or(0, |machine| machine.record.placement);
        let (trash_path, removed_path) = (trash_path(slot), removed_path(name));
        let set =
            |path, value| Change::Set { tree: KERNEL_TREE, path, kind: ValueKind::Bytes, value };
        let placement = placement.to_le_bytes();
        self.store.batch(&[set(&trash_path, &[1]), set(&removed_path, &placement)])?;
        self.policy.leave(slot);
        self.forget_events(slot);
        self.calls.remove_all_of(slot);
        let Some(machine) = self.machine_mut(slot) else { return Err(InstallError::NotFound) };
        machine.is_removed = true;
        let suspended = machine.suspended.take();
        let (current, queue) = machine.end();
        if let Some(extent) = suspended {
            self.code.release(extent);
        }
        for task in current.into_iter().chain(queue) {
            self.answer(now, task.reply_to, Err(HostError::Execution.into()));
        }
        Ok(())
    }

    /// The machines in the trash, in the order of their slots.
    pub fn trash(&self) -> impl Iterator<Item = MachineInfo<'_>> {
        self.occupied().filter(|info| info.is_removed)
    }

    /// Takes a machine out of the trash again: it starts afresh, under the name and with the rights that
    /// it had.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::NameTaken`] if another machine has its name now,
    /// [`InstallError::NoMemory`] or [`InstallError::Overbooked`] if others have its room, or the store's.
    pub fn fetch_back(&mut self, now: Instant, id: MachineId) -> Result<(), InstallError> {
        let slot = self.slot_in_trash(id).ok_or(InstallError::NotFound)?;
        let machine = self.machine(slot).ok_or(InstallError::NotFound)?;
        let (name, budget) = (machine.record.name.clone(), machine.record.budget);
        let share = machine.record.share;
        if self.slot_of_name(&name).is_some() {
            return Err(InstallError::NameTaken);
        }
        self.check_memory(slot, &budget)?;
        self.policy.admit(slot, &share).map_err(|Overbooked| InstallError::Overbooked)?;
        let (trash_path, removed_path) = (trash_path(slot), removed_path(&name));
        let delete = |path| Change::Delete { tree: KERNEL_TREE, path };
        if let Err(error) = self.store.batch(&[delete(&trash_path), delete(&removed_path)]) {
            self.policy.leave(slot);
            return Err(error.into());
        }
        let Some(machine) = self.machine_mut(slot) else { return Err(InstallError::NotFound) };
        machine.is_removed = false;
        machine.step(Event::Renewed);
        if machine.conduct.repute() == Repute::Banned {
            machine.state = State::Banned;
        }
        self.check_image(slot, now);
        self.log(now, name, LogLevel::Info, "fetched back from the trash".to_string());
        Ok(())
    }

    /// Deletes a machine in the trash with everything it stored.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], or the store's.
    pub fn delete_trash(&mut self, now: Instant, id: MachineId) -> Result<(), InstallError> {
        let slot = self.slot_in_trash(id).ok_or(InstallError::NotFound)?;
        let (record_path, trash_path) = (record_path(slot), trash_path(slot));
        // The number of its placement stays where it was kept when it was removed.
        self.store.batch(&[
            Change::Delete { tree: KERNEL_TREE, path: &record_path },
            Change::Delete { tree: KERNEL_TREE, path: &trash_path },
            Change::Delete { tree: tree_of(slot), path: "" },
            Change::Delete { tree: hidden_tree_of(slot), path: "" },
        ])?;
        self.vacate(slot, now);
        self.unseal_tree(tree_of(slot));
        Ok(())
    }

    /// Whether the machine in `slot` is in the trash, by the store.
    pub(crate) fn is_marked_as_trash(&mut self, slot: usize) -> Result<bool, ReadError> {
        self.store.exists(KERNEL_TREE, &trash_path(slot))
    }

    fn slot_in_trash(&self, id: MachineId) -> Option<usize> {
        let slot = self.slot_of_id(id)?;
        self.machine(slot).is_some_and(|machine| machine.is_removed).then_some(slot)
    }
}

fn trash_path(slot: usize) -> String {
    alloc::format!("{TRASH_PATH}.{slot}")
}
