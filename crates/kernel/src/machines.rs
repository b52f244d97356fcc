//! The table of machines: who is in which slot.
//!
//! A machine is out of its slot for the length of its turn; whoever goes through the table meanwhile sees
//! the others.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_wire::{MachineId, Name, PublicKey};

use crate::machine::Machine;
use crate::slot::Slot;

/// The machines of a device, by slot.
#[derive(Default)]
pub(crate) struct Machines {
    table: Vec<Option<Box<Machine>>>,
    /// Slots of machines whose record can't be read; nobody else is put there.
    unreadable: Vec<Slot>,
}

impl Machines {
    /// The machine in `slot`, if one is there.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Machine> {
        self.table.get(slot.index())?.as_deref()
    }

    /// The machine in `slot`, to be changed, if one is there.
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Machine> {
        self.table.get_mut(slot.index())?.as_deref_mut()
    }

    /// The machine in a slot that was looked up before, in which there is none by our own mistake alone.
    pub(crate) fn known(&self, slot: Slot) -> Option<&Machine> {
        let machine = self.get(slot);
        debug_assert!(machine.is_some(), "slot {slot} is empty");
        machine
    }

    /// The same, to be changed.
    pub(crate) fn known_mut(&mut self, slot: Slot) -> Option<&mut Machine> {
        let machine = self.get_mut(slot);
        debug_assert!(machine.is_some(), "slot {slot} is empty");
        machine
    }

    /// Puts a machine into its slot.
    pub(crate) fn put(&mut self, machine: Box<Machine>) {
        let index = machine.slot.index();
        if self.table.len() <= index {
            self.table.resize_with(index + 1, || None);
        }
        debug_assert!(self.table[index].is_none(), "slot {index} is taken");
        self.table[index] = Some(machine);
    }

    /// Takes the machine out of `slot`.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Box<Machine>> {
        self.table.get_mut(slot.index())?.take()
    }

    /// The slots up to the last that was ever taken, empty ones too.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + Clone + use<> {
        Slot::all(self.table.len())
    }

    /// The first slot that is free.
    pub(crate) fn free_slot(&self) -> Option<Slot> {
        let is_free = |slot: &Slot| self.get(*slot).is_none() && !self.unreadable.contains(slot);
        Slot::all(usize::MAX).find(is_free)
    }

    /// Keeps a slot for the machine in it, whose record can't be read.
    pub(crate) fn reserve(&mut self, slot: Slot) {
        if !self.unreadable.contains(&slot) {
            self.unreadable.push(slot);
        }
    }

    /// Gives up a slot that was kept for a machine.
    pub(crate) fn give_up(&mut self, slot: Slot) {
        self.unreadable.retain(|unreadable| *unreadable != slot);
    }

    /// The slots of machines whose record can't be read.
    pub(crate) fn unreadable(&self) -> &[Slot] {
        &self.unreadable
    }

    /// The machines in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.table.iter().filter_map(Option::as_deref)
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Machine> {
        self.table.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The machine with that id, in the trash or not.
    pub(crate) fn with_id(&self, id: MachineId) -> Option<&Machine> {
        self.iter().find(|machine| machine.id == id)
    }

    /// The same, to be changed.
    pub(crate) fn with_id_mut(&mut self, id: MachineId) -> Option<&mut Machine> {
        self.iter_mut().find(|machine| machine.id == id)
    }

    /// The machine with that public key, if it isn't in the trash.
    pub(crate) fn with_key(&self, key: &PublicKey) -> Option<&Machine> {
        self.iter().find(|machine| !machine.is_removed && machine.public_key() == *key)
    }

    /// The machine of that name, if it isn't in the trash.
    pub(crate) fn with_name(&self, name: &Name) -> Option<&Machine> {
        self.iter().find(|machine| !machine.is_removed && machine.record.name == *name)
    }

    /// The same, to be changed.
    pub(crate) fn with_name_mut(&mut self, name: &Name) -> Option<&mut Machine> {
        self.iter_mut().find(|machine| !machine.is_removed && machine.record.name == *name)
    }

    /// Bytes that the parameters of all tasks take.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.iter().map(Machine::parameter_bytes).sum()
    }

    /// Bytes that the budgets of those in RAM promise.
    pub(crate) fn memory_in_use(&self) -> usize {
        let in_ram = self.iter().filter(|machine| machine.instance.is_some());
        usize::try_from(in_ram.map(Machine::memory_promised).sum::<u64>()).unwrap_or(usize::MAX)
    }
}
