//! The format of a record and of a sector's header.
//!
//! ```text
//! record  0 tag (action, origin, 0x40 if the value is sealed) | 1 path length | 2 tree (2) | 4 value length (2) | 6 value CRC (4)
//!         | 10 head CRC (4) | 14 path | value | 0xFF to the next unit
//! header  0 "TNR" 0x01 | 4 sector bytes | 8 sector count | 12 salt | 16 sequence | 20 oldest
//!         | 24 CRC (4) | 0xFF to the next unit
//! ```
//! Integers are little-endian; CRCs are CRC-32C. The head CRC begins with the store's salt, the
//! sector's sequence number and the record's offset, so that a record counts in its own place
//! alone: neither what an old erase left over, nor a value that looks like a record, is one.

use crc::{CRC_32_ISCSI, Crc};
use tenure_hal::FlashGeometry;

use crate::path::PATH_BYTES_MAX;
use crate::rot;

#[cfg(not(feature = "small-crc"))]
type Method = crc::Table<1>;
#[cfg(feature = "small-crc")]
type Method = crc::NoTable;

pub(crate) static CRC: Crc<u32, Method> = Crc::<u32, Method>::new(&CRC_32_ISCSI);

/// The bytes before a record's path.
pub(crate) const HEAD_BYTES: usize = 14;
/// The most bytes from a record's start to its value.
pub(crate) const HEAD_AND_PATH_BYTES_MAX: usize = HEAD_BYTES + PATH_BYTES_MAX;
/// Bytes of a sector's header, without padding.
pub(crate) const HEADER_BYTES: usize = 28;
/// The value of a commit record: the position in the log at which its batch begins.
pub(crate) const COMMIT_VALUE_BYTES: usize = 8;

/// No flash lives to see that many sectors erased.
const SEQUENCE_MAX: u32 = u32::MAX / 2;

const MAGIC: [u8; 4] = *b"TNR\x01";

/// How readers see a value; the store treats both alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// Any bytes.
    Bytes,
    /// UTF-8 text, as its writer said; the store doesn't check it.
    Text,
}

/// The action of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sets a value.
    Set(ValueKind),
    /// Deletes a node and all below it.
    Delete,
    /// Makes the batched records before it count.
    Commit,
    /// Says that the sector which was being reclaimed is free.
    Reclaimed,
}

/// How a record came into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Written by itself: counts at once.
    Alone,
    /// Part of a batch: counts once a commit follows.
    Batched,
    /// Copied from a sector that is being reclaimed.
    Copied,
}

const BATCHED: u8 = 0x10;
const COPIED: u8 = 0x20;
const SEALED: u8 = 0x40;
const ODD: u8 = 0x80;

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) action: Action,
    pub(crate) origin: Origin,
    pub(crate) is_sealed: bool,
    /// Alternates from record to record, as far as they were acknowledged: one that a power cut tore
    /// is followed by one of the same kind, and one that rotted later is not. The log sets it.
    pub(crate) is_odd: bool,
    pub(crate) tree: u16,
    pub(crate) path_length: u8,
    pub(crate) value_length: u16,
    pub(crate) value_crc: u32,
}

/// The part of a head's CRC that isn't in the head: the place that it was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) salt: u32,
    pub(crate) sequence: u32,
    /// Bytes from the start of the sector.
    pub(crate) offset: u32,
}

impl Head {
    /// Writes head and path to the start of `into`, for a record at `seat`.
    pub(crate) fn emit(&self, path: &[u8], seat: Seat, into: &mut [u8]) {
        let origin = match self.origin {
            Origin::Alone => 0,
            Origin::Batched => BATCHED,
            Origin::Copied => COPIED,
        };
        let action = match self.action {
            Action::Set(ValueKind::Bytes) => 1,
            Action::Set(ValueKind::Text) => 2,
            Action::Delete => 3,
            Action::Commit => 4,
            Action::Reclaimed => 5,
        };
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let mut head = [0; HEAD_BYTES];
        head[0] = action | origin | flag(self.is_sealed, SEALED) | flag(self.is_odd, ODD);
        head[1] = self.path_length;
        head[2..4].copy_from_slice(&self.tree.to_le_bytes());
        head[4..6].copy_from_slice(&self.value_length.to_le_bytes());
        head[6..10].copy_from_slice(&self.value_crc.to_le_bytes());
        let crc = head_crc(seat, &head[..10], path);
        head[10..].copy_from_slice(&crc.to_le_bytes());
        into[..HEAD_BYTES].copy_from_slice(&head);
        into[HEAD_BYTES..HEAD_BYTES + path.len()].copy_from_slice(path);
    }

    /// Reads the head in `bytes`, which is all but the CRC's check: call [`Head::is_seated`] once
    /// the path is there. `None` if no record begins like this.
    pub(crate) fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let action = match bytes[0] & 0x0F {
            1 => Action::Set(ValueKind::Bytes),
            2 => Action::Set(ValueKind::Text),
            3 => Action::Delete,
            4 => Action::Commit,
            5 => Action::Reclaimed,
            _ => return None,
        };
        let origin = match bytes[0] & 0xF0 & !(SEALED | ODD) {
            0 => Origin::Alone,
            BATCHED => Origin::Batched,
            COPIED => Origin::Copied,
            _ => return None,
        };
        let head = Self {
            action,
            origin,
            is_sealed: bytes[0] & SEALED != 0,
            is_odd: bytes[0] & ODD != 0,
            path_length: bytes[1],
            tree: u16::from_le_bytes([bytes[2], bytes[3]]),
            value_length: u16::from_le_bytes([bytes[4], bytes[5]]),
            value_crc: u32::from_le_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]),
        };
        (usize::from(head.path_length) <= PATH_BYTES_MAX).then_some(head)
    }

    /// The head in `bytes`, if one bit of it or of the path behind it flipped since both were written for `seat`; turns that
    /// bit back.
    pub(crate) fn mend(bytes: &mut [u8], seat: Seat) -> Option<Self> {
        // A start leaves zeros behind the last record; in many of them nothing is sought.
        if bytes.iter().take(HEAD_BYTES).all(|byte| *byte == 0) {
            return None;
        }
        let length = *bytes.get(1)?;
        // The path's length tells where the path ends: first as it stands, then with each of its bits turned.
        for turned in [0, 1, 2, 4, 8, 16, 32, 64, 128] {
            bytes[1] = length ^ turned;
            let path_end = HEAD_BYTES + usize::from(bytes[1]);
            let Some(path) = bytes.get(HEAD_BYTES..path_end) else { continue };
            let stored = u32::from_le_bytes([bytes[10], bytes[11], bytes[12], bytes[13]]);
            let difference = head_crc(seat, &bytes[..10], path) ^ stored;
            let is_whole = match turned {
                0 => difference.is_power_of_two() || turn_back(bytes, path_end, difference),
                _ => difference == 0,
            };
            if is_whole {
                let head = bytes.first_chunk().and_then(Self::parse)?;
                return (HEAD_BYTES + usize::from(head.path_length) == path_end).then_some(head);
            }
        }
        None
    }

    /// Whether head and path in `bytes` were written for `seat` and are intact.
    pub(crate) fn is_seated(&self, bytes: &[u8], seat: Seat) -> bool {
        let path = &bytes[HEAD_BYTES..HEAD_BYTES + usize::from(self.path_length)];
        bytes[10..HEAD_BYTES] == head_crc(seat, &bytes[..10], path).to_le_bytes()
    }
}

/// Turns back the one bit before `path_end`, but for the CRC's own, whose flip explains the difference of the CRCs.
fn turn_back(bytes: &mut [u8], path_end: usize, difference: u32) -> bool {
    let Some(bit) = rot::flipped_bit(path_end - 4, difference) else { return false };
    let is_before_crc = bit < 8 * 10;
    rot::flip(bytes, if is_before_crc { bit } else { bit + 8 * 4 });
    true
}

fn head_crc(seat: Seat, fixed: &[u8], path: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(&seat.salt.to_le_bytes());
    digest.update(&seat.sequence.to_le_bytes());
    digest.update(&seat.offset.to_le_bytes());
    digest.update(fixed);
    digest.update(path);
    digest.finalize()
}

/// The CRC of a value of no bytes.
pub(crate) const EMPTY_VALUE_CRC: u32 = 0;

pub(crate) fn value_crc(value: &[u8]) -> u32 {
    CRC.checksum(value)
}

/// The header at the start of a sector in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectorHeader {
    pub(crate) sector_bytes: u32,
    pub(crate) sector_count: u32,
    /// A number of this store alone.
    pub(crate) salt: u32,
    /// Counts the sectors as they are taken into use; the sector's place on the device is this
    /// number modulo the number of sectors.
    pub(crate) sequence: u32,
    /// The sequence number of the log's oldest sector at the time.
    pub(crate) oldest: u32,
}

impl SectorHeader {
    /// A header for a flash of this shape.
    pub(crate) fn new(geometry: FlashGeometry, salt: u32, sequence: u32, oldest: u32) -> Self {
        let FlashGeometry { sector_bytes, sector_count, .. } = geometry;
        Self { sector_bytes, sector_count, salt, sequence, oldest }
    }

    /// Whether its numbers are in the order and the range in which a store counts.
    pub(crate) fn is_sensible(&self) -> bool {
        (self.sector_count..SEQUENCE_MAX).contains(&self.sequence)
            && (1..=self.sequence).contains(&self.oldest)
    }

    pub(crate) fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        let fields = [self.sector_bytes, self.sector_count, self.salt, self.sequence, self.oldest];
        for (field, into) in fields.iter().zip(bytes[4..24].chunks_exact_mut(4)) {
            into.copy_from_slice(&field.to_le_bytes());
        }
        let crc = CRC.checksum(&bytes[..24]);
        bytes[24..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if it is no header, or a damaged one. If `mends` is set, one bit of it may have flipped since it was written.
    pub(crate) fn parse(mut bytes: [u8; HEADER_BYTES], mends: bool) -> Option<Self> {
        let stored = u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
        let difference = CRC.checksum(&bytes[..24]) ^ stored;
        let is_whole = match difference {
            0 => true,
            _ if !mends => false,
            _ => difference.is_power_of_two() || rot::mend(&mut bytes[..24], difference),
        };
        if bytes[..4] != MAGIC || !is_whole {
            return None;
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self {
            sector_bytes: word(4),
            sector_count: word(8),
            salt: word(12),
            sequence: word(16),
            oldest: word(20),
        })
    }
}
