//! The seals of machines' values: the kernel says whose a value is, and the node, which holds the keys, how.
//!
//! Two things leave a machine's memory for flash: its tree, and its running state when it is
//! suspended. Both are sealed under keys of that machine alone, and so are the kernel's records.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_store::{ReadError, Seal, Store, Unsealable};

use crate::record::MachineRecord;
use crate::slot::{KERNEL_TREE, MACHINES_PATH, Slot};

/// Holds the keys of a device's machines.
pub trait Sealer: Send {
    /// The seal of the kernel's records.
    fn kernel_tree(&self) -> Box<dyn Seal>;

    /// The seal of the machine's tree.
    fn machine_tree(&self, record: &MachineRecord) -> Box<dyn Seal>;

    /// Seals a machine's running state.
    fn seal_state(&mut self, record: &MachineRecord, state: &mut Vec<u8>);

    /// Opens what [`Sealer::seal_state`] made.
    ///
    /// # Errors
    /// [`Unsealable`] if it isn't the running state of that machine, or was changed.
    fn open_state(&self, record: &MachineRecord, state: &mut Vec<u8>) -> Result<(), Unsealable>;
}

/// Gives all trees that the kernel has in `store` their seals: before [`Kernel::boot`](crate::Kernel::boot), or to look
/// into a store without running it.
///
/// # Errors
/// The store's, if its machines can't be listed. A record that can't be read leaves its machine's
/// tree without a seal, so that nothing of it is read.
pub fn seal_trees<F: Flash>(store: &mut Store<F>, sealer: &dyn Sealer) -> Result<(), ReadError> {
    store.seal_tree(KERNEL_TREE, Some(sealer.kernel_tree()));
    for child in store.children(KERNEL_TREE, MACHINES_PATH)? {
        let Some(slot) = slot_of(&child) else { continue };
        if let Some(record) = read_record(store, slot) {
            store.seal_tree(slot.tree(), Some(sealer.machine_tree(&record)));
        }
    }
    Ok(())
}

/// The record of the machine in `slot`, if there is one that can be read.
pub(crate) fn read_record<F: Flash>(store: &mut Store<F>, slot: Slot) -> Option<MachineRecord> {
    let value = store.get(KERNEL_TREE, &slot.record_path()).ok()??;
    MachineRecord::from_bytes(&value.bytes)
}

/// The slot that a name below [`MACHINES_PATH`] stands for.
pub(crate) fn slot_of(name: &str) -> Option<Slot> {
    Slot::new(name.parse().ok()?)
}
