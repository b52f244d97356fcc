//! Memory that a native machine is given: a piece of the heap, wiped when it goes.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A piece of the heap, with the rules of memory protection for whoever runs in it.
pub struct Block<R> {
    start: NonNull<u8>,
    /// How much of it is given.
    bytes: usize,
    layout: Layout,
    rules: R,
}

// SAFETY: it is the only one that knows its bytes.
unsafe impl<R: Send> Send for Block<R> {}

impl<R> Block<R> {
    /// A piece as `layout` says, all zero, of which the first `bytes` are given; the others, if there are
    /// any, are nobody's. `rules` are those of a piece at that address. `None` if there is no room, or no
    /// such rules.
    pub fn new(
        bytes: usize,
        layout: Layout,
        rules: impl FnOnce(usize) -> Option<R>,
    ) -> Option<Self> {
        if layout.size() == 0 || bytes > layout.size() {
            return None;
        }
        // SAFETY: the layout isn't empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let Some(rules) = rules(start.as_ptr().expose_provenance()) else {
            // SAFETY: it was just allocated so.
            unsafe { dealloc(start.as_ptr(), layout) };
            return None;
        };
        Some(Self { start, bytes, layout, rules })
    }

    /// Its rules.
    pub fn rules(&self) -> &R {
        &self.rules
    }
}

impl<R> Deref for Block<R> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: no longer than the piece, with a value from the start, and nobody else's.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl<R> DerefMut for Block<R> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl<R> Drop for Block<R> {
    fn drop(&mut self) {
        // What a machine knew is its own, whoever has the memory next; what is nobody's it may have
        // reached too.
        for offset in 0..self.layout.size() {
            // SAFETY: inside the piece; volatile, so that it is written though nobody reads it.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        // SAFETY: it was allocated so.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
