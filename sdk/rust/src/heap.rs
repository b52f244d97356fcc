//! The heap: a first-fit allocator of about a kilobyte of code.
//!
//! It is our own because a machine's project must build with no network, and because the crates
//! that would do assume pages of 64 KiB, more than a machine may have in all.
//!
//! Blocks lie one after another from the heap's start to the end of memory, each with a header that
//! gives its own size and that of the block before, so that a freed block joins both its neighbours
//! at once. A block is found by looking through them in order. Only this module grows the memory.

use core::alloc::Layout;

const HEADER_BYTES: u32 = 8;
/// Payloads are aligned to this, and sizes are multiples of it.
const GRAIN: u32 = 8;
/// The lowest bit of a size: whether the block is in use.
const IN_USE: u32 = 1;
/// Asked for at a time, unless more is needed.
const GROWTH_BYTES: u32 = 512;
/// A size that no machine can have.
const REQUEST_BYTES_MAX: usize = 0x7fff_0000;

/// The memory that a heap lies in, by byte addresses.
trait Memory {
    /// The word at `at`, a multiple of 4.
    fn read(&self, at: u32) -> u32;
    /// Sets the word at `at`, a multiple of 4.
    fn write(&mut self, at: u32, word: u32);
    /// Where it ends.
    fn end(&self) -> u32;
    /// Grows it by at least `bytes`, or not at all.
    fn grow(&mut self, bytes: u32) -> bool;
}

struct Heap {
    start: u32,
    end: u32,
    /// Of the block at the end, for the one that growth appends.
    last_size: u32,
}

impl Heap {
    /// A heap that begins at `start` and has nothing yet.
    const fn new(start: u32) -> Self {
        let start = start.next_multiple_of(GRAIN);
        Self { start, end: start, last_size: 0 }
    }

    /// The address of a new block for `layout`, or `None` if there is no room.
    fn allocate(&mut self, memory: &mut impl Memory, layout: Layout) -> Option<u32> {
        if layout.size() > REQUEST_BYTES_MAX || layout.align() > REQUEST_BYTES_MAX {
            return None;
        }
        let size = block_bytes(layout.size());
        let align = layout.align() as u32;
        let slack = align.saturating_sub(GRAIN);
        if self.end == self.start {
            self.extend(memory);
        }
        let block = match self.find(memory, size + slack) {
            Some(block) => block,
            None => {
                self.grow(memory, size + slack)?;
                self.find(memory, size + slack)?
            }
        };
        let payload = (block + HEADER_BYTES).next_multiple_of(align);
        let aligned = payload - HEADER_BYTES;
        let whole = self.size(memory, block);
        self.place(memory, block, whole, IN_USE);
        if aligned > block {
            self.split(memory, block, aligned - block);
            self.free(memory, block + HEADER_BYTES);
        }
        self.trim(memory, aligned, size);
        Some(payload)
    }

    /// Takes a block back.
    fn free(&mut self, memory: &mut impl Memory, payload: u32) {
        let mut block = payload - HEADER_BYTES;
        let mut size = self.size(memory, block);
        if self.is_free(memory, block + size) {
            size += self.size(memory, block + size);
        }
        let previous_size = memory.read(block + 4);
        if previous_size != 0 && self.is_free(memory, block - previous_size) {
            block -= previous_size;
            size += previous_size;
        }
        self.place(memory, block, size, 0);
    }

    /// Makes room for `bytes` in the block, if its follower is free and has it, or gives up what
    /// it doesn't need; `false` if it must move.
    fn resize(&mut self, memory: &mut impl Memory, payload: u32, bytes: usize) -> bool {
        if bytes > REQUEST_BYTES_MAX {
            return false;
        }
        let (block, needed) = (payload - HEADER_BYTES, block_bytes(bytes));
        let mut room = self.size(memory, block);
        if room < needed && self.is_free(memory, block + room) {
            let both = room + self.size(memory, block + room);
            if both >= needed {
                self.place(memory, block, both, IN_USE);
                room = both;
            }
        }
        if room >= needed {
            self.trim(memory, block, needed);
        }
        room >= needed
    }

    /// The first free block of at least `size` bytes.
    fn find(&self, memory: &impl Memory, size: u32) -> Option<u32> {
        let mut block = self.start;
        while block != self.end {
            if self.is_free(memory, block) && self.size(memory, block) >= size {
                return Some(block);
            }
            block += self.size(memory, block);
        }
        None
    }

    fn grow(&mut self, memory: &mut impl Memory, bytes: u32) -> Option<()> {
        // Up to 7 bytes at the end of memory are no block's yet.
        let needed = bytes + GRAIN - 1;
        if !memory.grow(needed.max(GROWTH_BYTES)) && !memory.grow(needed) {
            return None;
        }
        self.extend(memory);
        Some(())
    }

    /// Makes all memory that isn't the heap's yet a free block of it.
    fn extend(&mut self, memory: &mut impl Memory) {
        let size = memory.end().saturating_sub(self.end) / GRAIN * GRAIN;
        if size > 0 {
            let (block, previous_size) = (self.end, self.last_size);
            self.end += size;
            memory.write(block + 4, previous_size);
            self.place(memory, block, size, IN_USE);
            self.free(memory, block + HEADER_BYTES);
        }
    }

    /// Makes what a block has beyond `size` bytes a free block.
    fn trim(&mut self, memory: &mut impl Memory, block: u32, size: u32) {
        if self.size(memory, block) > size {
            self.split(memory, block, size);
            self.free(memory, block + size + HEADER_BYTES);
        }
    }

    /// Makes two used blocks of one, the first `size` bytes long.
    fn split(&mut self, memory: &mut impl Memory, block: u32, size: u32) {
        let rest = self.size(memory, block) - size;
        self.place(memory, block, size, IN_USE);
        self.place(memory, block + size, rest, IN_USE);
    }

    /// Writes a block's header and what its follower knows of it.
    fn place(&mut self, memory: &mut impl Memory, block: u32, size: u32, in_use: u32) {
        memory.write(block, size | in_use);
        if block + size == self.end {
            self.last_size = size;
        } else {
            memory.write(block + size + 4, size);
        }
    }

    fn size(&self, memory: &impl Memory, block: u32) -> u32 {
        memory.read(block) & !IN_USE
    }

    fn is_free(&self, memory: &impl Memory, block: u32) -> bool {
        block != self.end && memory.read(block) & IN_USE == 0
    }
}

/// The size of a block that holds so much.
fn block_bytes(bytes: usize) -> u32 {
    (bytes as u32 + HEADER_BYTES).next_multiple_of(GRAIN)
}

#[cfg(any(target_arch = "wasm32", target_os = "none"))]
mod machine {
    use core::alloc::{GlobalAlloc, Layout};
    #[cfg(target_arch = "wasm32")]
    use core::arch::wasm32::{memory_grow, memory_size};
    use core::cell::UnsafeCell;

    use super::{HEADER_BYTES, Heap, Memory};

    #[global_allocator]
    static HEAP: MachineHeap = MachineHeap(UnsafeCell::new(None));

    struct MachineHeap(UnsafeCell<Option<Heap>>);

    // SAFETY: a machine has one thread, and the heap calls nothing that could call it.
    unsafe impl Sync for MachineHeap {}

    unsafe extern "C" {
        /// Where the linker ends what it placed.
        static __heap_base: u8;
    }

    fn heap_base() -> u32 {
        (&raw const __heap_base) as u32
    }

    impl MachineHeap {
        #[allow(clippy::mut_from_ref)]
        fn heap(&self) -> &mut Heap {
            // SAFETY: each allocator call below takes this reference once and ends before the next
            // call begins, as there is one thread and nothing in between calls the allocator.
            let heap = unsafe { &mut *self.0.get() };
            heap.get_or_insert_with(|| Heap::new(heap_base()))
        }
    }

    // SAFETY: blocks don't overlap, lie in memory above all else that the linker placed, and stay
    // until they are freed; sizes and alignments are kept, as the tests of `Heap` show.
    unsafe impl GlobalAlloc for MachineHeap {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let address = self.heap().allocate(&mut LinearMemory, layout);
            address.map_or(core::ptr::null_mut(), |address| address as *mut u8)
        }

        unsafe fn dealloc(&self, pointer: *mut u8, _layout: Layout) {
            self.heap().free(&mut LinearMemory, pointer as u32);
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if self.heap().resize(&mut LinearMemory, pointer as u32, size) {
                return pointer;
            }
            let Ok(new_layout) = Layout::from_size_align(size, layout.align()) else {
                return core::ptr::null_mut();
            };
            // SAFETY: the caller vouches for `pointer` and `layout`; both blocks hold what is
            // copied, and don't overlap.
            unsafe {
                let moved = self.alloc(new_layout);
                if !moved.is_null() {
                    core::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                    self.dealloc(pointer, layout);
                }
                moved
            }
        }
    }

    struct LinearMemory;

    #[cfg(target_arch = "wasm32")]
    impl LinearMemory {
        /// A page is 64 KiB, or one byte where the linker was told so; then the count of pages,
        /// being the length of the memory, isn't less than the address where the heap begins.
        fn page_bytes() -> usize {
            if memory_size(0) >= heap_base() as usize { 1 } else { 65536 }
        }
    }

    impl Memory for LinearMemory {
        fn read(&self, at: u32) -> u32 {
            // SAFETY: the heap reads only headers, which lie in its memory and are aligned.
            unsafe { (at as *const u32).read() }
        }

        fn write(&mut self, at: u32, word: u32) {
            // SAFETY: the heap writes only headers, which lie in its memory and are aligned.
            unsafe { (at as *mut u32).write(word) }
        }

        #[cfg(target_arch = "wasm32")]
        fn end(&self) -> u32 {
            (memory_size(0) * Self::page_bytes()) as u32
        }

        #[cfg(target_os = "none")]
        fn end(&self) -> u32 {
            crate::native::memory_end()
        }

        #[cfg(target_arch = "wasm32")]
        fn grow(&mut self, bytes: u32) -> bool {
            memory_grow(0, (bytes as usize).div_ceil(Self::page_bytes())) != usize::MAX
        }

        #[cfg(target_os = "none")]
        fn grow(&mut self, _: u32) -> bool {
            // It has all there is from the beginning.
            false
        }
    }

    const _: () = assert!(HEADER_BYTES as usize == 2 * size_of::<u32>());
}

#[cfg(test)]
mod tests;
