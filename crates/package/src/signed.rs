//! Statements that somebody signs: how they stand in bytes.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | magic, whose last byte is the version of the format |
//! | 8 | 32 | the Ed25519 key of who signed |
//! | 40 | `n` | the statement (postcard) |
//! | 40 + n | 64 | the signature of all that stands before it |

use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_crypto::{Context, SigningKey, verify};
use tenure_wire::{Signature, VerifyingKey};

const MAGIC_BYTES: usize = 8;
const BODY_AT: usize = MAGIC_BYTES + 32;
const SIGNATURE_BYTES: usize = 64;

/// A kind of statement.
pub(crate) struct Kind {
    pub(crate) magic: [u8; MAGIC_BYTES],
    pub(crate) context: Context,
    /// The longest such statement, in bytes.
    pub(crate) bytes_max: usize,
}

/// Why bytes are no such statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignedError {
    /// They don't begin as one does, or are too long for one.
    Kind,
    /// They begin as one does in a version of the format that isn't read here.
    Version,
    /// They end too soon.
    Truncated,
    /// Nobody with that key signed them.
    Signature,
    /// The signed bytes can't be read.
    Form,
}

impl Kind {
    /// The same in another version of the format.
    pub(crate) const fn of_version(mut self, version: u8) -> Self {
        self.magic[MAGIC_BYTES - 1] = version;
        self
    }

    /// The statement as bytes, signed with `key`.
    pub(crate) fn sign<T: Serialize>(
        &self,
        statement: &T,
        key: &SigningKey,
    ) -> Result<Vec<u8>, SignedError> {
        let body = postcard::to_allocvec(statement).map_err(|_| SignedError::Form)?;
        let mut bytes = Vec::with_capacity(BODY_AT + body.len() + SIGNATURE_BYTES);
        bytes.extend(self.magic);
        bytes.extend(key.verifying_key().0);
        bytes.extend(body);
        let signature = key.sign(self.context, &bytes);
        bytes.extend(signature.to_bytes());
        Ok(bytes)
    }

    /// Whose key stands in `bytes`; nothing says yet that its holder signed them.
    pub(crate) fn signer(&self, bytes: &[u8]) -> Result<VerifyingKey, SignedError> {
        let Some((magic, _)) = bytes.split_first_chunk::<MAGIC_BYTES>() else {
            return Err(SignedError::Kind);
        };
        // The version stands last in the magic.
        if magic[..MAGIC_BYTES - 1] != self.magic[..MAGIC_BYTES - 1] {
            return Err(SignedError::Kind);
        }
        if *magic != self.magic {
            return Err(SignedError::Version);
        }
        if bytes.len() > self.bytes_max {
            return Err(SignedError::Kind);
        }
        let key = bytes[MAGIC_BYTES..].first_chunk().ok_or(SignedError::Truncated)?;
        Ok(VerifyingKey(*key))
    }

    /// The statement in `bytes`, and who signed it.
    pub(crate) fn verify<T: DeserializeOwned>(
        &self,
        bytes: &[u8],
    ) -> Result<(T, VerifyingKey), SignedError> {
        let signer = self.signer(bytes)?;
        let (signed, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or(SignedError::Truncated)?;
        let body = signed.get(BODY_AT..).ok_or(SignedError::Truncated)?;
        verify(&signer, self.context, signed, &Signature::from_bytes(signature))
            .map_err(|_| SignedError::Signature)?;
        match postcard::take_from_bytes(body) {
            Ok((statement, [])) => Ok((statement, signer)),
            _ => Err(SignedError::Form),
        }
    }
}
