//! Arithmetic with keys for processors of 32 bits: NIST's curves, X25519, and numbers modulo anything odd, all
//! on one multiplication of limbs.
//!
//! Invariants:
//! - What takes a secret takes a time that doesn't depend on it; what may vary says so.
//! - No input panics but numbers of other lengths than documented, which are the caller's mistake.
//! - Code is shared before it is fast: P-256, P-384, their orders and RSA run through the same loops.
//! - Unsafe code stands in `limbs/armv6m.rs` alone, around the assembly that multiplies on cores without a
//!   product of 64 bits; it is tested against the portable code on an emulated core.
#![no_std]
#![deny(unsafe_code)]

mod curve;
mod ecdsa;
mod field;
pub mod limbs;
mod montgomery;
mod parameters;
mod rsa;
mod x25519;

pub use curve::Curve;
pub use ecdsa::Invalid;
pub use montgomery::Montgomery;
pub use parameters::P256;
#[cfg(feature = "p384")]
pub use parameters::P384;
pub use rsa::RsaNumbers;
pub use x25519::{BASE, x25519};
