//! SHA-256, HMAC and HKDF over it, and comparison in constant time.

use hmac::{KeyInit, Mac};
use sha2::Digest as _;
use subtle::ConstantTimeEq;
use tenure_wire::Digest;

/// SHA-256 of `parts`, one after the other.
pub fn sha256(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finish()
}

/// SHA-256 of what comes in piece by piece.
#[derive(Clone, Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// The hash of nothing so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// HMAC-SHA256 of `parts`, one after the other.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::new(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finish()
}

/// HMAC-SHA256 of what comes in piece by piece.
#[derive(Clone)]
pub struct Hmac(hmac::Hmac<sha2::Sha256>);

impl Hmac {
    /// The code of nothing so far, under `key`, which may have any length.
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Hmac::new_from_slice(key).expect("HMAC takes keys of every length"))
    }

    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The code of all pieces. Compare it with [`equal`] only.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }
}

/// Fills `output` (at most 8160 bytes, RFC 5869 §2.3) with keys derived from `secret`.
///
/// # Panics
/// If `output` is longer than that: its length is the caller's own constant.
pub fn hkdf_sha256(salt: &[u8], secret: &[u8], info: &[&[u8]], output: &mut [u8]) {
    hkdf::Hkdf::<sha2::Sha256>::new(Some(salt), secret)
        .expand_multi_info(info, output)
        .expect("at most 255 blocks are asked for");
}

/// Whether two byte strings are the same, in a time that depends on their lengths alone.
pub fn equal(one: &[u8], two: &[u8]) -> bool {
    one.ct_eq(two).into()
}
