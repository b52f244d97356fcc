//! The cipher engine beside RustCrypto's crates: see `differential`.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cipher/tests/differential/mod.rs"]
mod differential;

fuzz_target!(|bytes: &[u8]| differential::check(bytes));
