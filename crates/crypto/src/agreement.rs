//! X25519 key agreement (RFC 7748), and the id that follows from a machine's key.

use core::fmt;

use tenure_hal::{Entropy, EntropyError};
use tenure_wire::{MachineId, PublicKey};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{equal, sha256};

/// The id of the machine that holds `key`: the first 12 bytes of the key's SHA-256.
pub fn machine_id(key: &PublicKey) -> MachineId {
    let digest = sha256(&[&key.0]).0;
    let mut id = [0; 12];
    id.copy_from_slice(&digest[..12]);
    MachineId(id)
}

/// An X25519 secret key, long-lived or ephemeral.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct StaticSecret([u8; 32]);

impl StaticSecret {
    /// The secret in `bytes`, which the caller wipes. Clamping (RFC 7748 §5) is done at each use.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// A new secret.
    ///
    /// # Errors
    /// [`EntropyError`] if there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(&mut *bytes)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The secret itself.
    pub(crate) fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0)
    }

    /// The public key that belongs to this secret: one multiplication on the curve.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(*multiply_base(&self.0))
    }

    /// Agrees on a secret with the holder of `peer`.
    ///
    /// # Errors
    /// [`NonContributory`] if `peer` is a point of small order, so that the result would not
    /// depend on this secret (RFC 7748 §6.1).
    pub fn agree(&self, peer: &PublicKey) -> Result<SharedSecret, NonContributory> {
        let shared = multiply(&self.0, &peer.0);
        if equal(&*shared, &[0; 32]) {
            return Err(NonContributory);
        }
        Ok(SharedSecret(*shared))
    }
}

impl fmt::Debug for StaticSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticSecret(secret)")
    }
}

/// The function X25519 of RFC 7748: by dalek where a word has 64 bits, by `tenure-bignum` elsewhere.
#[cfg(target_pointer_width = "64")]
fn multiply(scalar: &[u8; 32], coordinate: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(x25519_dalek::x25519(*scalar, *coordinate))
}

#[cfg(not(target_pointer_width = "64"))]
use tenure_bignum::x25519 as multiply;

#[cfg(target_pointer_width = "64")]
fn multiply_base(scalar: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(
        x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(*scalar)).to_bytes(),
    )
}

#[cfg(not(target_pointer_width = "64"))]
fn multiply_base(scalar: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    multiply(scalar, &tenure_bignum::BASE)
}

/// A shared secret of two parties. Not a key: it goes through a key derivation first.
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
