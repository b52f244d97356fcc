//! The operations by the crates of RustCrypto, the same code for each curve.

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
                crate::ecdsa::write_der([&r[..], &s[..]], into)
            }

            pub(in crate::software) fn verify(
                key: &[u8],
                digest: &[u8],
                signature: &[u8],
            ) -> Result<(), SecurityError> {
                let key = VerifyingKey::from(&point(key)?);
                let mut numbers = [0; 2 * $scalar_bytes];
                crate::ecdsa::read_der(signature, &mut numbers)?;
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
curve!(p256, crate::Group::Secp256r1, crate::HashAlgorithm::Sha256, 32);
#[cfg(feature = "p384")]
curve!(p384, crate::Group::Secp384r1, crate::HashAlgorithm::Sha384, 48);
