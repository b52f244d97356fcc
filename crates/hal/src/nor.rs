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

/// How much is read at a time to see whether a program would set a bit.
const PART_BYTES: usize = 64;

/// Bytes that are kept, and can be set to anything.
pub trait Medium {
    /// How many they are, the same at every call.
    fn length(&self) -> usize;

    /// Reads from `offset` on, inside the medium.
    ///
    /// # Errors
    /// [`FlashError::Hardware`].
    fn read(&mut self, offset: usize, into: &mut [u8]) -> Result<(), FlashError>;

    /// All of it, where it lies in the address space.
    fn mapped(&self) -> Option<&[u8]>;

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

    fn check_range(&self, offset: u32, length: usize) -> Result<(), FlashError> {
        let end = (offset as usize).checked_add(length);
        let fits = end.is_some_and(|end| end <= self.geometry().bytes() as usize);
        if fits { Ok(()) } else { Err(FlashError::OutOfRange) }
    }

    /// Whether what stands at `offset` becomes `bytes` by clearing bits alone.
    fn check_erased(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let mut stored = [0; PART_BYTES];
        for (part, at) in bytes.chunks(PART_BYTES).zip((offset as usize..).step_by(PART_BYTES)) {
            let stored = &mut stored[..part.len()];
            self.medium.read(at, stored)?;
            if stored.iter().zip(part).any(|(old, new)| !old & new != 0) {
                return Err(FlashError::NotErased);
            }
        }
        Ok(())
    }
}

impl<M: Medium> Flash for NorFlash<M> {
    fn geometry(&self) -> FlashGeometry {
        let sector_count = (self.medium.length() / SECTOR_BYTES) as u32;
        FlashGeometry { sector_bytes: SECTOR_BYTES as u32, sector_count, program_bytes: 4 }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.check_range(offset, into.len())?;
        self.medium.read(offset as usize, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.check_range(offset, bytes.len())?;
        let unit = self.geometry().program_bytes;
        if !offset.is_multiple_of(unit) || !bytes.len().is_multiple_of(unit as usize) {
            return Err(FlashError::Misaligned);
        }
        self.check_erased(offset, bytes)?;
        self.medium.write(offset as usize, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        let offset = sector.checked_mul(SECTOR_BYTES as u32).ok_or(FlashError::OutOfRange)?;
        self.check_range(offset, SECTOR_BYTES)?;
        const ONES: [u8; 256] = [0xFF; 256];
        for start in (0..SECTOR_BYTES).step_by(ONES.len()) {
            self.medium.write(offset as usize + start, &ONES)?;
        }
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.medium.mapped()?.get(..self.geometry().bytes() as usize)
    }
}
