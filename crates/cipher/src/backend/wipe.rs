//! Zeros that the compiler may not leave out, a machine word at a time.
#![allow(unsafe_code)]

use core::sync::atomic::{Ordering, compiler_fence};

/// Integers of which any bits, all zeros among them, are a value.
pub(crate) trait Plain {}
impl Plain for u8 {}
impl Plain for u32 {}

/// Overwrites `values` with zeros. (`zeroize` does it element by element, which costs short
/// messages more than their encryption.)
#[inline]
pub(crate) fn wipe<T: Plain>(values: &mut [T]) {
    // SAFETY: any bits are a valid value of both types.
    let (head, words, tail) = unsafe { values.align_to_mut::<usize>() };
    for value in head {
        // SAFETY: an exclusive reference is valid for writes, and zeros are a value.
        unsafe { core::ptr::write_volatile(value, core::mem::zeroed()) };
    }
    for word in words {
        // SAFETY: an exclusive reference is valid for writes.
        unsafe { core::ptr::write_volatile(word, 0) };
    }
    for value in tail {
        // SAFETY: an exclusive reference is valid for writes, and zeros are a value.
        unsafe { core::ptr::write_volatile(value, core::mem::zeroed()) };
    }
    compiler_fence(Ordering::SeqCst);
}
