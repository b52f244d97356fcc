//! Where the loader, its log, the settings and the two slots lie in flash, in sectors of 4 KiB; what
//! follows is the node's.

/// Bytes of a sector.
pub const SECTOR_BYTES: u32 = 4096;

/// A run of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Run {
    /// Where it begins, in bytes.
    pub const fn offset(self) -> u32 {
        self.first * SECTOR_BYTES
    }

    /// How long it is, in bytes.
    pub const fn bytes(self) -> u32 {
        self.count * SECTOR_BYTES
    }

    /// The sector behind its last.
    pub const fn end(self) -> u32 {
        self.first + self.count
    }
}

/// The loader itself, which no update touches.
pub const LOADER: Run = Run { first: 0, count: 8 };
/// The loader's log.
pub const LOG: Run = Run { first: LOADER.end(), count: 2 };
/// The settings of a device before its first start.
pub const SETTINGS: Run = Run { first: LOG.end(), count: 1 };
/// The slots begin at a multiple of 64 KiB, which is what the flash mapping of small chips wants.
pub const SLOTS: [Run; 2] = [Run { first: 16, count: 224 }, Run { first: 240, count: 224 }];
/// The first sector that is the node's.
pub const REST: u32 = SLOTS[1].end();

const _: () = assert!(SETTINGS.end() <= SLOTS[0].first && SLOTS[0].end() == SLOTS[1].first);
const _: () = assert!(SLOTS[0].offset().is_multiple_of(0x1_0000));
