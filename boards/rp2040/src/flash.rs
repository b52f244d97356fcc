//! The flash chip behind the XIP window, erased and programmed by the boot ROM's functions (data sheet, 2.8.3.1.3).
//!
//! While the ROM writes, nothing can be read from flash. No interrupt is taken, and direct memory access touches
//! RAM alone.

use rp2040_flash::flash::{flash_jedec_id, flash_range_erase, flash_range_program};
use tenure_hal::{Flash, FlashError, FlashGeometry};

use crate::FLASH_BASE;

const SECTOR_BYTES: u32 = 4096;
/// The ROM programs whole pages; ones in a page leave what is there.
const PAGE_BYTES: usize = 256;
/// The capacities that a board of this chip can have: 2 to 16 MiB.
const CAPACITY_LOG2: core::ops::RangeInclusive<u32> = 21..=24;

/// A handle of the flash chip. Several may exist: each part of the flash has one, and parts don't overlap.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    sector_count: u32,
}

impl Chip {
    /// Asks the chip how large it is; `None` if it is none that this firmware knows.
    pub fn find() -> Option<Self> {
        // SAFETY: as the module says, nothing reads flash meanwhile; the second stage stands at its beginning.
        let id = unsafe { flash_jedec_id(true) };
        // The third byte is the logarithm of the capacity in bytes (JEDEC JEP106 and the makers' custom).
        let log2 = id & 0xFF;
        CAPACITY_LOG2.contains(&log2).then(|| Self { sector_count: (1 << log2) / SECTOR_BYTES })
    }

    fn contents(&self) -> &[u8] {
        // SAFETY: flash is mapped for good; a part changes only by its own handle, which is borrowed mutably then.
        unsafe {
            core::slice::from_raw_parts(FLASH_BASE as *const u8, self.geometry().bytes() as usize)
        }
    }

    fn range(&self, offset: u32, length: usize) -> Result<&[u8], FlashError> {
        let end = (offset as usize).checked_add(length).ok_or(FlashError::OutOfRange)?;
        self.contents().get(offset as usize..end).ok_or(FlashError::OutOfRange)
    }
}

impl Flash for Chip {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry {
            sector_bytes: SECTOR_BYTES,
            sector_count: self.sector_count,
            program_bytes: 4,
        }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        into.copy_from_slice(self.range(offset, into.len())?);
        Ok(())
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        if !offset.is_multiple_of(4) || !bytes.len().is_multiple_of(4) {
            return Err(FlashError::Misaligned);
        }
        let stored = self.range(offset, bytes.len())?;
        if stored.iter().zip(bytes).any(|(stored, byte)| byte & !stored != 0) {
            return Err(FlashError::NotErased);
        }
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = at as usize % PAGE_BYTES;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            let mut page = [0xFF; PAGE_BYTES];
            page[within..within + now.len()].copy_from_slice(now);
            // SAFETY: a whole page inside the chip, from RAM; nothing reads flash meanwhile.
            unsafe { flash_range_program(at - within as u32, &page, true) };
            at += now.len() as u32;
            rest = later;
        }
        if self.range(offset, bytes.len())? == bytes { Ok(()) } else { Err(FlashError::Hardware) }
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        if sector >= self.sector_count {
            return Err(FlashError::OutOfRange);
        }
        let offset = sector * SECTOR_BYTES;
        // SAFETY: a whole sector inside the chip; nothing reads flash meanwhile.
        unsafe { flash_range_erase(offset, SECTOR_BYTES, true) };
        let erased = self.range(offset, SECTOR_BYTES as usize)?;
        if erased.iter().all(|byte| *byte == 0xFF) { Ok(()) } else { Err(FlashError::Hardware) }
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(self.contents())
    }
}
