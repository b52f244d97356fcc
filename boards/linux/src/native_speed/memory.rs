//! Memory of a machine at native speed: linear memory and tables as one budget, and the window.

use std::ops::Range;

use wasmtime::ResourceLimiter;

/// How long an element of a table is, in bytes.
pub(super) const ELEMENT_BYTES: usize = 8;
/// How much of a window is in use before it is wiped, in bytes.
const WINDOW_BYTES_MAX: usize = 64 * 1024;
const PAGE_BYTES: usize = 4096;

/// Linear memory and tables of one instance, which share the memory of its budget.
pub(super) struct MemoryBudget {
    bytes_max: usize,
    bytes: usize,
    /// Bytes that were taken last, to be given back if there is no memory to be had.
    taken: usize,
}

impl MemoryBudget {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, taken: 0 }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.bytes.checked_add(bytes).is_some_and(|sum| sum <= self.bytes_max);
        self.taken = if fits { bytes } else { 0 };
        self.bytes += self.taken;
        fits
    }

    fn give_back(&mut self) {
        self.bytes -= std::mem::take(&mut self.taken);
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.take(desired.saturating_sub(current)))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.take(desired.saturating_sub(current).saturating_mul(ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }
}

/// A copy of what host calls name of a machine's memory, at the same addresses.
///
/// It is as long as the memory, but the system commits only the pages that were written to, and it
/// is made anew once those are [`WINDOW_BYTES_MAX`]. So a machine takes no more than that, and the
/// ranges of one host call, beside its budget.
#[derive(Default)]
pub(super) struct Window {
    pub(super) bytes: Vec<u8>,
    /// Bytes of it that were written to, in whole pages, at most.
    written: usize,
}

impl Window {
    /// Copies `ranges` of `memory`; what it held before is gone.
    pub(super) fn show(&mut self, ranges: &[Range<usize>], memory: &[u8]) {
        let pages = ranges.iter().map(|range| range.len().div_ceil(PAGE_BYTES) + 1);
        let needed = pages.sum::<usize>() * PAGE_BYTES;
        if self.bytes.len() != memory.len() || self.written + needed > WINDOW_BYTES_MAX {
            // Unlike writing zeros this commits nothing.
            self.bytes = vec![0; memory.len()];
            self.written = 0;
        }
        self.written += needed;
        copy_ranges(ranges, memory, &mut self.bytes);
    }
}

/// Copies what of `ranges` lies in both.
pub(super) fn copy_ranges(ranges: &[Range<usize>], from: &[u8], to: &mut [u8]) {
    for range in ranges {
        if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range.clone())) {
            to.copy_from_slice(from);
        }
    }
}
