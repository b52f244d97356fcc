//! Machines' trees: what a machine changed, on top of what its package gave it.

use tenure_hal::Flash;
use tenure_store::{Base, Hidden, Overlay, ReadError, TreeId};

use crate::code::Extent;
use crate::kernel::{Kernel, tree_of};

/// From this tree on the store keeps what machines have deleted of what they began with, by slot.
const HIDDEN_TREES: u16 = 0x4000;

pub(crate) fn hidden_tree_of(slot: usize) -> TreeId {
    TreeId(HIDDEN_TREES + slot as u16)
}

impl<F: Flash> Kernel<F> {
    /// The tree of the machine in `slot`.
    pub(crate) fn tree(&mut self, slot: usize) -> Option<Overlay<'_, F>> {
        let machine = self.machines.get_mut(slot)?.as_mut()?;
        let base = match machine.record.base {
            Some(extent) => Base::open(self.code.view(extent).ok()?)?,
            None => Base::EMPTY,
        };
        Some(Overlay {
            store: &mut self.store,
            base,
            hidden: &mut machine.hidden,
            tree: machine.tree,
            hidden_tree: hidden_tree_of(slot),
        })
    }

    /// What the machine in `slot` stores, in bytes: its changes, and not what it began with.
    pub(crate) fn stored_bytes(&self, slot: usize) -> usize {
        self.store.stored_bytes(tree_of(slot)) + self.store.stored_bytes(hidden_tree_of(slot))
    }

    /// What the machine in `slot` began with, unless it is damaged.
    pub(crate) fn base(&self, slot: usize) -> Option<Base<'_>> {
        self.base_in(self.machine(slot)?.record.base)
    }

    pub(crate) fn base_in(&self, extent: Option<Extent>) -> Option<Base<'_>> {
        extent.map_or(Some(Base::EMPTY), |extent| Base::open(self.code.view(extent).ok()?))
    }

    /// Takes up what the machine in `slot` had deleted of what it began with.
    pub(crate) fn recall_hidden(&mut self, slot: usize) -> Result<(), ReadError> {
        let hidden = Hidden::load(&mut self.store, hidden_tree_of(slot))?;
        if let Some(machine) = self.machine_mut(slot) {
            machine.hidden = hidden;
        }
        Ok(())
    }
}
