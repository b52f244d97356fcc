//! UF2, the file format by which boards with a drive take what goes into their flash: blocks of 512 bytes,
//! each with 256 bytes of flash and where they go.
//!
//! Source: the format's specification, <https://github.com/microsoft/uf2>; what the RP2040 makes of it,
//! RP2040 datasheet 2.8.4.

use core::fmt;

/// Bytes of a block in the file.
pub const BLOCK_BYTES: usize = 512;
/// Bytes of flash in a block.
pub const PAGE_BYTES: usize = 256;
/// The number of the RP2040 among the chips that take such files.
pub const RP2040: u32 = 0xE48B_FF56;
/// Where an RP2040 sees the first byte of its flash.
pub const RP2040_FLASH: u32 = 0x1000_0000;

const MAGIC: [u32; 2] = [0x0A32_4655, 0x9E5D_5157];
const MAGIC_END: u32 = 0x0AB1_6F30;
/// The word at 28 is the chip's number.
const HAS_CHIP: u32 = 0x2000;
/// The block isn't for the flash.
const NOT_FLASH: u32 = 0x0001;

/// The blocks of a file that carries these pages, each with the address where it goes.
pub fn blocks(pages: &[(u32, [u8; PAGE_BYTES])]) -> impl Iterator<Item = [u8; BLOCK_BYTES]> + '_ {
    let count = pages.len() as u32;
    let blocks = (0..count).zip(pages).map(move |(number, (address, page))| Block {
        address: *address,
        page: *page,
        number,
        count,
    });
    blocks.map(|block| block.to_bytes())
}

/// One block: a page of flash, and its place among the blocks of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where the page goes, as the chip addresses it.
    pub address: u32,
    /// The page.
    pub page: [u8; PAGE_BYTES],
    /// Its number, from 0 on.
    pub number: u32,
    /// How many blocks the file has.
    pub count: u32,
}

/// Why 512 bytes are no block for an RP2040's flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// It doesn't begin and end as a block does.
    Magic,
    /// It is for another chip, or names none.
    Chip,
    /// It isn't for the flash, or carries another number of bytes than a page has.
    Page,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "not a block of UF2",
            Self::Chip => "made for another chip than the RP2040",
            Self::Page => "not a page of flash of 256 bytes",
        })
    }
}

impl core::error::Error for BlockError {}

impl Block {
    /// The block as it stands in a file for the RP2040.
    pub fn to_bytes(&self) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        let words = [
            MAGIC[0],
            MAGIC[1],
            HAS_CHIP,
            self.address,
            PAGE_BYTES as u32,
            self.number,
            self.count,
            RP2040,
        ];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..32 + PAGE_BYTES].copy_from_slice(&self.page);
        bytes[BLOCK_BYTES - 4..].copy_from_slice(&MAGIC_END.to_le_bytes());
        bytes
    }

    /// Reads a block for the RP2040's flash.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn from_bytes(bytes: &[u8; BLOCK_BYTES]) -> Result<Self, BlockError> {
        let word = |index: usize| {
            let at = index * 4;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if [word(0), word(1)] != MAGIC || word(BLOCK_BYTES / 4 - 1) != MAGIC_END {
            return Err(BlockError::Magic);
        }
        let (flags, address, length, chip) = (word(2), word(3), word(4), word(7));
        if flags & HAS_CHIP == 0 || chip != RP2040 {
            return Err(BlockError::Chip);
        }
        if flags & NOT_FLASH != 0 || length != PAGE_BYTES as u32 {
            return Err(BlockError::Page);
        }
        let mut page = [0; PAGE_BYTES];
        page.copy_from_slice(&bytes[32..32 + PAGE_BYTES]);
        Ok(Self { address, page, number: word(5), count: word(6) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block =
        Block { address: RP2040_FLASH + 0x100, page: [0xA5; PAGE_BYTES], number: 1, count: 3 };

    #[test]
    fn block_is_laid_out_as_the_specification_has_it_and_is_read_back() {
        let bytes = BLOCK.to_bytes();
        assert_eq!(bytes[..8], *b"UF2\n\x57\x51\x5D\x9E");
        assert_eq!(bytes[8..12], [0x00, 0x20, 0, 0]);
        assert_eq!(bytes[12..16], [0x00, 0x01, 0, 0x10]);
        assert_eq!(bytes[28..32], [0x56, 0xFF, 0x8B, 0xE4]);
        assert_eq!(bytes[508..], [0x30, 0x6F, 0xB1, 0x0A]);
        assert_eq!(Block::from_bytes(&bytes), Ok(BLOCK));
    }

    #[test]
    fn block_with_another_magic_chip_or_length_is_refused_by_name() {
        let with = |at: usize, value: u8| {
            let mut bytes = BLOCK.to_bytes();
            bytes[at] ^= value;
            Block::from_bytes(&bytes)
        };
        assert_eq!(with(0, 1), Err(BlockError::Magic));
        assert_eq!(with(511, 1), Err(BlockError::Magic));
        assert_eq!(with(28, 1), Err(BlockError::Chip));
        assert_eq!(with(9, 0x20), Err(BlockError::Chip));
        assert_eq!(with(8, 1), Err(BlockError::Page));
        assert_eq!(with(17, 2), Err(BlockError::Page));
    }
}
