//! `wasi:clocks/wall-clock` and `wasi:random`.

use core::arch::wasm32::unreachable;

use super::lower::{allocate, behind, put_list, put_long, put_word};
use crate::clock::{self, NANOSECONDS_PER_SECOND};
use crate::stdio;

/// Writes a `datetime`.
pub(crate) fn put_time(into: u32, nanoseconds: u64) {
    put_long(into, nanoseconds / NANOSECONDS_PER_SECOND);
    put_word(behind(into, 8), (nanoseconds % NANOSECONDS_PER_SECOND) as u32);
}

/// Nanoseconds of a `datetime`.
pub(crate) fn time_of(seconds: u64, nanoseconds: u32) -> u64 {
    seconds.saturating_mul(NANOSECONDS_PER_SECOND).saturating_add(nanoseconds.into())
}

/// `get-random-bytes`: `list<u8>`.
pub(crate) fn random_bytes(length: u64, into: u32) {
    // The program's own allocation fails where that is more than its memory.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let start = allocate(length, 1);
    if clock::random(start, length).is_err() {
        fail()
    }
    put_list(into, start, length);
}

/// `get-random-u64`.
pub(crate) fn random_long() -> u64 {
    let mut bytes = [0; 8];
    if clock::random_bytes(&mut bytes).is_err() {
        fail()
    }
    u64::from_le_bytes(bytes)
}

/// There is no error for it: a program trusts in what it gets.
fn fail() -> ! {
    stdio::complain(b"the device has no random bytes");
    unreachable()
}
