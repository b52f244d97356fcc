//! Images of firmware: the slots that they stand in, and the header that each begins with.

use crc::{CRC_32_ISCSI, Crc, Table};
use tenure_hal::{Flash, FlashError};

pub(crate) static CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);

/// One of the two places for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The first.
    A,
    /// The second.
    B,
}

impl Slot {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// 0 or 1.
    pub const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    /// Its letter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    pub(crate) fn from_index(index: u8) -> Option<Self> {
        [Self::A, Self::B].get(usize::from(index)).copied()
    }
}

/// An image in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it stands.
    pub slot: Slot,
    /// Its number; a later firmware has a greater one.
    pub number: u32,
    /// Its length.
    pub bytes: u32,
    /// CRC-32C of it.
    pub checksum: u32,
}

impl Image {
    /// Describes `contents`, which stand in `slot`.
    pub fn new(slot: Slot, number: u32, contents: &[u8]) -> Self {
        Self { slot, number, bytes: contents.len() as u32, checksum: CRC.checksum(contents) }
    }

    /// Whether it stands whole in its slot's flash.
    ///
    /// # Errors
    /// The flash can't be read.
    pub fn is_whole<F: Flash>(&self, flash: &mut F) -> Result<bool, FlashError> {
        if self.bytes > flash.geometry().bytes() {
            return Ok(false);
        }
        let mut digest = CRC.digest();
        let mut piece = [0; 256];
        let mut offset = 0;
        while offset < self.bytes {
            let length = piece.len().min((self.bytes - offset) as usize);
            flash.read(offset, &mut piece[..length])?;
            digest.update(&piece[..length]);
            offset += length as u32;
        }
        Ok(digest.finalize() == self.checksum)
    }
}

/// How long the header is; the first instruction follows.
pub const HEADER_BYTES: usize = 64;
/// The longest name of a board.
pub const BOARD_BYTES_MAX: usize = 24;
const MAGIC: [u8; 8] = *b"tenurefi";
const BOARD_AT: usize = 16;

/// The description that an image carries in its first bytes.
///
/// | offset | bytes | what |
/// |---|---|---|
/// | 0 | 8 | `tenurefi` |
/// | 8 | 4 | the address that it is linked for, little endian as all that follows |
/// | 12 | 2 | the version of the images of machines that its vm runs |
/// | 14 | 2 | zero |
/// | 16 | 24 | the name of its board, then zeros |
/// | 40 | 24 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where the image must stand in the address space to run.
    pub load_at: u32,
    /// The version of the images of machines that its vm runs.
    pub machine_format: u16,
    board: [u8; BOARD_BYTES_MAX],
}

impl Header {
    /// A header; what `board` has beyond [`BOARD_BYTES_MAX`] is cut off.
    pub const fn new(board: &str, load_at: u32, machine_format: u16) -> Self {
        let mut name = [0; BOARD_BYTES_MAX];
        let mut index = 0;
        while index < BOARD_BYTES_MAX && index < board.len() {
            name[index] = board.as_bytes()[index];
            index += 1;
        }
        Self { load_at, machine_format, board: name }
    }

    /// The header as the image begins with it.
    pub const fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        copy(&mut bytes, 0, &MAGIC);
        copy(&mut bytes, 8, &self.load_at.to_le_bytes());
        copy(&mut bytes, 12, &self.machine_format.to_le_bytes());
        copy(&mut bytes, BOARD_AT, &self.board);
        bytes
    }

    /// The header that `image` begins with, if it is an image.
    pub fn from_bytes(image: &[u8]) -> Option<Self> {
        let bytes = image.first_chunk::<HEADER_BYTES>()?;
        let load_at = u32::from_le_bytes(*bytes[8..].first_chunk()?);
        let machine_format = u16::from_le_bytes(*bytes[12..].first_chunk()?);
        let board = *bytes[BOARD_AT..].first_chunk()?;
        bytes.starts_with(&MAGIC).then_some(Self { load_at, machine_format, board })
    }

    /// The name of its board; empty if it is none.
    pub fn board(&self) -> &str {
        let length = self.board.iter().position(|byte| *byte == 0).unwrap_or(BOARD_BYTES_MAX);
        core::str::from_utf8(&self.board[..length]).unwrap_or_default()
    }
}

const fn copy(into: &mut [u8; HEADER_BYTES], at: usize, from: &[u8]) {
    let mut index = 0;
    while index < from.len() {
        into[at + index] = from[index];
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_says_what_it_was_made_of() {
        let header = Header::new("qemu-riscv32", 0x8001_0000, 2);
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), Some(header));
        assert_eq!(header.board(), "qemu-riscv32");
        assert_eq!(Header::from_bytes(&bytes[..63]), None);
        assert_eq!(Header::from_bytes(&[0xFF; 64]), None);
        let long = Header::new("a-board-with-a-name-of-thirty-", 0, 0);
        assert_eq!(long.board(), "a-board-with-a-name-of-t");
    }
}
