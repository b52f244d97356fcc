//! What machines keep, sealed: the kernel says whose it is, and the node, which holds the keys, how.
//!
//! Two things leave a machine's memory for flash: its tree, and its running state when it is
//! suspended. Both are sealed under keys of that machine alone, and so are the kernel's records.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_store::{ReadError, Seal, Store, TreeId, Unsealable};

use crate::kernel::{KERNEL_TREE, Kernel, MACHINES_PATH, record_path, tree_of};
use crate::record::MachineRecord;

/// Holds the keys of a device's machines.
pub trait Sealer: Send {
    /// What seals the kernel's records.
    fn kernel_tree(&self) -> Box<dyn Seal>;

    /// What seals the machine's tree.
    fn machine_tree(&self, record: &MachineRecord) -> Box<dyn Seal>;

    /// Seals a machine's running state.
    fn seal_state(&mut self, record: &MachineRecord, state: &mut Vec<u8>);

    /// Opens what [`Sealer::seal_state`] made.
    ///
    /// # Errors
    /// [`Unsealable`] if it isn't the running state of that machine, or was changed.
    fn open_state(&self, record: &MachineRecord, state: &mut Vec<u8>) -> Result<(), Unsealable>;
}

/// Gives all trees that the kernel has in `store` their seals: before [`Kernel::boot`], or to look
/// into a store without running it.
///
/// # Errors
/// The store's, if its machines can't be listed. A record that can't be read leaves its machine's
/// tree without a seal, so that nothing of it is read.
pub fn seal_trees<F: Flash>(store: &mut Store<F>, sealer: &dyn Sealer) -> Result<(), ReadError> {
    store.seal_tree(KERNEL_TREE, Some(sealer.kernel_tree()));
    for child in store.children(KERNEL_TREE, MACHINES_PATH)? {
        let Ok(slot) = child.parse::<usize>() else { continue };
        if let Some(record) = read_record(store, slot) {
            store.seal_tree(tree_of(slot), Some(sealer.machine_tree(&record)));
        }
    }
    Ok(())
}

/// The record of the machine in `slot`, if there is one that can be read.
pub(crate) fn read_record<F: Flash>(store: &mut Store<F>, slot: usize) -> Option<MachineRecord> {
    let value = store.get(KERNEL_TREE, &record_path(slot)).ok()??;
    MachineRecord::from_bytes(&value.bytes)
}

impl<F: Flash> Kernel<F> {
    /// Seals what machines keep from now on. What the store holds has its seals already, by
    /// [`seal_trees`].
    pub fn seal_with(&mut self, sealer: Box<dyn Sealer>) {
        self.sealer = Some(sealer);
    }

    /// Gives the tree of a machine that is new in its slot its seal.
    pub(crate) fn seal_tree_of(&mut self, slot: usize, record: &MachineRecord) {
        if let Some(sealer) = &self.sealer {
            self.store.seal_tree(tree_of(slot), Some(sealer.machine_tree(record)));
        }
    }

    /// Forgets the key of the machine that was in the slot.
    pub(crate) fn unseal_tree(&mut self, tree: TreeId) {
        self.store.seal_tree(tree, None);
    }
}
