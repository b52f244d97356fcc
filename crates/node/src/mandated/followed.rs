//! A machine's package and rights before its owner's mandate was followed, as they are kept over restarts.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use tenure_hal::Flash;
use tenure_kernel::{Kernel, MachineRecord};
use tenure_package::Mandate;
use tenure_store::ValueKind;
use tenure_wire::control::ControlError;
use tenure_wire::{Budget, Capabilities, Digest, Name, VerifyingKey, Version};

use crate::trees::{FOLLOWED_PATH, NODE_TREE};

/// The version of the stored value.
const FOLLOWED_VERSION: u8 = 1;

/// The last mandate that was followed for a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    pub(super) version: u8,
    /// The owner who gave it; numbers of another owner's mandates don't count.
    pub(super) owner: VerifyingKey,
    /// The mandate's number.
    pub(super) number: u64,
    /// The number of the placement that it made: a later one is the owner's own.
    pub(super) placement: u64,
    /// Whether the machine was put back, which ends what the mandate allows.
    pub(super) is_back: bool,
    /// The machine's package and rights before.
    pub(super) was: Was,
}

/// A machine's package and rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Was {
    pub(super) package: Digest,
    pub(super) version: Version,
    pub(super) budget: Budget,
    pub(super) grants: Capabilities,
}

impl Followed {
    /// A mandate that is about to be followed for the machine `record`.
    pub(super) fn new(owner: VerifyingKey, mandate: &Mandate, record: &MachineRecord) -> Self {
        Self {
            version: FOLLOWED_VERSION,
            owner,
            number: mandate.number,
            placement: record.placement.saturating_add(1),
            is_back: false,
            was: Was {
                package: record.package,
                version: record.package_version,
                budget: record.budget,
                grants: record.grants.clone(),
            },
        }
    }

    /// The last mandate of `owner` that was followed for `machine`.
    pub(super) fn read<F: Flash>(
        kernel: &mut Kernel<F>,
        owner: &VerifyingKey,
        machine: &Name,
    ) -> Result<Option<Self>, ControlError> {
        let value = kernel.store().get(NODE_TREE, &path_of(machine)).map_err(failed)?;
        let followed = value.and_then(|value| postcard::from_bytes::<Self>(&value.bytes).ok());
        let counts = |known: &Self| known.version == FOLLOWED_VERSION && known.owner == *owner;
        Ok(followed.filter(counts))
    }

    /// Keeps it for `machine`, and forgets those of machines that are gone.
    pub(super) fn keep<F: Flash>(
        &self,
        kernel: &mut Kernel<F>,
        machine: &Name,
    ) -> Result<(), ControlError> {
        let names = kernel.store().children(NODE_TREE, FOLLOWED_PATH).map_err(failed)?;
        for name in names {
            if !kernel.machines().any(|info| info.record.name.as_str() == name) {
                let path = alloc::format!("{FOLLOWED_PATH}.{name}");
                kernel.store().delete(NODE_TREE, &path).map_err(failed)?;
            }
        }
        let bytes = postcard::to_allocvec(self).map_err(failed)?;
        kernel.store().set(NODE_TREE, &path_of(machine), ValueKind::Bytes, &bytes).map_err(failed)
    }
}

fn path_of(machine: &Name) -> String {
    alloc::format!("{FOLLOWED_PATH}.{machine}")
}

fn failed(error: impl core::fmt::Display) -> ControlError {
    ControlError::Device(alloc::format!("the device can't keep what the machine had: {error}"))
}
