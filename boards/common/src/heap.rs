//! The heap of a firmware, first fit, and how much of it is used.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};

use embedded_alloc::LlffHeap;
use tenure_node::HeapUse;

/// A heap; a board makes one its global allocator.
pub struct Heap {
    free_list: LlffHeap,
    /// The most that was ever used. One core and no handler that allocates: loads and stores suffice,
    /// which is all that ARMv6-M has.
    peak: AtomicUsize,
}

impl Heap {
    /// A heap without memory.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { free_list: LlffHeap::empty(), peak: AtomicUsize::new(0) }
    }

    /// Takes memory into use; called once, before anything allocates.
    ///
    /// # Safety
    /// From `start` to `end` lies RAM that is the heap's alone.
    pub unsafe fn init(&self, start: usize, end: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.free_list.init(start, end - start) };
    }

    /// How much is used.
    pub fn usage(&self) -> HeapUse {
        let used_bytes = self.free_list.used();
        HeapUse {
            used_bytes,
            peak_bytes: self.peak.load(Ordering::Relaxed),
            total_bytes: used_bytes + self.free_list.free(),
        }
    }
}

// SAFETY: as the library's heap promises, which does the work.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        let place = unsafe { self.free_list.alloc(layout) };
        let peak = self.peak.load(Ordering::Relaxed);
        self.peak.store(self.free_list.used().max(peak), Ordering::Relaxed);
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.free_list.dealloc(place, layout) };
    }
}
