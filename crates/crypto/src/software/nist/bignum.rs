//! The operations by `tenure-bignum`, with nonces of RFC 6979.

use tenure_bignum::Curve;
use zeroize::Zeroizing;

use crate::ecdsa::{read_der, write_der};
use crate::{AgreedSecret, Group, HashAlgorithm, HashValue, SecurityError};

/// Bytes of the longest scalar.
const BYTES_MAX: usize = if cfg!(feature = "p384") { 48 } else { 32 };

/// A module of the four operations on one curve.
macro_rules! curve {
    ($name:ident, $curve:expr, $group:expr, $hash:expr, $scalar_bytes:literal) => {
        pub(in crate::software) mod $name {
            use super::*;

            /// Writes the public key of `secret` to `public`, uncompressed, and returns its group.
            pub(in crate::software) fn public_key(
                secret: &[u8; $scalar_bytes],
                public: &mut [u8],
            ) -> Result<Group, SecurityError> {
                let written = $curve.public_key(secret, public);
                written.map(|()| $group).map_err(|_| SecurityError::InvalidSecretKey)
            }

            /// The x coordinate of the product of `secret` and the uncompressed point `peer`.
            pub(in crate::software) fn agree(
                secret: &[u8; $scalar_bytes],
                peer: &[u8],
            ) -> Result<AgreedSecret, SecurityError> {
                let mut shared = Zeroizing::new([0; $scalar_bytes]);
                let agreed = $curve.agree(secret, peer, &mut *shared);
                agreed.map_err(|_| SecurityError::InvalidPublicKey)?;
                Ok(AgreedSecret::new(&[&*shared]))
            }

            /// Signs with the curve's own hash, by a nonce that follows from key and message.
            pub(in crate::software) fn sign(
                secret: &[u8; $scalar_bytes],
                message: &[u8],
                into: &mut [u8],
            ) -> Result<usize, SecurityError> {
                super::sign(&$curve, $hash, secret, message, into)
            }

            pub(in crate::software) fn verify(
                key: &[u8],
                digest: &[u8],
                signature: &[u8],
            ) -> Result<(), SecurityError> {
                super::verify(&$curve, key, digest, signature)
            }
        }
    };
}

#[cfg(feature = "p256")]
curve!(p256, tenure_bignum::P256, Group::Secp256r1, HashAlgorithm::Sha256, 32);
#[cfg(feature = "p384")]
curve!(p384, tenure_bignum::P384, Group::Secp384r1, HashAlgorithm::Sha384, 48);

fn verify(curve: &Curve, key: &[u8], digest: &[u8], signature: &[u8]) -> Result<(), SecurityError> {
    let mut numbers = [0; 2 * BYTES_MAX];
    let numbers = &mut numbers[..2 * curve.bytes()];
    read_der(signature, numbers)?;
    curve.verify(key, digest, numbers).map_err(|_| SecurityError::BadSignature)
}

fn sign(
    curve: &Curve,
    hash: HashAlgorithm,
    secret: &[u8],
    message: &[u8],
    into: &mut [u8],
) -> Result<usize, SecurityError> {
    let digest = hash.digest(&[message]);
    let bytes = curve.bytes();
    let mut scalar = [0; BYTES_MAX];
    curve.digest_bytes(&digest, &mut scalar);
    let mut nonces = Nonces::new(hash, secret, &scalar[..bytes]);
    let mut numbers = [0; 2 * BYTES_MAX];
    let numbers = &mut numbers[..2 * bytes];
    // A candidate is out of range once in 2^32; a secret key out of range is so each time.
    const CANDIDATES_MAX: usize = 4;
    for _ in 0..CANDIDATES_MAX {
        if curve.sign(secret, nonces.next(bytes), &digest, numbers).is_ok() {
            let (r, s) = numbers.split_at(bytes);
            return write_der([r, s], into);
        }
    }
    Err(SecurityError::InvalidSecretKey)
}

/// The nonces of RFC 6979 §3.2 for one key and digest.
struct Nonces {
    hash: HashAlgorithm,
    key: HashValue,
    value: HashValue,
    candidate: Zeroizing<[u8; BYTES_MAX]>,
    is_first: bool,
}

impl Nonces {
    /// Both are scalars of the curve, in bytes.
    fn new(hash: HashAlgorithm, secret: &[u8], digest: &[u8]) -> Self {
        let (key, mut value) = (HashValue::zeros(hash), HashValue::zeros(hash));
        value.fill(1);
        let candidate = Zeroizing::new([0; BYTES_MAX]);
        let mut nonces = Self { hash, key, value, candidate, is_first: true };
        nonces.rekey(&[0], secret, digest);
        nonces.rekey(&[1], secret, digest);
        nonces
    }

    /// The next candidate, of as many bytes.
    fn next(&mut self, bytes: usize) -> &[u8] {
        if !core::mem::take(&mut self.is_first) {
            self.rekey(&[0], &[], &[]);
        }
        let candidate = &mut self.candidate[..bytes];
        for chunk in candidate.chunks_mut(self.hash.digest_bytes()) {
            self.value = self.hash.hmac(&self.key, &[&self.value]);
            chunk.copy_from_slice(&self.value[..chunk.len()]);
        }
        candidate
    }

    fn rekey(&mut self, separator: &[u8], secret: &[u8], digest: &[u8]) {
        self.key = self.hash.hmac(&self.key, &[&self.value, separator, secret, digest]);
        self.value = self.hash.hmac(&self.key, &[&self.value]);
    }
}

#[cfg(test)]
#[path = "bignum_tests.rs"]
mod tests;
