//! Data and element segments: which of them hold nothing any more.
//!
//! Invariant: what is dropped stays so. A segment of which there is no mark counts as dropped.

use alloc::{collections::TryReserveError, vec::Vec};

use crate::{
    image::{ElementSegment, Image, Section},
    memory::zeroed,
};

#[derive(Default)]
#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Segments {
    /// Bit sets of those that were dropped.
    data: Vec<u32>,
    elements: Vec<u32>,
}

impl Segments {
    /// Allocates a mark for each segment: none is dropped.
    pub(super) fn allocate(&mut self, image: &Image<'_>) -> Result<(), TryReserveError> {
        self.data = zeroed(image.count(Section::Data).div_ceil(32) as usize)?;
        self.elements = zeroed(image.count(Section::Elements).div_ceil(32) as usize)?;
        Ok(())
    }

    pub(super) fn drop_data(&mut self, index: u32) {
        mark(&mut self.data, index);
    }

    pub(super) fn drop_elements(&mut self, index: u32) {
        mark(&mut self.elements, index);
    }

    /// The bytes of a data segment; none after it was dropped.
    pub(super) fn data<'i>(&self, image: &Image<'i>, index: u32) -> &'i [u8] {
        if is_marked(&self.data, index) {
            return &[];
        }
        image.data(index).map_or(&[], |segment| segment.bytes)
    }

    /// An element segment, unless it was dropped.
    pub(super) fn elements<'i>(&self, image: &Image<'i>, index: u32) -> Option<ElementSegment<'i>> {
        image.elements(index).filter(|_| !is_marked(&self.elements, index))
    }

    /// The bit sets: of data segments, and of element segments.
    pub(crate) fn marks(&self) -> [&[u32]; 2] {
        [&self.data, &self.elements]
    }

    /// As `marks`, to be filled in.
    pub(crate) fn marks_mut(&mut self) -> [&mut [u32]; 2] {
        [&mut self.data, &mut self.elements]
    }
}

fn mark(dropped: &mut [u32], index: u32) {
    if let Some(word) = dropped.get_mut(index as usize / 32) {
        *word |= 1 << (index % 32);
    }
}

fn is_marked(dropped: &[u32], index: u32) -> bool {
    dropped.get(index as usize / 32).is_none_or(|word| word >> (index % 32) & 1 != 0)
}
