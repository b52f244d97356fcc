//! Code flash: where images stand, in whole sectors, and are executed in place.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, FlashError};

/// A range of code flash: from the start of a sector, `bytes` long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Where it begins, in bytes.
    pub offset: u32,
    /// How much of it is in use, in bytes.
    pub bytes: u32,
}

/// The flash that code stands in, and which parts of it are taken.
pub struct CodeRegion<F> {
    flash: F,
    taken: Vec<Extent>,
    /// The sector behind the last that [`CodeRegion::keep`] wrote.
    next_kept: u32,
    /// The first of the sectors that are set aside for what comes and goes.
    set_aside: u32,
}

impl<F: Flash> CodeRegion<F> {
    /// A region of which nothing is taken yet, and at whose end at least `set_aside` bytes are only for
    /// what comes and goes.
    pub(crate) fn new(flash: F, set_aside: u32) -> Self {
        let geometry = flash.geometry();
        let sectors = set_aside.div_ceil(geometry.sector_bytes).min(geometry.sector_count);
        let set_aside = geometry.sector_count - sectors;
        Self { flash, taken: Vec::new(), next_kept: 0, set_aside }
    }

    /// How large a sector is.
    pub(crate) fn sector_bytes(&self) -> u32 {
        self.flash.geometry().sector_bytes
    }

    /// The flash itself.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    pub(crate) fn into_flash(self) -> F {
        self.flash
    }

    /// The whole region as memory.
    ///
    /// # Errors
    /// [`CodeError::NotMapped`] if the board doesn't map its code flash.
    pub fn mapped(&self) -> Result<&[u8], CodeError> {
        self.flash.mapped().ok_or(CodeError::NotMapped)
    }

    /// The code in `extent`.
    ///
    /// # Errors
    /// [`CodeError::NotMapped`], or [`CodeError::Flash`] if the extent leaves the region.
    pub fn view(&self, extent: Extent) -> Result<&[u8], CodeError> {
        let start = extent.offset as usize;
        self.mapped()?
            .get(start..start + extent.bytes as usize)
            .ok_or(CodeError::Flash(FlashError::OutOfRange))
    }

    /// Takes the first free room of `bytes` bytes, rounded up to sectors.
    ///
    /// # Errors
    /// [`CodeError::Full`] if there is none.
    pub fn reserve(&mut self, bytes: u32) -> Result<Extent, CodeError> {
        self.reserve_within(0, self.set_aside, bytes)
    }

    /// Writes `bytes` to the next free room behind what was kept last, so that what comes and goes
    /// wears the whole region evenly.
    ///
    /// # Errors
    /// [`CodeError::Full`] if there is no room, or the flash's.
    pub fn keep(&mut self, bytes: &[u8]) -> Result<Extent, CodeError> {
        let length = bytes.len() as u32;
        let end = self.flash.geometry().sector_count;
        let extent = self
            .reserve_within(self.next_kept.max(self.set_aside), end, length)
            .or_else(|_| self.reserve_within(self.set_aside, end, length))
            .or_else(|_| self.reserve_within(self.next_kept, end, length))
            .or_else(|_| self.reserve_within(0, end, length))?;
        let sector_bytes = self.flash.geometry().sector_bytes;
        self.next_kept = (extent.offset + length).div_ceil(sector_bytes);
        let mut draft = Draft::new(extent);
        let written = draft
            .append(&mut self.flash, bytes)
            .and_then(|()| draft.finish(&mut self.flash).map(|_| extent));
        written.inspect_err(|_| self.release(extent))
    }

    /// Takes the first free room of `bytes` bytes from sector `first` on, before sector `end`.
    fn reserve_within(
        &mut self,
        mut first: u32,
        end: u32,
        bytes: u32,
    ) -> Result<Extent, CodeError> {
        let geometry = self.flash.geometry();
        let sectors = bytes.div_ceil(geometry.sector_bytes).max(1);
        while first + sectors <= end {
            match self.taken_beyond(first, sectors) {
                None => {
                    let extent = Extent { offset: first * geometry.sector_bytes, bytes };
                    self.taken.push(extent);
                    return Ok(extent);
                }
                Some(next) => first = next,
            }
        }
        Err(CodeError::Full)
    }

    /// The longest extent that could be reserved now, in bytes.
    pub fn free_bytes(&self) -> u32 {
        let geometry = self.flash.geometry();
        let (mut longest, mut first, mut run) = (0, 0, 0);
        while first < self.set_aside {
            match self.taken_beyond(first, 1) {
                None => {
                    run += 1;
                    longest = longest.max(run);
                    first += 1;
                }
                Some(next) => {
                    run = 0;
                    first = next;
                }
            }
        }
        longest * geometry.sector_bytes
    }

    /// The bytes in use, in whole sectors, and all that there are.
    pub fn occupancy(&self) -> (u32, u32) {
        let geometry = self.flash.geometry();
        let sectors = |extent: &Extent| extent.bytes.div_ceil(geometry.sector_bytes).max(1);
        let taken: u32 = self.taken.iter().map(sectors).sum();
        (taken * geometry.sector_bytes, geometry.sector_count * geometry.sector_bytes)
    }

    /// Marks what a record says is in use.
    pub(crate) fn claim(&mut self, extent: Extent) {
        self.taken.push(extent);
    }

    /// Gives `extent` back. Its bytes stay until the room is taken again.
    pub fn release(&mut self, extent: Extent) {
        self.taken.retain(|taken| taken.offset != extent.offset);
    }

    /// Marks the room of a machine's code as in use.
    pub(crate) fn claim_all(&mut self, extents: impl Iterator<Item = Extent>) {
        extents.for_each(|extent| self.claim(extent));
    }

    /// Gives back the room of a machine's code.
    pub fn release_all(&mut self, extents: impl Iterator<Item = Extent>) {
        extents.for_each(|extent| self.release(extent));
    }

    fn shrink(&mut self, extent: Extent, bytes: u32) -> Extent {
        let shrunk = Extent { offset: extent.offset, bytes: bytes.min(extent.bytes) };
        for taken in &mut self.taken {
            if taken.offset == extent.offset {
                *taken = shrunk;
            }
        }
        shrunk
    }

    /// Appends `bytes` to what `draft` has written.
    ///
    /// # Errors
    /// As [`Draft::append`].
    pub fn append(&mut self, draft: &mut Draft, bytes: &[u8]) -> Result<(), CodeError> {
        draft.append(&mut self.flash, bytes)
    }

    /// Writes out the end of `draft` and gives back the room that it didn't need.
    ///
    /// # Errors
    /// [`CodeError::Flash`].
    pub fn finish(&mut self, draft: Draft) -> Result<Extent, CodeError> {
        let whole = draft.extent;
        let bytes = draft.finish(&mut self.flash)?;
        Ok(self.shrink(whole, bytes))
    }

    /// The first sector behind a taken extent that touches `sectors` sectors from `first` on.
    fn taken_beyond(&self, first: u32, sectors: u32) -> Option<u32> {
        let sector_bytes = self.flash.geometry().sector_bytes;
        self.taken.iter().find_map(|taken| {
            let begin = taken.offset / sector_bytes;
            let end = begin + taken.bytes.div_ceil(sector_bytes).max(1);
            (begin < first + sectors && first < end).then_some(end)
        })
    }
}

/// Something being written to flash from the start of a sector on, a sector at a time: flash likes
/// few and long writes better than many short ones. Holds at most one sector in memory.
#[derive(Debug)]
pub struct Draft {
    extent: Extent,
    /// Bytes that stand in flash; whole sectors until the end.
    written: u32,
    /// The beginning of the next sector.
    partial: Vec<u8>,
}

impl Draft {
    /// Nothing yet, to be written to `extent`.
    pub fn new(extent: Extent) -> Self {
        Self { extent, written: 0, partial: Vec::new() }
    }

    /// Where it is written.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// How many bytes have been appended.
    pub fn appended(&self) -> u32 {
        self.written + self.partial.len() as u32
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`CodeError::Full`] at the end of the extent, or [`CodeError::Flash`].
    pub fn append<F: Flash>(&mut self, flash: &mut F, mut bytes: &[u8]) -> Result<(), CodeError> {
        if self.appended() as usize + bytes.len() > self.extent.bytes as usize {
            return Err(CodeError::Full);
        }
        let sector_bytes = flash.geometry().sector_bytes as usize;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(sector_bytes - self.partial.len()));
            self.partial.extend_from_slice(now);
            if self.partial.len() == sector_bytes {
                self.write_sector(flash)?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Writes out the last sector, padded with erased bytes to a program unit; gives the length
    /// without padding.
    ///
    /// # Errors
    /// [`CodeError::Flash`].
    pub fn finish<F: Flash>(mut self, flash: &mut F) -> Result<u32, CodeError> {
        let bytes = self.appended();
        if !self.partial.is_empty() {
            let unit = flash.geometry().program_bytes as usize;
            self.partial.resize(self.partial.len().next_multiple_of(unit), 0xFF);
            self.write_sector(flash)?;
        }
        Ok(bytes)
    }

    fn write_sector<F: Flash>(&mut self, flash: &mut F) -> Result<(), CodeError> {
        let offset = self.extent.offset + self.written;
        flash.erase(offset / flash.geometry().sector_bytes)?;
        flash.program(offset, &self.partial)?;
        self.written += self.partial.len() as u32;
        self.partial.clear();
        Ok(())
    }
}

/// Why code could not be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// No free room of that length, or the extent is at its end.
    Full,
    /// The board doesn't map its code flash into memory.
    NotMapped,
    /// The flash device's fault.
    Flash(FlashError),
}

impl From<FlashError> for CodeError {
    fn from(error: FlashError) -> Self {
        Self::Flash(error)
    }
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("code flash has no room of that length"),
            Self::NotMapped => f.write_str("this board doesn't map its code flash"),
            Self::Flash(error) => write!(f, "code flash: {error}"),
        }
    }
}

impl core::error::Error for CodeError {}
