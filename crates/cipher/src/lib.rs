//! Stream ciphers and their authenticator: ChaCha20, XChaCha20, Poly1305 and the AEADs made of them.
//!
//! Invariants:
//! - No keystream byte is ever used twice under one key and nonce: running past the last block is
//!   an error, not a wrapped counter.
//! - No branch and no index depends on a secret.
//! - Nothing is allocated, and no input panics.
//! - Unsafe code and assembly stand in the files under `backend/` (and the run-time interfaces of
//!   clusters) alone; each is tested against the portable backend.
//!
//! ```
//! use tenure_cipher::ChaCha20Poly1305;
//!
//! let aead = ChaCha20Poly1305::with_key(&[7; 32]);
//! let mut message = *b"attack at dawn";
//! let tag = aead.seal(&[1; 12], b"header", &mut message)?;
//! assert_ne!(&message, b"attack at dawn");
//! aead.open(&[1; 12], b"header", &mut message, &tag)?;
//! assert_eq!(&message, b"attack at dawn");
//! # Ok::<(), tenure_cipher::AeadError>(())
//! ```
#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod accumulator;
mod aead;
pub mod backend;
mod chacha;
pub mod cluster;
mod construction;
mod native;
mod operations;
mod poly1305;
#[cfg(feature = "rustcrypto")]
mod rustcrypto;
mod stream;

pub use crate::accumulator::{PolyState, TAG_BYTES};
pub use crate::aead::{Aead, AeadForm, ChaCha20Poly1305, XChaCha20Poly1305};
pub use crate::chacha::{
    BLOCK_BYTES, Block, Extended, Form, Ietf, KEY_BYTES, Legacy, State, hchacha,
};
pub use crate::construction::{AeadError, Tag};
pub use crate::poly1305::Poly1305;
pub use crate::stream::{
    ChaCha8, ChaCha8Legacy, ChaCha12, ChaCha12Legacy, ChaCha20, ChaCha20Legacy, KeystreamEnd,
    Stream, XChaCha8, XChaCha12, XChaCha20,
};
