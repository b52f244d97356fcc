//! Base trees: values that never change, read where they lie in mapped flash.
//!
//! The values that all machines of a package begin with stand once, and each machine's changes stand on top
//! ([`Overlay`](crate::Overlay)). Integers are little-endian:
//!
//! ```text
//! header   "TBT\x01", number of values (4), CRC of both (4)
//! offsets  one a value (4), counted from the header, in the order of the paths
//! values   CRC of the rest up to the path's end (4) | CRC of the value (4) | length of the path (1) |
//!          kind (1) | length of the value (2) | path | value
//! ```
//!
//! A damaged byte costs the value that it hit: a search steps over records whose heads don't hold.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::error::ReadError;
use crate::path::{self, Edge, Place};
use crate::record::{CRC, ValueKind};
use crate::value::Value;

const MAGIC: [u8; 4] = *b"TBT\x01";
const HEADER_BYTES: usize = 12;
const OFFSET_BYTES: usize = 4;
const HEAD_BYTES: usize = 12;

/// A value of a base tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseValue<'a> {
    /// Where it stands (`a.b.c`).
    pub path: &'a str,
    /// Bytes or text.
    pub kind: ValueKind,
    /// The value.
    pub bytes: &'a [u8],
}

/// A base tree in flash.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// A record whose head and path hold.
struct Record<'a> {
    path: &'a str,
    kind: ValueKind,
    value_crc: u32,
    value: Option<&'a [u8]>,
}

impl<'a> Base<'a> {
    /// The tree without values.
    pub const EMPTY: Base<'static> = Base { bytes: &[], count: 0 };

    /// The tree in `bytes`, or `None` if its header doesn't hold. No bytes at all are the empty tree.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::EMPTY);
        }
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        let (magic, count) = fixed.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(count.try_into().ok()?) as usize;
        let holds = *magic == MAGIC
            && word(rest, 0)? == CRC.checksum(fixed)
            && bytes.len() >= HEADER_BYTES + count.checked_mul(OFFSET_BYTES)?;
        holds.then_some(Self { bytes, count })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The path of value number `index`, unless it is damaged.
    pub(crate) fn path(&self, index: usize) -> Option<&'a str> {
        self.record(index).map(|record| record.path)
    }

    /// Value number `index`.
    pub(crate) fn value(&self, index: usize) -> Result<Value, ReadError> {
        let (kind, bytes) = self.value_bytes(index).ok_or(ReadError::Corrupt)?;
        Ok(Value { kind, bytes: bytes.to_vec() })
    }

    /// The same in place, unless it is damaged.
    pub(crate) fn value_bytes(&self, index: usize) -> Option<(ValueKind, &'a [u8])> {
        let record = self.record(index)?;
        let value = record.value.filter(|value| CRC.checksum(value) == record.value_crc)?;
        Some((record.kind, value))
    }

    /// The number of the value at `path`.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        let index = self.first_from(Place { tree: 0, path: path.as_bytes(), edge: Edge::At });
        (index..self.count)
            .find_map(|index| Some((index, self.path(index)?)))
            .and_then(|(index, found)| (found == path).then_some(index))
    }

    /// The number of the first value that isn't before `place`; what is damaged may be among those
    /// that follow.
    pub(crate) fn first_from(&self, place: Place<'_>) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            // The next that holds, as those that don't can't say where they stand.
            let sound = (middle..high).find_map(|index| Some((index, self.path(index)?)));
            match sound {
                Some((index, path))
                    if place.compare_key(place.tree, path.as_bytes()) == Ordering::Less =>
                {
                    low = index + 1;
                }
                _ => high = middle,
            }
        }
        low
    }

    fn record(&self, index: usize) -> Option<Record<'a>> {
        if index >= self.count {
            return None;
        }
        let at = word(self.bytes, HEADER_BYTES + index * OFFSET_BYTES)? as usize;
        let record = self.bytes.get(at..)?;
        let (head, rest) = record.split_first_chunk::<HEAD_BYTES>()?;
        let [_, _, _, _, _, _, _, _, path_length, kind, low, high] = *head;
        let path_end = HEAD_BYTES + usize::from(path_length);
        if CRC.checksum(record.get(4..path_end)?) != word(record, 0)? {
            return None;
        }
        let value_end = path_end + usize::from(u16::from_le_bytes([low, high]));
        Some(Record {
            path: core::str::from_utf8(rest.get(..path_length.into())?).ok()?,
            kind: if kind == 1 { ValueKind::Text } else { ValueKind::Bytes },
            value_crc: word(record, 4)?,
            value: record.get(path_end..value_end),
        })
    }
}

/// How long the base tree of `values` is, in bytes.
pub fn base_bytes(values: &[BaseValue<'_>]) -> usize {
    HEADER_BYTES + values.iter().map(|value| OFFSET_BYTES + record_bytes(value)).sum::<usize>()
}

/// Hands `write` the base tree of `values`, whose paths and lengths are those of a store's values and
/// each path there once; puts them in order before.
///
/// # Errors
/// The result of `write`.
pub fn write_base<E>(
    values: &mut [BaseValue<'_>],
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    tenure_hal::sort_by(values, |one, two| path::order(one.path.as_bytes(), two.path.as_bytes()));
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend((values.len() as u32).to_le_bytes());
    header.extend(CRC.checksum(&header).to_le_bytes());
    write(&header)?;
    let mut at = HEADER_BYTES + values.len() * OFFSET_BYTES;
    for value in values.iter() {
        write(&(at as u32).to_le_bytes())?;
        at += record_bytes(value);
    }
    for value in values.iter() {
        let mut head = Vec::with_capacity(HEAD_BYTES + value.path.len());
        head.extend(CRC.checksum(value.bytes).to_le_bytes());
        head.extend([value.path.len() as u8, u8::from(value.kind == ValueKind::Text)]);
        head.extend((value.bytes.len() as u16).to_le_bytes());
        head.extend(value.path.as_bytes());
        write(&CRC.checksum(&head).to_le_bytes())?;
        write(&head)?;
        write(value.bytes)?;
    }
    Ok(())
}

fn record_bytes(value: &BaseValue<'_>) -> usize {
    HEAD_BYTES + value.path.len() + value.bytes.len()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
