//! ChaCha20-Poly1305 and XChaCha20-Poly1305, RFC 8439 §2.8, in place with a detached tag.

use core::fmt;
use core::marker::PhantomData;

use zeroize::ZeroizeOnDrop;

use crate::backend::{self, wipe::wipe};
use crate::chacha::{BLOCK_BYTES, Extended, Form, Ietf, KEY_BYTES};
use crate::construction::{AeadError, DOUBLE_ROUNDS, Tag};

/// ChaCha20-Poly1305, RFC 8439.
pub type ChaCha20Poly1305 = Aead<Ietf>;
/// XChaCha20-Poly1305: a nonce of 24 bytes, which may be drawn at random.
pub type XChaCha20Poly1305 = Aead<Extended>;

/// Block 0 makes the authenticator's key (RFC 8439 §2.6), the others encrypt.
const DATA_BYTES_MAX: u64 = (Ietf::BLOCKS - 1) * BLOCK_BYTES as u64;

/// An AEAD under one key. Wiped when dropped.
#[derive(Clone)]
pub struct Aead<F: Form> {
    key: [u8; KEY_BYTES],
    form: PhantomData<F>,
}

impl<F: AeadForm> Aead<F> {
    /// Under `key`.
    pub fn with_key(key: &[u8; KEY_BYTES]) -> Self {
        Self { key: *key, form: PhantomData }
    }

    /// Encrypts `data` in place and authenticates it together with `header`, which stays in clear.
    ///
    /// A nonce must never be used for two messages under one key.
    pub fn seal(&self, nonce: &F::Nonce, header: &[u8], data: &mut [u8]) -> Result<Tag, AeadError> {
        check_length(data)?;
        let state = F::state::<DOUBLE_ROUNDS>(&self.key, nonce);
        Ok(backend::native().seal(&state, header, data))
    }

    /// Checks `tag`, then decrypts `data` in place. If the tag is wrong, `data` stays as it was.
    pub fn open(
        &self,
        nonce: &F::Nonce,
        header: &[u8],
        data: &mut [u8],
        tag: &Tag,
    ) -> Result<(), AeadError> {
        check_length(data)?;
        let state = F::state::<DOUBLE_ROUNDS>(&self.key, nonce);
        backend::native().open(&state, header, data, tag)
    }
}

/// The forms of which RFC 8439 and the XChaCha draft make AEADs.
pub trait AeadForm: Form {}
impl AeadForm for Ietf {}
impl AeadForm for Extended {}

#[inline]
fn check_length(data: &[u8]) -> Result<(), AeadError> {
    if data.len() as u64 > DATA_BYTES_MAX { Err(AeadError::TooLong) } else { Ok(()) }
}

impl<F: Form> Drop for Aead<F> {
    fn drop(&mut self) {
        wipe(&mut self.key);
    }
}

impl<F: Form> ZeroizeOnDrop for Aead<F> {}

impl<F: Form> fmt::Debug for Aead<F> {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aead").finish_non_exhaustive()
    }
}
