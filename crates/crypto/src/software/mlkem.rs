//! X25519MLKEM768: ML-KEM-768 (FIPS 203) and X25519, whose secrets stand one after the other
//! (draft-ietf-tls-ecdhe-mlkem).

use ml_kem::kem::{FromSeed, KeyExport};
use ml_kem::{Decapsulate, EncapsulationKey, MlKem768, TryKeyInit};
use tenure_wire::PublicKey;
use zeroize::Zeroizing;

use super::x25519;
use crate::{AgreedSecret, SecurityError, StaticSecret};

/// The seed of the decapsulation key, 64 bytes, and the X25519 secret.
pub(super) const SECRET_BYTES: usize = 64 + 32;
const ENCAPSULATION_KEY_BYTES: usize = 1184;
const CIPHERTEXT_BYTES: usize = 1088;

/// Writes both public keys of `secret` to `public`, which is as long as they are.
pub(super) fn public_key(secret: &[u8; SECRET_BYTES], public: &mut [u8]) {
    let (seed, x25519_secret) = split(secret);
    let (_, key) = MlKem768::from_seed(seed.into());
    public[..ENCAPSULATION_KEY_BYTES].copy_from_slice(&key.to_bytes());
    let x25519_public = StaticSecret::from_bytes(x25519_secret).public_key();
    public[ENCAPSULATION_KEY_BYTES..].copy_from_slice(&x25519_public.0);
}

pub(super) fn decapsulate(
    secret: &[u8; SECRET_BYTES],
    peer: &[u8],
) -> Result<AgreedSecret, SecurityError> {
    let (seed, x25519_secret) = split(secret);
    let (ciphertext, x25519_peer) =
        peer.split_at_checked(CIPHERTEXT_BYTES).ok_or(SecurityError::InvalidPublicKey)?;
    let classical = x25519(x25519_secret, x25519_peer)?;
    let (key, _) = MlKem768::from_seed(seed.into());
    let shared = key.decapsulate_slice(ciphertext).map_err(|_| SecurityError::InvalidPublicKey)?;
    Ok(AgreedSecret::new(&[&*Zeroizing::new(<[u8; 32]>::from(shared)), classical.as_bytes()]))
}

/// Answers `peer` by the X25519 secret and the message in `random`.
pub(super) fn encapsulate(
    random: &[u8; 64],
    peer: &[u8],
    public: &mut [u8],
) -> Result<AgreedSecret, SecurityError> {
    let (message, x25519_secret) = random.split_at(32);
    let x25519_secret: &[u8; 32] =
        x25519_secret.try_into().map_err(|_| SecurityError::InvalidSecretKey)?;
    let message: &[u8; 32] = message.try_into().map_err(|_| SecurityError::InvalidSecretKey)?;
    let (key, x25519_peer) =
        peer.split_at_checked(ENCAPSULATION_KEY_BYTES).ok_or(SecurityError::InvalidPublicKey)?;
    let classical = x25519(x25519_secret, x25519_peer)?;
    let key = EncapsulationKey::<MlKem768>::new_from_slice(key)
        .map_err(|_| SecurityError::InvalidPublicKey)?;
    let (ciphertext, shared) = key.encapsulate_deterministic(message.into());
    public[..CIPHERTEXT_BYTES].copy_from_slice(&ciphertext);
    let own: PublicKey = StaticSecret::from_bytes(x25519_secret).public_key();
    public[CIPHERTEXT_BYTES..].copy_from_slice(&own.0);
    Ok(AgreedSecret::new(&[&*Zeroizing::new(<[u8; 32]>::from(shared)), classical.as_bytes()]))
}

fn split(secret: &[u8; SECRET_BYTES]) -> (&[u8; 64], &[u8; 32]) {
    let (seed, x25519_secret) = secret.split_first_chunk::<64>().expect("96 bytes begin with 64");
    (seed, x25519_secret.try_into().expect("32 bytes are left of 96"))
}
