//! Linear memory: a committed prefix of what the module declares; and the lists that the interpreter
//! reaches beside it.
//!
//! All of them are kept in lines, so that they begin and end where a board's memory protection can divide
//! memory, and where wide loads are aligned. Lending lines as words and bytes, and clearing them on small
//! cores, is this file's only unsafe code.

use alloc::{collections::TryReserveError, vec::Vec};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use zeroize::Zeroize as _;

/// Memory is committed in steps of this.
const STEP_BYTES: usize = 256;

/// Why bytes are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// The module does not have them.
    OutOfBounds,
    /// The module may have them, the machine's budget does not.
    OverBudget,
    /// The allocator had no room.
    Exhausted,
}

/// A list of so many zeros: of numbers, or of lines of them.
#[inline(never)]
pub(crate) fn zeroed<T: Copy + Default>(count: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count)?;
    #[cfg(all(compact, not(small)))]
    clear_ahead(&mut list, count);
    list.resize(count, T::default());
    Ok(list)
}

/// Appends zeros, most of `count`, for which there is room. Clearing the stack is most of what a start takes,
/// and on small cores `memset` takes three instructions a word.
#[cfg(all(compact, not(small)))]
#[inline(always)]
fn clear_ahead<T: Copy + Default>(list: &mut Vec<T>, count: usize) {
    const AT_A_TIME: usize = 64 / size_of::<u32>();
    let elements = AT_A_TIME * size_of::<u32>() / size_of::<T>();
    let mut cleared = 0;
    for chunk in list.spare_capacity_mut()[..count].chunks_exact_mut(elements) {
        let words = chunk.as_mut_ptr().cast::<u32>();
        for word in 0..AT_A_TIME {
            // SAFETY: so many words are in the chunk, which is the list's, and aligned for them. Volatile, or
            // the compiler makes `memset` of it.
            unsafe { words.add(word).write_volatile(0) };
        }
        cleared += elements;
    }
    // SAFETY: so many elements were written, all within the capacity; of numbers, zero is a value.
    unsafe { list.set_len(cleared) };
}

/// The words of a line. Cortex-M protects memory in steps of 32 bytes (ARMv7-M manual, B3.5.8), RISC-V in
/// steps of a word.
const LINE_WORDS: usize = if cfg!(target_arch = "arm") { 4 } else { 1 };

/// The step in which lists take memory, in bytes.
pub(crate) const LINE_BYTES: usize = size_of::<Line>();

/// A step.
#[derive(Clone, Copy, Default)]
#[repr(C)]
#[cfg_attr(target_arch = "arm", repr(align(32)))]
struct Line([u64; LINE_WORDS]);

/// The state of any bytes of a line.
pub(crate) trait Plain: Copy {}

impl Plain for u32 {}
impl Plain for u64 {}

/// A list of numbers in lines that hold nothing else.
#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Lined<T> {
    lines: Vec<Line>,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Plain> Lined<T> {
    pub(crate) const fn new() -> Lined<T> {
        Lined { lines: Vec::new(), count: 0, of: PhantomData }
    }

    /// So many zeros.
    pub(crate) fn zeroed(count: usize) -> Result<Lined<T>, TryReserveError> {
        Ok(Lined { lines: zeroed(Self::lines_of(count))?, count, of: PhantomData })
    }

    /// Adds `more` times `value`.
    pub(crate) fn extend(&mut self, more: usize, value: T) -> Result<(), TryReserveError> {
        let before = self.count;
        let count = before.saturating_add(more);
        let lines = Self::lines_of(count);
        self.lines.try_reserve_exact(lines - self.lines.len())?;
        self.lines.resize(lines, Line::default());
        self.count = count;
        self[before..].fill(value);
        Ok(())
    }

    const fn lines_of(count: usize) -> usize {
        count.div_ceil(LINE_BYTES / size_of::<T>())
    }
}

impl<T: Plain> Deref for Lined<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the lines have room for `count` of them, and any bytes are one.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for Lined<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.count) }
    }
}

/// Words as the bytes that they are.
pub(crate) fn as_bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any word is eight bytes, and any bytes are a word.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// Bytes as the little-endian words that they are, where words may lie so.
pub(crate) fn as_words(bytes: &[u8]) -> Option<&[u32]> {
    let whole = cfg!(target_endian = "little")
        && bytes.as_ptr().addr().is_multiple_of(align_of::<u32>())
        && bytes.len().is_multiple_of(size_of::<u32>());
    // SAFETY: they begin where a word may, and any four bytes are one.
    whole.then(|| unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 4) })
}

/// Linear memory. What it held is wiped when it goes: a program may have held secrets in it.
#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Memory {
    words: Lined<u64>,
    committed: usize,
    /// Size in pages as the program sees it.
    pages: u32,
    page_shift: u32,
    /// Bytes that may be committed; tables that grow take theirs of it.
    budget: usize,
}

impl Memory {
    pub(crate) fn new(pages: u32, page_shift: u32, budget: usize) -> Memory {
        Memory { words: Lined::new(), committed: 0, pages, page_shift, budget }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `committed` never exceeds the words' bytes, and any byte is a u8.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr().cast(), self.committed) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; any bytes are a u64.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.committed) }
    }

    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Bytes as the program sees them; only the first of them are committed.
    pub(crate) fn declared(&self) -> u64 {
        (self.pages as u64) << self.page_shift
    }

    /// Declared bytes that the budget has room for.
    pub(crate) fn usable(&self) -> usize {
        usize::try_from(self.declared()).unwrap_or(usize::MAX).min(self.budget)
    }

    /// Makes the first `end` bytes available; how many bytes were cleared and moved for it. That number
    /// doesn't depend on the budget: beyond it there is nothing to commit.
    pub(crate) fn commit(&mut self, end: u64) -> Result<u64, Unavailable> {
        if end <= self.committed as u64 {
            return Ok(0);
        }
        if end > self.declared() {
            return Err(Unavailable::OutOfBounds);
        }
        let usable = self.usable();
        if end > usable as u64 {
            return Err(Unavailable::OverBudget);
        }
        let before = self.committed as u64;
        let wanted = end.max(before + before / 2).next_multiple_of(STEP_BYTES as u64);
        self.commit_exactly(wanted.min(usable as u64) as usize)?;
        Ok(wanted.min(self.declared()) + before)
    }

    /// Leaves `bytes` of the budget to something else, if they aren't committed.
    pub(crate) fn cede(&mut self, bytes: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(bytes).filter(|&left| left >= self.committed)?;
        Some(())
    }

    /// Commits `wanted` bytes, which are usable.
    pub(crate) fn commit_exactly(&mut self, wanted: usize) -> Result<(), Unavailable> {
        let words = wanted.div_ceil(8);
        if words < self.words.len() {
            return Ok(());
        }
        // Not grown where it is, which would leave a copy of what it held in the allocator's hands.
        let mut grown = Lined::zeroed(words).map_err(|_| Unavailable::Exhausted)?;
        grown.iter_mut().zip(&*self.words).for_each(|(new, old)| *new = *old);
        self.words.zeroize();
        self.words = grown;
        self.committed = wanted;
        Ok(())
    }

    /// Pages, committed bytes and the budget.
    #[cfg(feature = "profile")]
    pub(crate) fn size(&self) -> (u32, usize, usize) {
        (self.pages, self.committed, self.budget)
    }

    /// Takes over what [`Memory::size`] gave of a memory. What is committed beyond that is wiped; `None` without room.
    #[cfg(feature = "profile")]
    pub(crate) fn resize(&mut self, (pages, committed, budget): (u32, usize, usize)) -> Option<()> {
        if committed != self.committed {
            let mut words = Lined::<u64>::zeroed(committed.div_ceil(8)).ok()?;
            words.iter_mut().zip(&*self.words).for_each(|(new, old)| *new = *old);
            self.words.zeroize();
            (self.words, self.committed) = (words, committed);
            // The last word may have been committed in part.
            let whole = self.words.len() * 8;
            as_bytes_mut(&mut self.words)[committed..whole].fill(0);
        }
        (self.pages, self.budget) = (pages, budget);
        Some(())
    }

    /// Grows by pages; the size before. `None`: over a maximum or the budget, and nothing changed.
    pub(crate) fn grow(&mut self, pages: u32, maximum: u64) -> Option<u32> {
        let before = self.pages;
        let size = (before as u64 + pages as u64) << self.page_shift;
        if pages > 0 && (size > maximum || size > self.budget as u64) {
            return None;
        }
        self.pages = before.checked_add(pages)?;
        Some(before)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}
