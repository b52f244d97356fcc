//! ECDH and ECDSA on NIST's curves (FIPS 186-5, SEC 1): by RustCrypto where a word has 64 bits, by
//! `tenure-bignum` on smaller processors.

#[cfg(any(not(target_pointer_width = "64"), test))]
mod bignum;
#[cfg(target_pointer_width = "64")]
mod rustcrypto;

#[cfg(not(target_pointer_width = "64"))]
pub(super) use bignum::*;
#[cfg(target_pointer_width = "64")]
pub(super) use rustcrypto::*;
