//! The heap: what the linker left of RAM, first fit.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

use linked_list_allocator::Heap;

struct OneHart(UnsafeCell<Heap>);

// SAFETY: one hart, and no interrupt handler that allocates.
unsafe impl Sync for OneHart {}

#[global_allocator]
static HEAP: OneHart = OneHart(UnsafeCell::new(Heap::empty()));

unsafe extern "C" {
    static mut heap_start: u8;
    static heap_end: u8;
}

/// Takes the heap into use; called once, before anything allocates.
pub(crate) fn init() {
    let start = &raw mut heap_start;
    let bytes = (&raw const heap_end).addr() - start.addr();
    // SAFETY: the linker keeps this range for the heap alone, and nothing has allocated yet.
    unsafe { (*HEAP.0.get()).init(start, bytes) };
}

// SAFETY: as the library's `Heap` promises; it is used by one hart, and not from within itself.
unsafe impl GlobalAlloc for OneHart {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: no other reference exists while this one does.
        let heap = unsafe { &mut *self.0.get() };
        heap.allocate_first_fit(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some(pointer) = NonNull::new(pointer) {
            // SAFETY: as above; the caller gives back what `alloc` gave.
            unsafe { (*self.0.get()).deallocate(pointer, layout) };
        }
    }
}
