//! A hub's storage on NOR flash: each record is a value of a power-safe tree.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Display;

use tenure_hal::{Entropy, Flash};
use tenure_store::{Store, TreeId, ValueKind};
use tenure_wire::Name;

use crate::error::OpenError;
use crate::storage::{Accepted, Kept, Storage, StorageError};

const OWN_TREE: TreeId = TreeId(0);
const DEVICES_TREE: TreeId = TreeId(1);
const SEED_PATH: &str = "seed";

/// A storage on flash. Each write is safe when it returns.
pub struct FlashStorage<F> {
    store: Store<F>,
}

impl<F: Flash> FlashStorage<F> {
    /// Takes up the storage on `flash`, or makes a blank flash one, with a salt that no device can know.
    ///
    /// # Errors
    /// The flash holds something else, or there is no randomness; nothing was overwritten.
    pub fn open(flash: F, entropy: &mut dyn Entropy) -> Result<Self, OpenError> {
        let mut salt = [0; 4];
        entropy.fill(&mut salt).map_err(|_| OpenError::Entropy)?;
        let mounted = Store::mount_or_format(flash, u32::from_le_bytes(salt));
        let store = mounted.map(|(store, _)| store);
        Ok(Self { store: store.map_err(failed("the store can't be taken up"))? })
    }
}

impl<F: Flash> Storage for FlashStorage<F> {
    fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError> {
        let kept = self.store.get(OWN_TREE, SEED_PATH).map_err(failed(READ))?;
        let damaged = || StorageError::new("the stored identity is damaged or missing");
        let Some(value) = kept else {
            // A hub that has devices has a key, and isn't to become another one for want of it.
            return if self.store.trees().next().is_none() { Ok(None) } else { Err(damaged()) };
        };
        let seed = value.bytes.try_into();
        seed.map(Some).map_err(|_| damaged())
    }

    fn set_seed(&mut self, seed: &[u8; 32]) -> Result<(), StorageError> {
        self.store.set(OWN_TREE, SEED_PATH, ValueKind::Bytes, seed).map_err(failed(WRITE))
    }

    fn records(&mut self) -> Result<Vec<Kept>, StorageError> {
        let devices = self.store.children(DEVICES_TREE, "").map_err(failed(READ))?;
        let mut records = Vec::new();
        for device in devices {
            let Ok(Some(value)) = self.store.get(DEVICES_TREE, &device) else { continue };
            records.extend(postcard::from_bytes::<Kept>(&value.bytes));
        }
        Ok(records)
    }

    fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError> {
        let device = accepted.record.enrolment.device.as_str();
        let kept = crate::encode(accepted.kept);
        self.store.set(DEVICES_TREE, device, ValueKind::Bytes, &kept).map_err(failed(WRITE))
    }

    fn delete(&mut self, device: &Name) -> Result<(), StorageError> {
        self.store.delete(DEVICES_TREE, device.as_str()).map(|_| ()).map_err(failed(WRITE))
    }
}

const READ: &str = "the hub's own values can't be read";
const WRITE: &str = "the hub's own values can't be written";

/// An error of the store, with what the store couldn't do.
fn failed<E: Display>(action: &str) -> impl FnOnce(E) -> StorageError {
    move |error| StorageError::new(format!("{action}: {error}"))
}
