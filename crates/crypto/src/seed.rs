//! The one secret that a device stores, and the keys that follow from it.

use core::fmt;

use tenure_hal::{Entropy, EntropyError};
use tenure_wire::VerifyingKey;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{AeadKey, ExtendedKey, SigningKey, StaticSecret, hkdf_sha256};

/// How long the salt is that tells one machine of a device from another, in bytes.
pub const MACHINE_SALT_BYTES: usize = 16;

const DEVICE_AGREEMENT: &[u8] = b"tenure 1 device agreement";
const DEVICE_SIGNING: &[u8] = b"tenure 1 device signing";
const MACHINE_AGREEMENT: &[u8] = b"tenure 1 machine agreement";
const MACHINE_TREE: &[u8] = b"tenure 1 machine tree";
const MACHINE_STATE: &[u8] = b"tenure 2 machine state";
const DEVICE_TREE: &[u8] = b"tenure 1 device tree";
const TENANT_SECRET: &[u8] = b"tenure 1 tenant secret";

/// A device's seed. All of its keys are HKDF-SHA256 of it under distinct labels, so that the seed
/// is all a device must keep, and knowing one derived key tells nothing about another.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The seed in `bytes`, which the caller wipes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// A new seed.
    ///
    /// # Errors
    /// [`EntropyError`] if there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, EntropyError> {
        let mut seed = Self([0; 32]);
        entropy.fill(&mut seed.0)?;
        Ok(seed)
    }

    /// The seed itself, to be stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The X25519 secret of the device's own machine.
    pub fn device_secret(&self) -> StaticSecret {
        StaticSecret::from_bytes(&self.derive(&[], DEVICE_AGREEMENT))
    }

    /// The Ed25519 key that the device signs its directory records and receipts with.
    pub fn device_signing_key(&self) -> SigningKey {
        SigningKey::from_bytes(&self.derive(&[], DEVICE_SIGNING))
    }

    /// The X25519 secret of the machine that was created with `salt`.
    pub fn machine_secret(&self, salt: &[u8; MACHINE_SALT_BYTES]) -> StaticSecret {
        StaticSecret::from_bytes(&self.derive(salt, MACHINE_AGREEMENT))
    }

    /// The key that seals the tree of the machine that was created with `salt`.
    pub fn machine_tree_key(&self, salt: &[u8; MACHINE_SALT_BYTES]) -> AeadKey {
        AeadKey::from_bytes(&self.derive(salt, MACHINE_TREE))
    }

    /// The key that seals that machine's running state where it leaves the memory.
    pub fn machine_state_key(&self, salt: &[u8; MACHINE_SALT_BYTES]) -> ExtendedKey {
        ExtendedKey::from_bytes(&self.derive(salt, MACHINE_STATE))
    }

    /// The key that seals a tree of the device's own, by the tree's number.
    pub fn device_tree_key(&self, tree: u16) -> AeadKey {
        AeadKey::from_bytes(&self.derive(&tree.to_le_bytes(), DEVICE_TREE))
    }

    /// The key that seals version `version` of a tenant's secret: no other version, of this or
    /// another secret of the tenant's, has the same key, as a tenant numbers all changes of its
    /// secrets in one sequence.
    pub fn secret_key(&self, tenant: &VerifyingKey, version: u64) -> AeadKey {
        let mut salt = [0; 40];
        salt[..32].copy_from_slice(&tenant.0);
        salt[32..].copy_from_slice(&version.to_le_bytes());
        AeadKey::from_bytes(&self.derive(&salt, TENANT_SECRET))
    }

    fn derive(&self, salt: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        hkdf_sha256(salt, &self.0, &[label], &mut *key);
        key
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}
