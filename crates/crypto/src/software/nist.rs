//! ECDH and ECDSA on NIST's curves (FIPS 186-5, SEC 1): the same code for each curve's crate.

use crate::SecurityError;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// Reads the two numbers of an `ECDSA-Sig-Value` (RFC 3279 §2.2.3), each into one half of `numbers`. All
/// lengths take one byte: those of P-384 end at 104.
fn read_der(signature: &[u8], numbers: &mut [u8]) -> Result<(), SecurityError> {
    let [SEQUENCE, length @ 0..=0x7f, rest @ ..] = signature else {
        return Err(SecurityError::BadSignature);
    };
    if usize::from(*length) != rest.len() {
        return Err(SecurityError::BadSignature);
    }
    let half = numbers.len() / 2;
    let mut rest = rest;
    for number in numbers.chunks_exact_mut(half) {
        let [INTEGER, length @ 1..=0x7f, after @ ..] = rest else {
            return Err(SecurityError::BadSignature);
        };
        let split = after.split_at_checked(usize::from(*length));
        let (bytes, after) = split.ok_or(SecurityError::BadSignature)?;
        let bytes = match bytes {
            // Positive, and in the shortest form.
            [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => return Err(SecurityError::BadSignature),
            [0, digits @ ..] => digits,
            digits => digits,
        };
        let start = half.checked_sub(bytes.len()).ok_or(SecurityError::BadSignature)?;
        number[..start].fill(0);
        number[start..].copy_from_slice(bytes);
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(SecurityError::BadSignature) }
}

/// Writes an `ECDSA-Sig-Value` of two numbers to the front of `into`, and returns its length.
fn write_der(numbers: [&[u8]; 2], into: &mut [u8]) -> Result<usize, SecurityError> {
    let mut end = 2;
    for number in numbers {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let digits = &number[zeros..];
        // A zero keeps it positive.
        let sign = usize::from(digits.first().is_none_or(|first| *first >= 0x80));
        let length = sign + digits.len();
        let place = into.get_mut(end..end + 2 + length).ok_or(SecurityError::BufferTooSmall)?;
        place[..2].copy_from_slice(&[INTEGER, length as u8]);
        place[2..2 + sign].fill(0);
        place[2 + sign..].copy_from_slice(digits);
        end += 2 + length;
    }
    into[..2].copy_from_slice(&[SEQUENCE, (end - 2) as u8]);
    Ok(end)
}

/// A module of the four operations on one curve.
macro_rules! curve {
    ($name:ident, $group:expr, $hash:expr, $scalar_bytes:literal) => {
        pub(in crate::software) mod $name {
            use ::$name::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
            use ::$name::ecdsa::{Signature, SigningKey, VerifyingKey};
            use ::$name::elliptic_curve::sec1::ToSec1Point;
            use ::$name::{PublicKey, SecretKey};

            use crate::{AgreedSecret, Group, HashAlgorithm, SecurityError};

            /// Writes the public key of `secret` to `public`, uncompressed, and returns its group.
            pub(in crate::software) fn public_key(
                secret: &[u8; $scalar_bytes],
                public: &mut [u8],
            ) -> Result<Group, SecurityError> {
                let secret =
                    SecretKey::from_slice(secret).map_err(|_| SecurityError::InvalidSecretKey)?;
                public.copy_from_slice(secret.public_key().to_sec1_point(false).as_bytes());
                Ok($group)
            }

            /// The x coordinate of the product of `secret` and the uncompressed point `peer`.
            pub(in crate::software) fn agree(
                secret: &[u8; $scalar_bytes],
                peer: &[u8],
            ) -> Result<AgreedSecret, SecurityError> {
                let secret =
                    SecretKey::from_slice(secret).map_err(|_| SecurityError::InvalidSecretKey)?;
                let peer = point(peer)?;
                Ok(AgreedSecret::new(&[secret.diffie_hellman(&peer).raw_secret_bytes()]))
            }

            /// Signs with the curve's own hash, by a nonce that follows from key and message (RFC 6979).
            pub(in crate::software) fn sign(
                secret: &[u8; $scalar_bytes],
                message: &[u8],
                into: &mut [u8],
            ) -> Result<usize, SecurityError> {
                const HASH: HashAlgorithm = $hash;
                let key =
                    SigningKey::from_slice(secret).map_err(|_| SecurityError::InvalidSecretKey)?;
                let signature: Signature = key
                    .sign_prehash(&HASH.digest(&[message]))
                    .map_err(|_| SecurityError::InvalidSecretKey)?;
                let (r, s) = signature.split_bytes();
                super::write_der([&r[..], &s[..]], into)
            }

            pub(in crate::software) fn verify(
                key: &[u8],
                digest: &[u8],
                signature: &[u8],
            ) -> Result<(), SecurityError> {
                let key = VerifyingKey::from(&point(key)?);
                let mut numbers = [0; 2 * $scalar_bytes];
                super::read_der(signature, &mut numbers)?;
                let signature =
                    Signature::from_slice(&numbers).map_err(|_| SecurityError::BadSignature)?;
                key.verify_prehash(digest, &signature).map_err(|_| SecurityError::BadSignature)
            }

            /// Only uncompressed points are taken: TLS 1.3 has no others (RFC 8446 §4.2.8.2).
            fn point(bytes: &[u8]) -> Result<PublicKey, SecurityError> {
                if bytes.len() != 1 + 2 * $scalar_bytes || bytes[0] != 4 {
                    return Err(SecurityError::InvalidPublicKey);
                }
                PublicKey::from_sec1_bytes(bytes).map_err(|_| SecurityError::InvalidPublicKey)
            }
        }
    };
}

#[cfg(feature = "p256")]
curve!(p256, Group::Secp256r1, HashAlgorithm::Sha256, 32);
#[cfg(feature = "p384")]
curve!(p384, Group::Secp384r1, HashAlgorithm::Sha384, 48);
