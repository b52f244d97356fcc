//! Ed25519 signatures (RFC 8032) that say what they are for.
//!
//! A signature covers not the message but a statement of fixed length: a fixed prefix, the context
//! with its length, and the SHA-256 of the message. So a signature over a package can't be passed
//! off as one over a directory record, and a package of any size is verified from its digest,
//! which flash can be streamed into.

use core::fmt;

use ed25519_dalek::Signer;
use tenure_hal::{Entropy, EntropyError};
use tenure_wire::{Digest, Signature, VerifyingKey};
use zeroize::Zeroizing;

use crate::sha256;

const PREFIX: &[u8] = b"tenure signature 1\0";
const STATEMENT_BYTES: usize = PREFIX.len() + 1 + Context::BYTES_MAX + 32;

/// The purpose of a signature, such as `"package"` or `"directory record"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(&'static str);

impl Context {
    /// The longest context, in bytes.
    pub const BYTES_MAX: usize = 32;

    /// The context named `purpose`.
    ///
    /// # Panics
    /// If `purpose` is empty or longer than [`Self::BYTES_MAX`]; in a constant, at compile time.
    pub const fn new(purpose: &'static str) -> Self {
        assert!(!purpose.is_empty() && purpose.len() <= Self::BYTES_MAX);
        Self(purpose)
    }
}

/// A secret key that signs.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key in `bytes` (the 32-byte secret of RFC 8032 §5.1.5), which the caller wipes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(bytes))
    }

    /// A new key.
    ///
    /// # Errors
    /// [`EntropyError`] if there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(&mut *bytes)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The secret itself, to be stored.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public key that verifies.
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key().to_bytes())
    }

    /// Signs `message` for the purpose that `context` names.
    pub fn sign(&self, context: Context, message: &[u8]) -> Signature {
        self.sign_digest(context, &sha256(&[message]))
    }

    /// Signs the message whose SHA-256 is `digest`; the same signature as [`Self::sign`] gives.
    pub fn sign_digest(&self, context: Context, digest: &Digest) -> Signature {
        #[cfg(planted)]
        tenure_hal::planted::watch_signing(true);
        let mut statement = [0; STATEMENT_BYTES];
        Signature::from_bytes(&self.0.sign(state(context, digest, &mut statement)).to_bytes())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(secret)")
    }
}

/// Checks that the holder of `key` signed `message` for the purpose that `context` names.
///
/// Strict: keys and commitments of small order and scalars out of range are refused, so that there
/// is one signature a message and a key can't vouch for two.
///
/// # Errors
/// [`BadSignature`] if not.
pub fn verify(
    key: &VerifyingKey,
    context: Context,
    message: &[u8],
    signature: &Signature,
) -> Result<(), BadSignature> {
    verify_digest(key, context, &sha256(&[message]), signature)
}

/// As [`verify`], of the message whose SHA-256 is `digest`.
///
/// # Errors
/// [`BadSignature`] if not.
pub fn verify_digest(
    key: &VerifyingKey,
    context: Context,
    digest: &Digest,
    signature: &Signature,
) -> Result<(), BadSignature> {
    #[cfg(planted)]
    tenure_hal::planted::watch_signing(false);
    #[cfg(feature = "counts")]
    crate::counts::verify();
    let mut statement = [0; STATEMENT_BYTES];
    let statement = state(context, digest, &mut statement);
    let signature = ed25519_dalek::Signature::from_bytes(&signature.to_bytes());
    ed25519_dalek::VerifyingKey::from_bytes(&key.0)
        .and_then(|key| key.verify_strict(statement, &signature))
        .map_err(|_| BadSignature)
}

fn state<'a>(context: Context, digest: &Digest, into: &'a mut [u8; STATEMENT_BYTES]) -> &'a [u8] {
    let length = [context.0.len() as u8];
    let mut end = 0;
    for part in [PREFIX, &length, context.0.as_bytes(), &digest.0] {
        into[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    &into[..end]
}

/// Nobody with that key signed that for that purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSignature;

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signature does not verify")
    }
}

impl core::error::Error for BadSignature {}
