//! A machine's package and rights before its owner's mandate was followed, as they are kept over restarts.
//!
//! Of machines that are gone one number is left, that of the newest mandate among theirs: a mandate that isn't newer
//! counts for no machine of which nothing else is known, so that none counts twice. The same is left of former owners'
//! mandates, in whose place another owner's were followed.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_hal::Flash;
use tenure_kernel::{Kernel, MachineInfo, MachineRecord};
use tenure_package::Mandate;
use tenure_store::{Change, ValueKind};
use tenure_wire::control::ControlError;
use tenure_wire::{Budget, Capabilities, Digest, Name, VerifyingKey, Version};

use crate::former_numbers::FormerNumbers;
use crate::trees::{FOLLOWED_PATH, FORMER_MANDATES_PATH, NODE_TREE};

/// The version of the stored value.
const FOLLOWED_VERSION: u8 = 1;
/// The version of [`Forgotten`].
const FORGOTTEN_VERSION: u8 = 1;

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
        Ok(Self::read_any(kernel, machine)?.filter(|known| known.owner == *owner))
    }

    /// The last mandate that was followed for `machine`, whoever gave it.
    fn read_any<F: Flash>(
        kernel: &mut Kernel<F>,
        machine: &Name,
    ) -> Result<Option<Self>, ControlError> {
        let value = kernel.store().get(NODE_TREE, &path_of(machine)).map_err(failed)?;
        Ok(value.and_then(|value| Self::from_bytes(&value.bytes)))
    }

    /// The mandate that `bytes` hold, if the value is of this version.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let followed: Self = postcard::from_bytes(bytes).ok()?;
        (followed.version == FOLLOWED_VERSION).then_some(followed)
    }

    /// Keeps it for `machine`, and of machines that are gone the greatest number alone.
    pub(super) fn keep<F: Flash>(
        &self,
        kernel: &mut Kernel<F>,
        machine: &Name,
    ) -> Result<(), ControlError> {
        let mut number = Forgotten::read(kernel, &self.owner)?;
        let known_before = former(kernel)?;
        let others = Forgotten::read_any(kernel)?.filter(|kept| kept.owner != self.owner);
        let mut former = others
            .map_or_else(|| known_before.clone(), |kept| known_before.and(kept.owner, kept.number));
        let mut gone = Vec::new();
        for name in kernel.store().children(NODE_TREE, FOLLOWED_PATH).map_err(failed)? {
            let is_it = |info: MachineInfo<'_>| info.record.name.as_str() == name;
            let is_there = kernel.machines().chain(kernel.trash()).any(is_it);
            if is_there && name != machine.as_str() {
                continue;
            }
            let known = match name.parse() {
                Ok(name) => Self::read_any(kernel, &name)?,
                Err(_) => None,
            };
            match known {
                Some(known) if known.owner != self.owner => {
                    former = former.and(known.owner, known.number);
                }
                Some(known) if !is_there => number = number.max(Some(known.number)),
                _ => {}
            }
            if !is_there {
                gone.push(alloc::format!("{FOLLOWED_PATH}.{name}"));
            }
        }
        let value = postcard::to_allocvec(self).map_err(failed)?;
        let forgotten = number.map(|number| Forgotten::new(self.owner, number));
        let forgotten = forgotten.map(|forgotten| postcard::to_allocvec(&forgotten)).transpose();
        let forgotten = forgotten.map_err(failed)?;
        let set =
            |path, value| Change::Set { tree: NODE_TREE, path, kind: ValueKind::Bytes, value };
        let path = path_of(machine);
        let former_bytes = (former != known_before).then(|| former.to_bytes());
        let mut changes = Vec::from([set(&path, &value)]);
        changes.extend(former_bytes.iter().map(|value| set(FORMER_MANDATES_PATH, value)));
        changes.extend(forgotten.iter().map(|value| set(FOLLOWED_PATH, value)));
        changes.extend(gone.iter().map(|path| Change::Delete { tree: NODE_TREE, path }));
        kernel.store().batch(&changes).map_err(failed)
    }
}

/// The mandates that were followed for machines that are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forgotten {
    version: u8,
    owner: VerifyingKey,
    /// The greatest number among them.
    number: u64,
}

impl Forgotten {
    fn new(owner: VerifyingKey, number: u64) -> Self {
        Self { version: FORGOTTEN_VERSION, owner, number }
    }

    /// The greatest number among mandates of `owner`, if any was followed for a machine that is gone, or that another owner
    /// had since.
    pub(super) fn read<F: Flash>(
        kernel: &mut Kernel<F>,
        owner: &VerifyingKey,
    ) -> Result<Option<u64>, ControlError> {
        let kept = Self::read_any(kernel)?.filter(|kept| kept.owner == *owner);
        let former = Some(former(kernel)?.last_of(owner)).filter(|number| *number > 0);
        Ok(kept.map(|kept| kept.number).max(former))
    }

    fn read_any<F: Flash>(kernel: &mut Kernel<F>) -> Result<Option<Self>, ControlError> {
        let value = kernel.store().get(NODE_TREE, FOLLOWED_PATH).map_err(failed)?;
        Ok(value.and_then(|value| Self::from_bytes(&value.bytes)))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let forgotten: Self = postcard::from_bytes(bytes).ok()?;
        (forgotten.version == FORGOTTEN_VERSION).then_some(forgotten)
    }
}

/// The numbers of former owners' newest mandates.
fn former<F: Flash>(kernel: &mut Kernel<F>) -> Result<FormerNumbers, ControlError> {
    let value = kernel.store().get(NODE_TREE, FORMER_MANDATES_PATH).map_err(failed)?;
    let kept = value.and_then(|value| FormerNumbers::from_bytes(&value.bytes));
    Ok(kept.unwrap_or_default())
}

fn path_of(machine: &Name) -> String {
    alloc::format!("{FOLLOWED_PATH}.{machine}")
}

fn failed(error: impl core::fmt::Display) -> ControlError {
    ControlError::Device(alloc::format!("the device can't keep what the machine had: {error}"))
}

#[cfg(test)]
mod tests {
    use tenure_hal::simulated::RamFlash;
    use tenure_hal::{FlashGeometry, Instant};
    use tenure_kernel::Config;
    use tenure_store::Store;
    use tenure_testbed::frozen;

    use super::*;

    /// A mandate of that owner's and number, as it was followed.
    fn followed(owner: u8, number: u64) -> Followed {
        Followed {
            version: FOLLOWED_VERSION,
            owner: VerifyingKey([owner; 32]),
            number,
            placement: 7,
            is_back: true,
            was: Was {
                package: Digest([2; 32]),
                version: Version { major: 1, minor: 2, patch: 3 },
                budget: Budget::default(),
                grants: Capabilities::default(),
            },
        }
    }

    #[test]
    fn newest_number_of_an_owner_stays_though_mandates_of_another_take_its_place() {
        let flash = || {
            let (sector_bytes, program_bytes) = (4096, 4);
            RamFlash::new(FlashGeometry { sector_bytes, sector_count: 16, program_bytes })
        };
        let store = Store::format(flash()).unwrap();
        let config = Config::default();
        let id = tenure_crypto::machine_id;
        let mut kernel = Kernel::boot(store, flash(), config, Instant::BOOT, id).unwrap();
        // None of the machines is there any more.
        let machines = ["clock", "door", "lamp", "meter", "pump"];
        let words = [(1, 5), (1, 3), (2, 900), (2, 4), (1, 2)];
        for (machine, (owner, number)) in machines.iter().zip(words) {
            followed(owner, number).keep(&mut kernel, &machine.parse().unwrap()).unwrap();
        }
        for (owner, newest) in [(1, Some(5)), (2, Some(900)), (3, None)] {
            let owner = VerifyingKey([owner; 32]);
            assert_eq!(Forgotten::read(&mut kernel, &owner).unwrap(), newest);
        }
    }

    #[test]
    fn followed_mandate_of_version_1_is_written_and_read() {
        let followed = followed(1, 300);
        let written = postcard::to_allocvec(&followed).unwrap();
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "followed-1", &written);
        assert_eq!(Followed::from_bytes(&bytes), Some(followed));
        bytes[0] += 1;
        assert_eq!(Followed::from_bytes(&bytes), None, "another version isn't guessed at");
    }

    #[test]
    fn mandates_of_machines_that_are_gone_are_written_and_read() {
        let forgotten = Forgotten::new(VerifyingKey([1; 32]), 300);
        let written = postcard::to_allocvec(&forgotten).unwrap();
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "forgotten-1", &written);
        assert_eq!(Forgotten::from_bytes(&bytes), Some(forgotten));
        bytes[0] += 1;
        assert_eq!(Forgotten::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
