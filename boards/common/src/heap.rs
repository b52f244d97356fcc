//! The heap of a firmware: from below what the firmware allocates, first fit; from above, as long as there
//! is room between, the memory of native machines, which can be asked for at the address where it was
//! before a deep sleep.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use linked_list_allocator::Heap as FreeList;
use tenure_node::HeapUse;

use crate::pieces::Pieces;

/// The steps in which the lower part grows, in bytes.
const STEP_BYTES: usize = 1024;
/// Pieces of the upper part at most: what a device has of machines, and the vm's stack. More are taken from
/// the lower one.
const PIECES_MAX: usize = 24;

/// A heap; a board makes one its global allocator.
pub struct Heap(UnsafeCell<Parts>);

struct Parts {
    low: FreeList,
    high: Pieces<PIECES_MAX>,
    /// The most that was ever used.
    peak_bytes: usize,
}

// SAFETY: one core, and no handler allocates: whoever is in here is alone.
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap without memory.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        let (low, high) = (FreeList::empty(), Pieces::up_to(0));
        Self(UnsafeCell::new(Parts { low, high, peak_bytes: 0 }))
    }

    /// Takes memory into use; called once, before anything allocates.
    ///
    /// # Safety
    /// From `start` to `end` lies RAM that is the heap's alone.
    pub unsafe fn init(&self, start: usize, end: usize) {
        let place = core::ptr::with_exposed_provenance_mut(start);
        // SAFETY: as the caller promises; the part is no longer than the whole.
        self.with(|parts| unsafe {
            parts.high = Pieces::up_to(end);
            parts.low.init(place, STEP_BYTES.min(end - start));
        });
    }

    /// How much is used.
    pub fn usage(&self) -> HeapUse {
        self.with(|parts| HeapUse {
            used_bytes: parts.used(),
            peak_bytes: parts.peak_bytes,
            total_bytes: parts.high.end - parts.low.bottom().addr(),
        })
    }

    /// Whether so many bytes are free in one piece.
    pub fn has_piece(&self, bytes: usize) -> bool {
        let Ok(layout) = Layout::from_size_align(bytes, align_of::<usize>()) else { return false };
        self.with(|parts| {
            let place = parts.allocate(layout);
            // SAFETY: it was just allocated so, and nobody has it.
            place.is_some_and(|place| unsafe {
                parts.low.deallocate(place, layout);
                true
            })
        })
    }

    /// A piece for a native machine, all zero, at that address if it must be there. `None` if there is no
    /// room.
    pub(crate) fn take_piece(&self, layout: Layout, at: Option<usize>) -> Option<NonNull<u8>> {
        let place = self.with(|parts| {
            let address = parts.high.take(layout, at, parts.low.top().addr());
            let place = address.and_then(|address| {
                NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(address))
            });
            let place = match (place, at) {
                (None, None) => parts.allocate(layout),
                (place, _) => place,
            };
            parts.peak_bytes = parts.peak_bytes.max(parts.used());
            place
        })?;
        // SAFETY: a piece of that length, which is nobody's yet.
        unsafe { place.write_bytes(0, layout.size()) };
        Some(place)
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// [`Heap::take_piece`] gave it for that layout, and nobody uses it any more.
    pub(crate) unsafe fn give_back(&self, place: NonNull<u8>, layout: Layout) {
        self.with(|parts| {
            if !parts.high.give_back(place.addr().get()) {
                // SAFETY: as the caller promises; it isn't from the upper part.
                unsafe { parts.low.deallocate(place, layout) };
            }
        });
    }

    fn with<T>(&self, what: impl FnOnce(&mut Parts) -> T) -> T {
        // SAFETY: nobody is in here twice: `what` neither allocates nor frees by way of `self`.
        what(unsafe { &mut *self.0.get() })
    }
}

impl Parts {
    fn used(&self) -> usize {
        self.low.used() + self.high.used()
    }

    /// A piece of the lower part, which grows if it has to.
    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if let Ok(place) = self.low.allocate_first_fit(layout) {
            return Some(place);
        }
        let room = self.high.lowest() - self.low.top().addr();
        let wanted =
            layout.size().checked_add(layout.align())?.checked_next_multiple_of(STEP_BYTES)?;
        // Free memory at the end of the lower part counts too.
        if layout.size() > room.saturating_add(self.low.free()) {
            return None;
        }
        // SAFETY: up to the lowest piece of the upper part nothing is anybody's.
        unsafe { self.low.extend(wanted.min(room) & !(align_of::<usize>() - 1)) };
        self.low.allocate_first_fit(layout).ok()
    }
}

// SAFETY: pieces are the library's, of memory that is its alone.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|parts| {
            let place = parts.allocate(layout);
            parts.peak_bytes = parts.peak_bytes.max(parts.used());
            place.map_or(core::ptr::null_mut(), NonNull::as_ptr)
        })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if let Some(place) = NonNull::new(place) {
            // SAFETY: the caller's promise: it was allocated so.
            self.with(|parts| unsafe { parts.low.deallocate(place, layout) });
        }
    }
}
