//! How a store lies on its flash: the sizes that follow from the flash's shape.

use core::num::NonZeroU32;

use tenure_hal::FlashGeometry;

use crate::path::PATH_BYTES_MAX;
use crate::record::{HEAD_BYTES, HEADER_BYTES};

/// The fewest sectors: one for values, one that an overwrite may need, one spare.
pub(crate) const SECTORS_MIN: u32 = 3;
/// The smallest sector in bytes.
pub(crate) const SECTOR_BYTES_MIN: u32 = 512;
/// The alignment of records where the flash asks for less.
const UNIT_MIN: u32 = 4;

/// The size of a record, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// On the flash.
    pub(crate) bytes: u32,
    /// Against [`Layout::charge_max`].
    pub(crate) charge: u64,
}

/// Sizes in bytes, all of them multiples of the unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: FlashGeometry,
    /// Records and headers are padded to a multiple of this power of two, in bytes.
    unit: u32,
    /// What the geometry says, in a type that is divided by without a check.
    sector_bytes: NonZeroU32,
    sector_count: NonZeroU32,
}

impl Layout {
    /// `None` if the flash is too small, or its units don't fit together.
    pub(crate) fn new(geometry: FlashGeometry) -> Option<Self> {
        let FlashGeometry { sector_bytes, sector_count, program_bytes } = geometry;
        let unit = program_bytes.max(UNIT_MIN);
        let fits = sector_count >= SECTORS_MIN
            && sector_bytes >= SECTOR_BYTES_MIN
            && program_bytes.is_power_of_two()
            && unit <= 64
            && sector_bytes.is_multiple_of(unit)
            && sector_bytes.checked_mul(sector_count).is_some();
        let (sector_bytes, sector_count) =
            (NonZeroU32::new(sector_bytes)?, NonZeroU32::new(sector_count)?);
        fits.then_some(Self { geometry, unit, sector_bytes, sector_count })
    }

    pub(crate) fn pad(&self, bytes: u32) -> u32 {
        let rest = self.unit - 1;
        (bytes + rest) & !rest
    }

    /// Which sector of the device the one with this sequence number is.
    pub(crate) fn sector(&self, sequence: u32) -> u32 {
        sequence % self.sector_count
    }

    /// The sector around this place on the device, and how many bytes into it that is.
    pub(crate) fn place(&self, at: u32) -> (u32, u32) {
        (at / self.sector_bytes, at % self.sector_bytes)
    }

    /// The step in which records may begin.
    pub(crate) fn unit(&self) -> u32 {
        self.unit
    }

    /// Where a sector's records begin.
    pub(crate) fn records_start(&self) -> u32 {
        self.pad(HEADER_BYTES as u32)
    }

    /// Where a sector's records end; the record that ends a reclaim has room behind it.
    pub(crate) fn records_end(&self) -> u32 {
        self.geometry.sector_bytes - self.record_bytes(0, 0)
    }

    /// The room for records in a sector.
    pub(crate) fn sector_room(&self) -> u32 {
        self.records_end() - self.records_start()
    }

    /// The size of a record.
    pub(crate) fn record_bytes(&self, path_length: usize, value_length: usize) -> u32 {
        self.pad((HEAD_BYTES + path_length + value_length) as u32)
    }

    /// The longest value that a record with the longest path can hold.
    pub(crate) fn value_bytes_max(&self) -> usize {
        let room = self.sector_room() as usize - HEAD_BYTES - PATH_BYTES_MAX;
        room.min(usize::from(u16::MAX))
    }

    /// The size of a record, and its charge: the size, and for a large one the room that it
    /// may leave unused at the end of the sector before it.
    ///
    /// Records don't cross sectors, so a sector ends with a gap smaller than the next record. The
    /// limit leaves an eighth of every sector for such gaps; what a gap may be beyond an eighth is
    /// charged to the record that may cause it. So what is within the limit always fits.
    pub(crate) fn cost(&self, path_length: usize, value_length: usize) -> Cost {
        let bytes = self.record_bytes(path_length, value_length);
        let gap = bytes.saturating_sub(self.sector_room() / 8);
        Cost { bytes, charge: u64::from(bytes) + u64::from(gap) }
    }

    /// The most that all live records may be charged: seven eighths of all sectors but two, of
    /// which one is the spare and one takes what is written while something is overwritten.
    pub(crate) fn charge_max(&self) -> u64 {
        u64::from(self.geometry.sector_count - 2) * u64::from(self.sector_room()) / 8 * 7
    }
}
