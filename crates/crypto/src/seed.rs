//! The one secret that a device stores, and the keys that follow from it.

use core::fmt;

use tenure_hal::{Entropy, EntropyError};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{SigningKey, StaticSecret, hkdf_sha256};

/// How long the salt is that tells one machine of a device from another, in bytes.
pub const MACHINE_SALT_BYTES: usize = 16;

const DEVICE_AGREEMENT: &[u8] = b"tenure 1 device agreement";
const DEVICE_SIGNING: &[u8] = b"tenure 1 device signing";
const MACHINE_AGREEMENT: &[u8] = b"tenure 1 machine agreement";

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
