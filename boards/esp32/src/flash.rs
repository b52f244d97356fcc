//! Flash: the chip's own, written by the routines in its ROM, and mapped into the address space beside
//! the firmware so that images run in place.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::slice;

use esp_storage::FlashStorage;
use tenure_board_common::Parts;
use tenure_hal::{Flash, FlashError, FlashGeometry, Partition};

/// The part of the chip that is used and mapped: 4 MiB, which the smallest modules have.
const BYTES: u32 = 4 << 20;
const SECTOR_BYTES: u32 = FlashStorage::SECTOR_SIZE;
const PROGRAM_BYTES: u32 = FlashStorage::WORD_SIZE;
/// Bytes that one entry of the chip's memory management unit maps.
const PAGE_BYTES: u32 = 64 * 1024;
/// Up to 1.5 MiB, as `partitions.csv` says.
const FIRMWARE_SECTORS: u32 = 384;

unsafe extern "C" {
    /// Of the chip's ROM: forgets what the cache holds of these addresses.
    fn Cache_Invalidate_Addr(address: u32, bytes: u32);
}

/// A handle of the chip. Several may exist: each part of the flash has one, and parts don't overlap.
#[derive(Clone)]
pub(crate) struct Chip {
    storage: Rc<RefCell<FlashStorage<'static>>>,
}

impl Chip {
    /// Maps the chip. Called once.
    pub(crate) fn new(flash: esp_storage::Flash<'static>) -> Self {
        for page in 0..BYTES / PAGE_BYTES {
            mapping::set(mapping::FIRST_ENTRY + page, page);
        }
        forget_cached(0, BYTES);
        Self { storage: Rc::new(RefCell::new(FlashStorage::new(flash))) }
    }
}

/// Divides the chip behind the chip's own loader, its table of partitions and one firmware, which is
/// larger than the other boards' by the radio's libraries: half a MiB each less for store and images. The
/// slots and the log of our own loader, which this board hasn't got, are empty.
pub(crate) fn divide(chip: &Chip) -> Result<Parts<Chip>, FlashError> {
    let mut next = FIRMWARE_SECTORS;
    let mut part = |sectors: u32| {
        let first = next;
        next += sectors;
        Partition::new(chip.clone(), first, sectors)
    };
    Ok(Parts {
        settings: part(1)?,
        boot_log: part(0)?,
        slots: [part(0)?, part(0)?],
        node: tenure_node::Parts { store: part(192)?, code: part(320)?, staging: part(127)? },
    })
}

/// Lets what was written be seen through the mapping.
fn forget_cached(offset: u32, bytes: u32) {
    // SAFETY: the range is mapped, nothing in it is ever written through the cache, and the routine
    // touches the cache alone.
    unsafe { Cache_Invalidate_Addr(mapping::BASE + offset, bytes) };
}

fn within(offset: u32, length: usize) -> Result<u32, FlashError> {
    let length = u32::try_from(length).map_err(|_| FlashError::OutOfRange)?;
    let end = offset.checked_add(length).ok_or(FlashError::OutOfRange)?;
    if end <= BYTES { Ok(length) } else { Err(FlashError::OutOfRange) }
}

impl Flash for Chip {
    fn geometry(&self) -> FlashGeometry {
        FlashGeometry {
            sector_bytes: SECTOR_BYTES,
            sector_count: BYTES / SECTOR_BYTES,
            program_bytes: PROGRAM_BYTES,
        }
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        within(offset, into.len())?;
        let mapped = self.mapped().ok_or(FlashError::Hardware)?;
        into.copy_from_slice(&mapped[offset as usize..offset as usize + into.len()]);
        Ok(())
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let length = within(offset, bytes.len())?;
        if !offset.is_multiple_of(PROGRAM_BYTES) || !length.is_multiple_of(PROGRAM_BYTES) {
            return Err(FlashError::Misaligned);
        }
        let mapped = self.mapped().ok_or(FlashError::Hardware)?;
        let stored = &mapped[offset as usize..][..bytes.len()];
        if stored.iter().zip(bytes).any(|(old, new)| !old & new != 0) {
            return Err(FlashError::NotErased);
        }
        let written = self.storage.borrow_mut().write_nor(offset, bytes);
        forget_cached(offset, length);
        written.map_err(|_| FlashError::Hardware)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        let offset = sector.checked_mul(SECTOR_BYTES).ok_or(FlashError::OutOfRange)?;
        within(offset, SECTOR_BYTES as usize)?;
        let erased = self.storage.borrow_mut().erase(offset, offset + SECTOR_BYTES);
        forget_cached(offset, SECTOR_BYTES);
        erased.map_err(|_| FlashError::Hardware)
    }

    fn mapped(&self) -> Option<&[u8]> {
        // SAFETY: `Chip::new` has mapped the whole of it; whoever writes to a part of it holds that
        // part's handle mutably, so that nobody holds a slice of what changes.
        Some(unsafe { slice::from_raw_parts(mapping::BASE as *const u8, BYTES as usize) })
    }
}

/// A table of 128 entries, of which the firmware's own come first (ESP32-C3 technical reference manual,
/// 3.3.2): its second half is ours.
#[cfg(feature = "esp32c3")]
mod mapping {
    use super::PAGE_BYTES;

    const TABLE: *mut u32 = 0x600C_5000 as *mut u32;
    pub(super) const FIRST_ENTRY: u32 = 64;
    pub(super) const BASE: u32 = 0x3C00_0000 + FIRST_ENTRY * PAGE_BYTES;

    /// Lets an entry lead to a page of flash.
    pub(super) fn set(entry: u32, page: u32) {
        // SAFETY: one of the table's entries; the firmware's image ends far below them. An entry is
        // the page's number; the bit that would make it invalid is not set.
        unsafe { TABLE.add(entry as usize).write_volatile(page) };
    }
}

/// 256 entries behind two registers, of which the firmware's own come first (ESP32-C6 technical
/// reference manual, 5.3.3): the second half is ours.
#[cfg(feature = "esp32c6")]
mod mapping {
    use super::PAGE_BYTES;

    const CONTENT: *mut u32 = 0x6000_237C as *mut u32;
    const INDEX: *mut u32 = 0x6000_2380 as *mut u32;
    const VALID: u32 = 1 << 9;
    pub(super) const FIRST_ENTRY: u32 = 128;
    pub(super) const BASE: u32 = 0x4200_0000 + FIRST_ENTRY * PAGE_BYTES;

    /// Lets an entry lead to a page of flash.
    pub(super) fn set(entry: u32, page: u32) {
        // SAFETY: the index of one of the entries, and what it shall hold; the firmware's image ends
        // far below them. No handler uses these registers.
        unsafe {
            INDEX.write_volatile(entry);
            CONTENT.write_volatile(page | VALID);
        }
    }
}
