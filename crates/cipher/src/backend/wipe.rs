//! Zeros that the compiler may not leave out, a machine word at a time.
#![allow(unsafe_code)]

use core::sync::atomic::{Ordering, compiler_fence};

/// Overwrites `bytes` with zeros. (`zeroize` does it byte by byte, which costs short messages
/// more than their encryption.)
#[inline]
pub(crate) fn wipe(bytes: &mut [u8]) {
    // SAFETY: any bits are a valid usize.
    let (head, words, tail) = unsafe { bytes.align_to_mut::<usize>() };
    for byte in head.iter_mut().chain(tail) {
        // SAFETY: an exclusive reference is valid for writes.
        unsafe { core::ptr::write_volatile(byte, 0) };
    }
    for word in words {
        // SAFETY: an exclusive reference is valid for writes.
        unsafe { core::ptr::write_volatile(word, 0) };
    }
    compiler_fence(Ordering::SeqCst);
}
