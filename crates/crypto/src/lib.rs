//! The security abstraction layer: every key and every cryptographic operation of a node.
//!
//! Invariants:
//! - A secret is a type of its own, has no `Debug` that shows it, and is wiped when dropped.
//! - Nothing here draws randomness by itself: it comes in through [`tenure_hal::Entropy`].
//! - What a signature or a derived key is for is part of what is signed or derived, so that one
//!   made for one purpose can't serve another.
//! - [`Security`] is what a protocol asks of a backend; [`Software`] does it in plain code.
//! - A key in a secure element has no bytes here: it is named by its slot.
//! - A failed decryption or verification says that it failed and nothing more.
//!
//! Sources: X25519 is RFC 7748, Ed25519 RFC 8032, ChaCha20-Poly1305 RFC 8439, SHA-256 FIPS 180-4,
//! HMAC RFC 2104, HKDF RFC 5869, HPKE RFC 9180.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(all(feature = "simulated", target_pointer_width = "64"))]
extern crate alloc;

mod aead;
mod agreement;
#[cfg(feature = "counts")]
pub mod counts;
mod digest;
#[cfg(any(feature = "element", feature = "p256", feature = "p384"))]
mod ecdsa;
#[cfg(feature = "element")]
pub mod element;
mod hash;
mod hpke;
mod security;
mod seed;
mod signature;
mod software;

pub use aead::{AeadKey, EXTENDED_NONCE_BYTES, ExtendedKey, Nonce, TAG_BYTES, Undecryptable};
pub use agreement::{NonContributory, SharedSecret, StaticSecret, machine_id};
pub use digest::{DIGEST_BYTES_MAX, Hash, HashAlgorithm, HashValue};
pub use hash::{Hmac, Sha256, equal, hkdf_sha256, hmac_sha256, sha256};
pub use hpke::{Encapsulated, SealToError, open_sealed, seal_to};
#[cfg(feature = "rsa-signing")]
pub use security::RsaPrivateKey;
pub use security::{
    AEAD_TAG_BYTES, AGREED_BYTES_MAX, AeadAlgorithm, AgreedSecret, EphemeralKey, Group, PrivateKey,
    PublicKeyRef, SIGNATURE_BYTES_MAX, Security, SecurityError, SignatureAlgorithm, Signed,
};
pub use seed::{MACHINE_SALT_BYTES, Seed};
pub use signature::{BadSignature, Context, SigningKey, verify, verify_digest};
pub use software::{Software, verify as verify_in_software};
