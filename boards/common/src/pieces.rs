//! The pieces of memory that are taken from the end of a heap on, downwards.
//!
//! Invariant: they lie apart from each other, the highest first.

use core::alloc::Layout;

/// Addresses alone: nothing here touches memory.
pub(crate) struct Pieces<const MAX: usize> {
    /// Where the memory ends.
    pub(crate) end: usize,
    /// Where each begins and ends.
    taken: [(usize, usize); MAX],
    count: usize,
}

impl<const MAX: usize> Pieces<MAX> {
    /// None yet, of memory that ends there.
    pub(crate) const fn up_to(end: usize) -> Self {
        Self { end, taken: [(0, 0); MAX], count: 0 }
    }

    /// Where the lowest begins.
    pub(crate) fn lowest(&self) -> usize {
        self.taken[..self.count].last().map_or(self.end, |(start, _)| *start)
    }

    /// How long they are together.
    pub(crate) fn used(&self) -> usize {
        self.taken[..self.count].iter().map(|(start, end)| end - start).sum()
    }

    /// Takes the highest free piece that `layout` fits into, or the one that begins at `at`, but none below
    /// `bottom`; gives where it begins.
    pub(crate) fn take(
        &mut self,
        layout: Layout,
        at: Option<usize>,
        bottom: usize,
    ) -> Option<usize> {
        if self.count == MAX {
            return None;
        }
        let mut above = self.end;
        for index in 0..=self.count {
            let below = self.taken[..self.count].get(index).map_or(bottom, |(_, end)| *end);
            let highest = above.checked_sub(layout.size())? & !(layout.align() - 1);
            let start = at.unwrap_or(highest);
            if (below..=highest).contains(&start) && start.is_multiple_of(layout.align()) {
                self.taken[index..=self.count].rotate_right(1);
                self.taken[index] = (start, start + layout.size());
                self.count += 1;
                return Some(start);
            }
            above = self.taken[index].0;
        }
        None
    }

    /// Gives back the one that begins at `start`; `false` if there is none.
    pub(crate) fn give_back(&mut self, start: usize) -> bool {
        let found = self.taken[..self.count].iter().position(|piece| piece.0 == start);
        if let Some(index) = found {
            self.taken[index..self.count].rotate_left(1);
            self.count -= 1;
        }
        found.is_some()
    }
}

#[cfg(test)]
// The program for Miri takes this file in from elsewhere.
#[path = "pieces/tests.rs"]
mod tests;
