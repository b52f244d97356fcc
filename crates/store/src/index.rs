//! The index: the locations of all live records in RAM, in the order of their keys.
//!
//! It holds no key: a search asks its caller how the record at a location stands to what is
//! sought. So a key costs four bytes and the slack of its chunk, under six bytes in all, however
//! long its path; a search costs about log2(n) looks at the flash, and a neighbour in the order is
//! the next entry.

use alloc::vec::Vec;
use core::cmp::Ordering;

#[cfg(test)]
mod tests;

/// Where a record stands: bytes from the start of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location(pub(crate) u32);

/// The most locations in one chunk: what an insertion moves at most.
const CHUNK_MAX: usize = 128;

/// Locations in order, cut into chunks none of which is empty.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: Vec<Vec<Location>>,
    length: usize,
}

/// A place in the index; it is valid until the index changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    chunk: usize,
    at: usize,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The entry at this slot is what was sought.
    At(Slot),
    /// There is none; it would stand here.
    Before(Slot),
    /// The record of the entry at this slot can't be read any more, so there is no order.
    Lost(Slot),
}

impl Index {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The bytes of RAM that the index has taken from the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let entries: usize = self.chunks.iter().map(Vec::capacity).sum();
        entries * size_of::<Location>() + self.chunks.capacity() * size_of::<Vec<Location>>()
    }

    /// Finds the entry for which `compare` says `Equal`, where `compare` says how an entry stands
    /// to what is sought, or `None` if the entry's record is unreadable.
    pub(crate) fn search<E>(
        &self,
        mut compare: impl FnMut(Location) -> Result<Option<Ordering>, E>,
    ) -> Result<Found, E> {
        let mut chunks = 0..self.chunks.len();
        while !chunks.is_empty() {
            let middle = usize::midpoint(chunks.start, chunks.end);
            match compare(self.chunks[middle][0])? {
                None => return Ok(Found::Lost(Slot { chunk: middle, at: 0 })),
                Some(Ordering::Equal) => return Ok(Found::At(Slot { chunk: middle, at: 0 })),
                Some(Ordering::Less) => chunks.start = middle + 1,
                Some(Ordering::Greater) => chunks.end = middle,
            }
        }
        let Some(chunk) = chunks.start.checked_sub(1) else {
            return Ok(Found::Before(Slot { chunk: 0, at: 0 }));
        };
        let mut entries = 1..self.chunks[chunk].len();
        while !entries.is_empty() {
            let middle = usize::midpoint(entries.start, entries.end);
            match compare(self.chunks[chunk][middle])? {
                None => return Ok(Found::Lost(Slot { chunk, at: middle })),
                Some(Ordering::Equal) => return Ok(Found::At(Slot { chunk, at: middle })),
                Some(Ordering::Less) => entries.start = middle + 1,
                Some(Ordering::Greater) => entries.end = middle,
            }
        }
        Ok(Found::Before(Slot { chunk, at: entries.start }))
    }

    /// The entry at `slot`, or the next one if `slot` is the end of a chunk.
    pub(crate) fn entry(&self, slot: Slot) -> Option<Location> {
        let slot = self.settle(slot);
        self.chunks.get(slot.chunk)?.get(slot.at).copied()
    }

    /// Puts `location` before the entry at `slot`.
    pub(crate) fn insert(&mut self, slot: Slot, location: Location) {
        self.length += 1;
        let Some(chunk) = self.chunks.get_mut(slot.chunk) else {
            self.chunks.push(alloc::vec![location]);
            return;
        };
        if chunk.len() < CHUNK_MAX {
            chunk.insert(slot.at, location);
            return;
        }
        // Keys that come in ascending order leave full chunks behind, not half-full ones.
        let cut = if slot.at == CHUNK_MAX { CHUNK_MAX } else { CHUNK_MAX / 2 };
        let mut upper = chunk.split_off(cut);
        if cut < CHUNK_MAX {
            chunk.shrink_to_fit();
        }
        match slot.at.checked_sub(cut) {
            Some(at) => upper.insert(at, location),
            None => chunk.insert(slot.at, location),
        }
        self.chunks.insert(slot.chunk + 1, upper);
    }

    /// Gives the entry at `slot` another location.
    pub(crate) fn replace(&mut self, slot: Slot, location: Location) {
        let slot = self.settle(slot);
        if let Some(entry) = self.chunks.get_mut(slot.chunk).and_then(|it| it.get_mut(slot.at)) {
            *entry = location;
        }
    }

    /// Takes out the entry at `slot`; the slot is then the entry's after it.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let slot = self.settle(slot);
        let Some(chunk) = self.chunks.get_mut(slot.chunk).filter(|it| slot.at < it.len()) else {
            return;
        };
        chunk.remove(slot.at);
        self.length -= 1;
        if chunk.is_empty() {
            self.chunks.remove(slot.chunk);
        } else if chunk.capacity() >= 4 * chunk.len().max(8) {
            chunk.shrink_to(2 * chunk.len());
        }
    }

    /// The same place, in the next chunk if it is the end of one.
    pub(crate) fn settle(&self, slot: Slot) -> Slot {
        match self.chunks.get(slot.chunk) {
            Some(chunk) if slot.at >= chunk.len() => Slot { chunk: slot.chunk + 1, at: 0 },
            _ => slot,
        }
    }
}
