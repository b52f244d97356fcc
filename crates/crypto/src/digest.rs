//! Hashes, HMAC and HKDF of an algorithm that is chosen at run time.
//!
//! Sources: SHA-2 is FIPS 180-4, HMAC RFC 2104, HKDF RFC 5869.

use sha2::Digest as _;
use zeroize::Zeroize;

/// The longest digest, in bytes.
pub const DIGEST_BYTES_MAX: usize = 64;
/// The longest block that a hash takes in at once, in bytes.
const BLOCK_BYTES_MAX: usize = 128;

/// A hash algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    #[cfg(feature = "sha512")]
    Sha384,
    /// SHA-512.
    #[cfg(feature = "sha512")]
    Sha512,
}

impl HashAlgorithm {
    /// The length of a digest, in bytes.
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            #[cfg(feature = "sha512")]
            Self::Sha384 => 48,
            #[cfg(feature = "sha512")]
            Self::Sha512 => 64,
        }
    }

    const fn block_bytes(self) -> usize {
        match self {
            Self::Sha256 => 64,
            #[cfg(feature = "sha512")]
            Self::Sha384 | Self::Sha512 => 128,
        }
    }

    /// The digest of `parts`, one after the other.
    pub fn digest(self, parts: &[&[u8]]) -> HashValue {
        let mut hash = Hash::new(self);
        parts.iter().for_each(|part| hash.update(part));
        hash.finish()
    }

    /// HMAC of `parts`, one after the other, under `key`, which may have any length.
    pub fn hmac(self, key: &[u8], parts: &[&[u8]]) -> HashValue {
        let mut block = [0; BLOCK_BYTES_MAX];
        let block = &mut block[..self.block_bytes()];
        if key.len() > block.len() {
            let hashed = self.digest(&[key]);
            block[..hashed.len()].copy_from_slice(&hashed);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        let mut inner = Hash::new(self);
        inner.update(block);
        parts.iter().for_each(|part| inner.update(part));
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
        let outer = self.digest(&[block, &inner.finish()]);
        block.zeroize();
        outer
    }

    /// `HKDF-Extract`: a key from `secret`, which needn't be uniform.
    pub fn hkdf_extract(self, salt: &[u8], secret: &[u8]) -> HashValue {
        self.hmac(salt, &[secret])
    }

    /// `HKDF-Expand`: fills `output` with keys that follow from `key` and the parts of `info`.
    ///
    /// # Panics
    /// If `output` is longer than 255 digests or `info` has more than six parts: both are the
    /// caller's own constants.
    pub fn hkdf_expand(self, key: &[u8], info: &[&[u8]], output: &mut [u8]) {
        assert!(output.len() <= 255 * self.digest_bytes() && info.len() <= 6);
        let mut previous = HashValue::EMPTY;
        for (index, chunk) in output.chunks_mut(self.digest_bytes()).enumerate() {
            let counter = [index as u8 + 1];
            let mut parts: [&[u8]; 8] = [&[]; 8];
            parts[0] = &previous;
            parts[1..=info.len()].copy_from_slice(info);
            parts[info.len() + 1] = &counter;
            let next = self.hmac(key, &parts[..info.len() + 2]);
            chunk.copy_from_slice(&next[..chunk.len()]);
            previous = next;
        }
    }
}

/// A hash of what comes in piece by piece.
#[derive(Clone)]
pub struct Hash(State);

#[derive(Clone)]
enum State {
    Sha256(sha2::Sha256),
    #[cfg(feature = "sha512")]
    Sha384(sha2::Sha384),
    #[cfg(feature = "sha512")]
    Sha512(sha2::Sha512),
}

impl Hash {
    /// The hash of nothing so far.
    pub fn new(algorithm: HashAlgorithm) -> Self {
        Self(match algorithm {
            HashAlgorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            #[cfg(feature = "sha512")]
            HashAlgorithm::Sha384 => State::Sha384(sha2::Sha384::new()),
            #[cfg(feature = "sha512")]
            HashAlgorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> HashAlgorithm {
        match self.0 {
            State::Sha256(_) => HashAlgorithm::Sha256,
            #[cfg(feature = "sha512")]
            State::Sha384(_) => HashAlgorithm::Sha384,
            #[cfg(feature = "sha512")]
            State::Sha512(_) => HashAlgorithm::Sha512,
        }
    }

    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(hash) => hash.update(bytes),
            #[cfg(feature = "sha512")]
            State::Sha384(hash) => hash.update(bytes),
            #[cfg(feature = "sha512")]
            State::Sha512(hash) => hash.update(bytes),
        }
    }

    /// The digest of all pieces.
    pub fn finish(self) -> HashValue {
        match self.0 {
            State::Sha256(hash) => HashValue::from_slice(&hash.finalize()),
            #[cfg(feature = "sha512")]
            State::Sha384(hash) => HashValue::from_slice(&hash.finalize()),
            #[cfg(feature = "sha512")]
            State::Sha512(hash) => HashValue::from_slice(&hash.finalize()),
        }
    }
}

/// The output of a hash or a key derivation: up to 64 bytes, wiped when dropped.
///
/// It derefs to its bytes. Compare what is secret with [`equal`](crate::equal) only.
#[derive(Clone)]
pub struct HashValue {
    bytes: [u8; DIGEST_BYTES_MAX],
    length: u8,
}

impl HashValue {
    /// No bytes at all.
    pub const EMPTY: Self = Self { bytes: [0; DIGEST_BYTES_MAX], length: 0 };

    /// A copy of `bytes`.
    ///
    /// # Panics
    /// If they are more than [`DIGEST_BYTES_MAX`].
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut value = Self::EMPTY;
        value.bytes[..bytes.len()].copy_from_slice(bytes);
        value.length = bytes.len() as u8;
        value
    }

    /// As many zero bytes as a digest of `algorithm` has.
    pub const fn zeros(algorithm: HashAlgorithm) -> Self {
        Self { bytes: [0; DIGEST_BYTES_MAX], length: algorithm.digest_bytes() as u8 }
    }
}

impl core::ops::Deref for HashValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl core::ops::DerefMut for HashValue {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.length)]
    }
}

impl Drop for HashValue {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl core::fmt::Debug for HashValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "HashValue({} bytes)", self.length)
    }
}
