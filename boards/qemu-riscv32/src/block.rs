//! Memory that a native machine is given: a piece of the heap, wiped when it goes.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A piece of the heap.
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is the only one that knows its bytes.
unsafe impl Send for Block {}

impl Block {
    /// A piece as `layout` says, all zero; `None` if there is no room.
    pub(crate) fn new(layout: Layout) -> Option<Self> {
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the layout isn't empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as long as it says, with a value from the start, and nobody else's.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // What a machine knew is its own, whoever has the memory next.
        for byte in self.iter_mut() {
            // SAFETY: a byte that is borrowed; volatile, so that it is written though nobody reads it.
            unsafe { core::ptr::write_volatile(byte, 0) };
        }
        // SAFETY: it was allocated so.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
