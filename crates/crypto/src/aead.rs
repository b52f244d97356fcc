//! Authenticated encryption with ChaCha20-Poly1305 (RFC 8439) and, where a part of the nonce is drawn at
//! random, XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03).

use core::fmt;

use tenure_cipher::{ChaCha20Poly1305, XChaCha20Poly1305};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// How many bytes sealing adds.
pub const TAG_BYTES: usize = 16;

/// A key of ChaCha20-Poly1305. Whoever seals with it must never use a nonce twice.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct AeadKey([u8; 32]);

impl AeadKey {
    /// The key in `bytes`, which the caller wipes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// Encrypts `message` where it stands and returns its tag, which also covers `associated`.
    pub fn seal(&self, nonce: &Nonce, associated: &[u8], message: &mut [u8]) -> [u8; TAG_BYTES] {
        #[cfg(planted)]
        tenure_hal::planted::watch_seal(&self.0, &nonce.0, associated, message);
        ChaCha20Poly1305::with_key(&self.0)
            .seal(&nonce.0, associated, message)
            .expect("a message in memory is shorter than the 256 GiB that one nonce covers")
    }

    /// Decrypts `sealed`, a message followed by its tag, where it stands, and returns the message.
    ///
    /// # Errors
    /// [`Undecryptable`] if anything at all is wrong; what `sealed` holds then is not plaintext.
    pub fn open<'a>(
        &self,
        nonce: &Nonce,
        associated: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Undecryptable> {
        let (message, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>().ok_or(Undecryptable)?;
        self.open_detached(nonce, associated, message, tag)?;
        Ok(message)
    }

    /// As [`Self::open`], where the tag doesn't follow the message.
    ///
    /// # Errors
    /// [`Undecryptable`] if anything at all is wrong; what `message` holds then is not plaintext.
    pub fn open_detached(
        &self,
        nonce: &Nonce,
        associated: &[u8],
        message: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), Undecryptable> {
        ChaCha20Poly1305::with_key(&self.0)
            .open(&nonce.0, associated, message, tag)
            .map_err(|_| Undecryptable)
    }
}

/// A key of XChaCha20-Poly1305, whose nonces are long enough to be random in part or as a whole.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct ExtendedKey([u8; 32]);

/// How long a nonce of XChaCha20-Poly1305 is.
pub const EXTENDED_NONCE_BYTES: usize = 24;

impl ExtendedKey {
    /// The key in `bytes`, which the caller wipes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// Encrypts `message` where it stands and returns its tag, which also covers `associated`.
    pub fn seal(
        &self,
        nonce: &[u8; EXTENDED_NONCE_BYTES],
        associated: &[u8],
        message: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        #[cfg(planted)]
        tenure_hal::planted::watch_seal(&self.0, nonce, associated, message);
        XChaCha20Poly1305::with_key(&self.0)
            .seal(nonce, associated, message)
            .expect("a message in memory is shorter than the 256 GiB that one nonce covers")
    }

    /// Decrypts `sealed`, a message followed by its tag, where it stands, and returns the message.
    ///
    /// # Errors
    /// [`Undecryptable`] if anything at all is wrong; what `sealed` holds then is not plaintext.
    pub fn open<'a>(
        &self,
        nonce: &[u8; EXTENDED_NONCE_BYTES],
        associated: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Undecryptable> {
        let (message, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>().ok_or(Undecryptable)?;
        XChaCha20Poly1305::with_key(&self.0)
            .open(nonce, associated, message, tag)
            .map_err(|_| Undecryptable)?;
        Ok(message)
    }
}

impl fmt::Debug for ExtendedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtendedKey(secret)")
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AeadKey(secret)")
    }
}

/// A number that is used once with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; 12]);

impl Nonce {
    /// The nonce in `bytes`.
    pub const fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    /// The nonce of a message counter: four zero bytes, then the counter, little-endian (Noise
    /// revision 34, §12.3).
    pub const fn from_counter(counter: u64) -> Self {
        let mut bytes = [0; 12];
        let counter = counter.to_le_bytes();
        let mut at = 0;
        while at < counter.len() {
            bytes[4 + at] = counter[at];
            at += 1;
        }
        Self(bytes)
    }
}

/// A sealed message was not made with this key, nonce and associated data, or was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecryptable;

impl fmt::Display for Undecryptable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not be decrypted")
    }
}

impl core::error::Error for Undecryptable {}
