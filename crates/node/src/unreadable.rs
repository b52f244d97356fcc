//! Machines whose record can't be read: what their owner sees of them, and how they are removed.
//!
//! Not even the name of such a machine is known, so that it is shown under the number of its slot.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_kernel::{Kernel, Slot, unreadable};
use tenure_wire::control::MachineStatus;
use tenure_wire::{
    Budget, CodeKind, Digest, MachineId, Name, PublicKey, Share, Term, VerifyingKey, Version,
};

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
        package: name.clone(),
        name,
        id: MachineId([0; 12]),
        key: PublicKey([0; 32]),
        digest: Digest([0; 32]),
        tenant: VerifyingKey([0; 32]),
        exports: Vec::new(),
        state: "unreadable".to_string(),
        queue_length: 0,
        tasks_done: 0,
        fuel_used: 0,
        faults: 0,
        repute: "good".to_string(),
        last_fault: Some("its record in the store can't be read".to_string()),
        memory_bytes: 0,
        stored_bytes: stored_bytes as u32,
        budget: Budget::default(),
        at_native_speed: false,
        code: CodeKind::WebAssembly,
        share: Share::default(),
        term: Term::default(),
        lease_unix_s: 0,
        lease_number: 0,
        grace_left_s: 0,
        base_bytes: 0,
        waited_max_us: 0,
        wait_bound_us: 0,
        serves: None,
        serves_ms: 0,
        version: Version::default(),
    })
}
