//! Memory that a native machine is given: a piece of the heap, wiped when it goes.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A piece of the heap.
pub struct Block {
    start: NonNull<u8>,
    /// How much of it is given.
    bytes: usize,
    layout: Layout,
}

// SAFETY: it is the only one that knows its bytes.
unsafe impl Send for Block {}

impl Block {
    /// A piece as `layout` says, all zero, of which the first `bytes` are given; the others, if there are
    /// any, are nobody's. `None` if there is no room.
    pub fn new(bytes: usize, layout: Layout) -> Option<Self> {
        if layout.size() == 0 || bytes > layout.size() {
            return None;
        }
        // SAFETY: the layout isn't empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, bytes, layout })
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: no longer than the piece, with a value from the start, and nobody else's.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Block {
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
