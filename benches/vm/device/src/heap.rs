//! A heap that never reuses memory but counts what is alive.

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

const BYTES: usize = 12 << 20;

#[repr(align(16))]
struct Arena(core::cell::UnsafeCell<[u8; BYTES]>);

static ARENA: ArenaOfOneHart = ArenaOfOneHart(Arena(core::cell::UnsafeCell::new([0; BYTES])));

struct ArenaOfOneHart(Arena);
// SAFETY: one hart, no interrupts.
unsafe impl Sync for ArenaOfOneHart {}

/// Hands out memory in order.
pub struct Heap {
    used: Cell<usize>,
    live: Cell<usize>,
    peak: Cell<usize>,
}

// SAFETY: one hart, no interrupts.
unsafe impl Sync for Heap {}

impl Heap {
    pub const fn new() -> Heap {
        Heap { used: Cell::new(0), live: Cell::new(0), peak: Cell::new(0) }
    }

    /// Bytes that are allocated and not yet freed.
    #[allow(dead_code)] // not every image asks
    pub fn live(&self) -> usize {
        self.live.get()
    }

    /// The most bytes alive since the last reset.
    #[allow(dead_code)] // not every image asks
    pub fn peak(&self) -> usize {
        self.peak.get()
    }

    #[allow(dead_code)] // not every image asks
    pub fn reset_peak(&self) {
        self.peak.set(self.live.get());
    }
}

// SAFETY: every allocation is a fresh, aligned part of the arena.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // As flash is aligned, whatever its stand-in asks for.
        let start = self.used.get().next_multiple_of(layout.align().max(8));
        let end = start + layout.size();
        if end > BYTES {
            return core::ptr::null_mut();
        }
        self.used.set(end);
        self.live.set(self.live.get() + layout.size());
        self.peak.set(self.peak.get().max(self.live.get()));
        // SAFETY: inside the arena.
        unsafe { ARENA.0.0.get().cast::<u8>().add(start) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: memory is never reused, and begins as zeros.
        unsafe { self.alloc(layout) }
    }

    unsafe fn dealloc(&self, _: *mut u8, layout: Layout) {
        self.live.set(self.live.get() - layout.size());
    }
}
