//! Sealing to somebody's key: hybrid public-key encryption (HPKE, RFC 9180), base mode, one message
//! a context.
//!
//! The suite is DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. Base mode says nothing
//! of who sealed: whoever must know that has the message signed.

use tenure_hal::{Entropy, EntropyError};
use tenure_wire::PublicKey;
use zeroize::Zeroizing;

use crate::{AeadKey, NonContributory, Nonce, StaticSecret, TAG_BYTES, Undecryptable, hmac_sha256};

/// RFC 9180 §7.1: DHKEM(X25519, HKDF-SHA256).
const KEM_SUITE: &[u8] = b"KEM\x00\x20";
/// The KEM, HKDF-SHA256 (§7.2), ChaCha20Poly1305 (§7.3).
const SUITE: &[u8] = b"HPKE\x00\x20\x00\x01\x00\x03";
const MODE_BASE: u8 = 0;

/// The output of sealing beside the ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated {
    /// The ephemeral key that the recipient opens with.
    pub key: PublicKey,
    /// The tag of the message.
    pub tag: [u8; TAG_BYTES],
}

/// Encrypts `message` where it stands to the holder of `recipient`; the tag also covers
/// `associated`, and `info` says what it is for.
///
/// # Errors
/// No randomness, or `recipient` is nobody's key.
pub fn seal_to(
    entropy: &mut dyn Entropy,
    recipient: &PublicKey,
    info: &[u8],
    associated: &[u8],
    message: &mut [u8],
) -> Result<Encapsulated, SealToError> {
    let ephemeral = StaticSecret::generate(entropy).map_err(SealToError::Entropy)?;
    seal_with(&ephemeral, recipient, info, associated, message).map_err(SealToError::Recipient)
}

fn seal_with(
    ephemeral: &StaticSecret,
    recipient: &PublicKey,
    info: &[u8],
    associated: &[u8],
    message: &mut [u8],
) -> Result<Encapsulated, NonContributory> {
    let key = ephemeral.public_key();
    let shared = ephemeral.agree(recipient)?;
    let (aead, nonce) = schedule(shared.as_bytes(), &key, recipient, info);
    Ok(Encapsulated { key, tag: aead.seal(&nonce, associated, message) })
}

/// Decrypts `message` where it stands, which was sealed to the holder of `recipient`.
///
/// # Errors
/// [`Undecryptable`] if anything at all is wrong.
pub fn open_sealed(
    recipient: &StaticSecret,
    encapsulated: &Encapsulated,
    info: &[u8],
    associated: &[u8],
    message: &mut [u8],
) -> Result<(), Undecryptable> {
    let shared = recipient.agree(&encapsulated.key).map_err(|_| Undecryptable)?;
    let own = recipient.public_key();
    let (aead, nonce) = schedule(shared.as_bytes(), &encapsulated.key, &own, info);
    aead.open_detached(&nonce, associated, message, &encapsulated.tag)
}

/// RFC 9180 §4.1 (`ExtractAndExpand`) and §5.1 (`KeySchedule`): the key, and the nonce of the first
/// message.
fn schedule(
    agreed: &[u8; 32],
    ephemeral: &PublicKey,
    recipient: &PublicKey,
    info: &[u8],
) -> (AeadKey, Nonce) {
    let extracted = extract(KEM_SUITE, &[], b"eae_prk", agreed);
    let mut shared = Zeroizing::new([0; 32]);
    expand(KEM_SUITE, &extracted, b"shared_secret", &[&ephemeral.0, &recipient.0], &mut *shared);
    let psk_id_hash = extract(SUITE, &[], b"psk_id_hash", &[]);
    let info_hash = extract(SUITE, &[], b"info_hash", info);
    let context: [&[u8]; 3] = [&[MODE_BASE], &*psk_id_hash, &*info_hash];
    let secret = extract(SUITE, &*shared, b"secret", &[]);
    let mut key = Zeroizing::new([0; 32]);
    expand(SUITE, &secret, b"key", &context, &mut *key);
    let mut nonce = [0; 12];
    expand(SUITE, &secret, b"base_nonce", &context, &mut nonce);
    (AeadKey::from_bytes(&key), Nonce::from_bytes(nonce))
}

/// `LabeledExtract` (§4).
fn extract(suite: &[u8], salt: &[u8], label: &[u8], secret: &[u8]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hmac_sha256(salt, &[b"HPKE-v1", suite, label, secret]))
}

/// `LabeledExpand` (§4).
fn expand(suite: &[u8], secret: &[u8; 32], label: &[u8], info: &[&[u8]], output: &mut [u8]) {
    let length = (output.len() as u16).to_be_bytes();
    let mut parts: [&[u8]; 7] = [&length, b"HPKE-v1", suite, label, &[], &[], &[]];
    parts[4..4 + info.len()].copy_from_slice(info);
    hkdf::Hkdf::<sha2::Sha256>::from_prk(secret)
        .expect("32 bytes are as long as the hash")
        .expand_multi_info(&parts, output)
        .expect("one block is asked for");
}

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealToError {
    /// There is no randomness.
    Entropy(EntropyError),
    /// The recipient's key is nobody's.
    Recipient(NonContributory),
}

impl core::fmt::Display for SealToError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Entropy(error) => write!(f, "{error}"),
            Self::Recipient(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for SealToError {}

#[cfg(test)]
mod tests;
