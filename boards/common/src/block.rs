//! Memory that a native machine is given: a piece of the heap, wiped when it goes.

use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::heap::Heap;

/// A piece of the heap, with the rules of memory protection for whoever runs in it.
pub struct Block<R> {
    start: NonNull<u8>,
    /// How much of it is given.
    bytes: usize,
    layout: Layout,
    heap: &'static Heap,
    rules: R,
}

// SAFETY: it is the only one that knows its bytes.
unsafe impl<R: Send> Send for Block<R> {}

impl<R> Block<R> {
    /// A piece as `layout` says, all zero, of which the first `bytes` are given; the others, if there are
    /// any, are nobody's. It begins at `at`, if that is said; `rules` are those of a piece at that address.
    /// `None` if there is no room, or no such rules.
    pub fn new(
        heap: &'static Heap,
        (bytes, layout): (usize, Layout),
        at: Option<usize>,
        rules: impl FnOnce(usize) -> Option<R>,
    ) -> Option<Self> {
        if layout.size() == 0 || bytes > layout.size() {
            return None;
        }
        let start = heap.take_piece(layout, at)?;
        let Some(rules) = rules(start.as_ptr().expose_provenance()) else {
            // SAFETY: it was just taken so.
            unsafe { heap.give_back(start, layout) };
            return None;
        };
        Some(Self { start, bytes, layout, heap, rules })
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
        // The next user of the memory must not read the machine's data. The padding is cleared too, since
        // the machine could write to it.
        for offset in 0..self.layout.size() {
            // SAFETY: inside the piece; volatile, so that it is written though nobody reads it.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        // SAFETY: it was taken so.
        unsafe { self.heap.give_back(self.start, self.layout) };
    }
}
