//! X25519 key agreement (RFC 7748), and the id that follows from a machine's key.

use core::fmt;

use tenure_hal::{Entropy, EntropyError};
use tenure_wire::{MachineId, PublicKey};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::sha256;

/// The id of the machine that holds `key`: the first 12 bytes of the key's SHA-256.
pub fn machine_id(key: &PublicKey) -> MachineId {
    let digest = sha256(&[&key.0]).0;
    let mut id = [0; 12];
    id.copy_from_slice(&digest[..12]);
    MachineId(id)
}

/// An X25519 secret key, long-lived or ephemeral.
#[derive(Clone)]
pub struct StaticSecret(x25519_dalek::StaticSecret);

impl StaticSecret {
    /// The secret in `bytes`, which the caller wipes. Clamping (RFC 7748 §5) is done at each use.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self((*bytes).into())
    }

    /// A new secret.
    ///
    /// # Errors
    /// [`EntropyError`] if there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = zeroize::Zeroizing::new([0; 32]);
        entropy.fill(&mut *bytes)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The secret itself.
    pub(crate) fn to_bytes(&self) -> zeroize::Zeroizing<[u8; 32]> {
        zeroize::Zeroizing::new(self.0.to_bytes())
    }

    /// The public key that belongs to this secret: one multiplication on the curve.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(x25519_dalek::PublicKey::from(&self.0).to_bytes())
    }

    /// Agrees on a secret with the holder of `peer`.
    ///
    /// # Errors
    /// [`NonContributory`] if `peer` is a point of small order, so that the result would not
    /// depend on this secret (RFC 7748 §6.1).
    pub fn agree(&self, peer: &PublicKey) -> Result<SharedSecret, NonContributory> {
        let shared = self.0.diffie_hellman(&peer.0.into());
        if !shared.was_contributory() {
            return Err(NonContributory);
        }
        Ok(SharedSecret(shared.to_bytes()))
    }
}

impl fmt::Debug for StaticSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticSecret(secret)")
    }
}

/// What two parties agreed on. Not a key: it goes through a key derivation first.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SharedSecret([u8; 32]);

impl SharedSecret {
    /// The input for a key derivation.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(secret)")
    }
}

/// The peer's public key is of small order: nobody's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonContributory;

impl fmt::Display for NonContributory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer's public key is of small order")
    }
}

impl core::error::Error for NonContributory {}
