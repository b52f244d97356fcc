//! The keys that seal what the device keeps, all of them derived from its seed.
//!
//! The seed itself stands in the open in the node's own tree: it is what a software device has instead
//! of a secure element, and whoever reads the whole flash has everything. What sealing is for is
//! everything short of that: a log, a partial dump, a value put into another's place, another tenant.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tenure_crypto::{AeadKey, EXTENDED_NONCE_BYTES, Nonce, Seed};
use tenure_hal::Flash;
use tenure_kernel::{MachineRecord, Sealer, seal_trees};
use tenure_store::{ReadError, Seal, Store, TAG_BYTES, Unsealable};

use crate::trees::{NODE_TREE, SEALED_TREE, SEED_PATH};

const _: () = assert!(TAG_BYTES == tenure_crypto::TAG_BYTES);

/// Gives every tree in a device's store its seal, so that it can be read: what a node does when it
/// boots, and what a tool does that looks into the flash of a device.
///
/// # Errors
/// The store's. A store without a seed has nothing sealed.
pub fn unseal_store<F: Flash>(store: &mut Store<F>) -> Result<(), ReadError> {
    let seed = store.get(NODE_TREE, SEED_PATH)?;
    let Some(seed) = seed.and_then(|value| value.bytes.try_into().ok()) else { return Ok(()) };
    seal_store(store, &Keys::new(Seed::from_bytes(&seed), [0; 16]))
}

/// Gives every tree in the store its seal.
pub(crate) fn seal_store<F: Flash>(store: &mut Store<F>, keys: &Keys) -> Result<(), ReadError> {
    let key = keys.seed.device_tree_key(SEALED_TREE.0);
    store.seal_tree(SEALED_TREE, Some(Box::new(TreeSeal(key))));
    seal_trees(store, keys)
}

/// The keys of a device.
pub(crate) struct Keys {
    seed: Seed,
    /// Drawn at random for this boot, so that no state's nonce is one of another boot, even if the flash
    /// was put back in between.
    boot_salt: [u8; 16],
    /// How many states were sealed in this boot.
    states: u64,
}

impl Keys {
    /// The keys that follow from `seed`, in a boot for which `boot_salt` was drawn.
    pub(crate) fn new(seed: Seed, boot_salt: [u8; 16]) -> Self {
        Self { seed, boot_salt, states: 0 }
    }
}

#[cfg(feature = "mesh")]
impl Keys {
    /// The seal of the tree of a leaf's service that was made with `salt`.
    pub(crate) fn service_tree(&self, salt: &[u8; 16]) -> Box<dyn Seal> {
        Box::new(TreeSeal(self.seed.machine_tree_key(salt)))
    }
}

impl Sealer for Keys {
    fn kernel_tree(&self) -> Box<dyn Seal> {
        Box::new(TreeSeal(self.seed.device_tree_key(tenure_kernel::KERNEL_TREE.0)))
    }

    fn machine_tree(&self, record: &MachineRecord) -> Box<dyn Seal> {
        Box::new(TreeSeal(self.seed.machine_tree_key(&record.salt)))
    }

    fn seal_state(&mut self, record: &MachineRecord, state: &mut Vec<u8>) {
        let mut nonce = [0; EXTENDED_NONCE_BYTES];
        nonce[..16].copy_from_slice(&self.boot_salt);
        nonce[16..].copy_from_slice(&self.states.to_le_bytes());
        self.states += 1;
        let key = self.seed.machine_state_key(&record.salt);
        let tag = key.seal(&nonce, &record.public_key.0, state);
        state.extend(tag);
        state.extend(nonce);
    }

    fn open_state(&self, record: &MachineRecord, state: &mut Vec<u8>) -> Result<(), Unsealable> {
        let (sealed, nonce) =
            state.split_last_chunk_mut::<EXTENDED_NONCE_BYTES>().ok_or(Unsealable)?;
        let key = self.seed.machine_state_key(&record.salt);
        let length = key.open(nonce, &record.public_key.0, sealed).map_err(|_| Unsealable)?.len();
        state.truncate(length);
        Ok(())
    }
}

/// A tree's values under its key.
struct TreeSeal(AeadKey);

impl Seal for TreeSeal {
    fn seal(&self, number: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
        self.0.seal(&Nonce::from_counter(number), associated, value)
    }

    fn open(
        &self,
        number: u64,
        associated: &[u8],
        value: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), Unsealable> {
        let nonce = Nonce::from_counter(number);
        self.0.open_detached(&nonce, associated, value, tag).map_err(|_| Unsealable)
    }
}
