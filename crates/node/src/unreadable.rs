//! Machines whose record can't be read: what their owner sees of them, and how they are removed.
//!
//! Not even the name of such a machine is known, so that it is shown under the number of its slot.

use alloc::string::ToString as _;

use tenure_hal::Flash;
use tenure_kernel::{Kernel, Slot, unreadable};
use tenure_wire::Name;
use tenure_wire::control::MachineStatus;

const PREFIX: &str = "unreadable-";

/// The slot of an unreadable machine that is shown as `name`, if there is one.
pub(crate) fn slot_named<F: Flash>(kernel: &Kernel<F>, name: &Name) -> Option<Slot> {
    let index = name.as_str().strip_prefix(PREFIX)?.parse().ok()?;
    let slot = Slot::new(index)?;
    unreadable(kernel).any(|(other, _)| other == slot).then_some(slot)
}

/// An unreadable machine in its slot, which stores so many bytes, as a machine is shown.
pub(crate) fn status((slot, stored_bytes): (Slot, usize)) -> Option<MachineStatus> {
    let name: Name = alloc::format!("{PREFIX}{slot}").parse().ok()?;
    Some(MachineStatus {
        state: "unreadable".to_string(),
        last_fault: Some("its record in the store can't be read".to_string()),
        stored_bytes: stored_bytes as u32,
        ..MachineStatus::empty(name)
    })
}
