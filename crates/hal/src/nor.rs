//! The rules of NOR flash over a medium that knows none: what emulators offer as flash.
//!
//! The medium takes any byte anywhere; a program that would set a bit is refused here, and a sector
//! is erased by writing ones. So what works on an emulated board builds on nothing that a flash chip
//! doesn't do.

use crate::{Flash, FlashError, FlashGeometry};

#[cfg(test)]
mod tests;

/// Bytes of a sector, as on the flash chips of small devices.
const SECTOR_BYTES: usize = 4096;

/// Bytes that are kept, can be read where they lie, and can be set to anything.
pub trait Medium {
    /// All that is kept.
    fn bytes(&self) -> &[u8];

    /// Sets the bytes at `offset`. When it returns `Ok` they survive a loss of power; if power fails
    /// before, the bytes written may hold anything, and all others are as they were.
    ///
    /// # Errors
    /// [`FlashError::Hardware`].
    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), FlashError>;
}

/// A medium that obeys the contract of [`Flash`].
#[derive(Debug)]
pub struct NorFlash<M> {
    medium: M,
}

impl<M: Medium> NorFlash<M> {
    /// The flash that `medium` stands for; what it has beyond whole sectors isn't used.
    pub fn new(medium: M) -> Self {
        Self { medium }
    }

    fn stored(&self, offset: u32, length: usize) -> Result<&[u8], FlashError> {
        let start = offset as usize;
        let end = start.checked_add(length).filter(|end| *end <= self.geometry().bytes() as usize);
        self.medium
            .bytes()
            .get(start..end.ok_or(FlashError::OutOfRange)?)
            .ok_or(FlashError::OutOfRange)
    }
}

impl<M: Medium> Flash for NorFlash<M> {
    fn geometry(&self) -> FlashGeometry {
        let sector_count = (self.medium.bytes().len() / SECTOR_BYTES) as u32;
        FlashGeometry { sector_bytes: SECTOR_BYTES as u32, sector_count, program_bytes: 4 }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(self.stored(offset, into.len())?);
        Ok(())
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let stored = self.stored(offset, bytes.len())?;
        let unit = self.geometry().program_bytes;
        if !offset.is_multiple_of(unit) || !bytes.len().is_multiple_of(unit as usize) {
            return Err(FlashError::Misaligned);
        }
        if stored.iter().zip(bytes).any(|(old, new)| !old & new != 0) {
            return Err(FlashError::NotErased);
        }
        self.medium.write(offset as usize, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        let offset = sector.checked_mul(SECTOR_BYTES as u32).ok_or(FlashError::OutOfRange)?;
        self.stored(offset, SECTOR_BYTES)?;
        const ONES: [u8; 256] = [0xFF; 256];
        for start in (0..SECTOR_BYTES).step_by(ONES.len()) {
            self.medium.write(offset as usize + start, &ONES)?;
        }
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.medium.bytes().get(..self.geometry().bytes() as usize)
    }
}
