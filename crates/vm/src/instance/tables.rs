//! Tables of references: 0 is null, and any other number that of a function plus one.
//!
//! Invariant: once allocated, there are as many as the image has, and none shrinks.

use alloc::{collections::TryReserveError, vec::Vec};

use crate::{
    image::{Image, Section, TABLE_MAX},
    memory::Lined,
};

#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Tables(Vec<Lined<u32>>);

impl Tables {
    /// None yet.
    pub(super) const fn new() -> Tables {
        Tables(Vec::new())
    }

    /// Allocates the tables at the size they start with, all of it null.
    pub(super) fn allocate(&mut self, image: &Image<'_>) -> Result<(), TryReserveError> {
        let tables = image.count(Section::Tables);
        self.0.try_reserve_exact(tables as usize)?;
        for index in 0..tables {
            let size = image.table(index).map_or(0, |table| table.min);
            self.0.push(Lined::zeroed(size as usize)?);
        }
        Ok(())
    }

    /// The first table, which the interpreter reaches; empty if there is none.
    #[inline(always)]
    pub(super) fn first(&self) -> &[u32] {
        self.0.first().map_or(&[], |table| table)
    }

    pub(super) fn get(&self, table: usize) -> Option<&[u32]> {
        self.0.get(table).map(|table| &**table)
    }

    pub(super) fn get_mut(&mut self, table: usize) -> Option<&mut [u32]> {
        self.0.get_mut(table).map(|table| &mut **table)
    }

    /// Number of a table's elements; of one that there isn't, none.
    pub(super) fn len(&self, table: usize) -> usize {
        self.0.get(table).map_or(0, |table| table.len())
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Lined<u32>] {
        &self.0
    }

    /// Adds elements to a table; `None` if there is none, or no room.
    pub(super) fn grow(&mut self, table: usize, more: usize, value: u32) -> Option<()> {
        self.0.get_mut(table)?.extend(more, value).ok()
    }

    /// Has a table, which there is, grow by `more` and hold what little-endian bytes say.
    pub(crate) fn restore(
        &mut self,
        table: usize,
        more: usize,
        bytes: &[u8],
    ) -> Result<(), TryReserveError> {
        let Some(table) = self.0.get_mut(table) else { return Ok(()) };
        table.extend(more, 0)?;
        for (item, bytes) in table.iter_mut().zip(bytes.chunks_exact(4)) {
            *item = bytes.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes));
        }
        Ok(())
    }

    /// Copies `count` elements between tables, or within one, as if by way of a third place.
    pub(super) fn copy(
        &mut self,
        (source, from): (usize, usize),
        (target, to): (usize, usize),
        count: usize,
    ) {
        if source == target {
            if let Some(table) = self.0.get_mut(target) {
                table.copy_within(from..from + count, to);
            }
        } else if let Ok([source, target]) = self.0.get_disjoint_mut([source, target])
            && let Some((source, target)) =
                source.get(from..from + count).zip(target.get_mut(to..to + count))
        {
            target.copy_from_slice(source);
        }
    }

    /// Elements that a table may have.
    pub(crate) fn maximum(image: &Image<'_>, table: u32) -> u32 {
        image.table(table).map_or(0, |table| table.max.min(TABLE_MAX))
    }
}
