//! Sealed trees: their values are encrypted before they reach the flash, by whoever holds the key.
//!
//! The store knows no cryptography. It says which value stands where, gives each write a number that
//! no other write has, and keeps that number beside the sealed value:
//!
//! ```text
//! sealed value  0 number (8, little-endian) | 8 ciphertext | tag (16)
//! ```
//!
//! Invariants:
//! - The number is the position in the log at which the value was first written: sectors are
//!   numbered without end and no place is written to by two records between two erases, so it doesn't
//!   come again on this flash. What reclaiming copies is copied as it is, with its number.
//! - What is authenticated beside the value is its tree, its path and its kind: a sealed value that is
//!   moved to another place, or told to be text instead of bytes, doesn't open.
//! - A tree that has a seal reads nothing that isn't sealed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use litemap::LiteMap;

use crate::error::ReadError;
use crate::log::Entry;
use crate::record::ValueKind;
use crate::value::{TreeId, Value};

const NUMBER_BYTES: usize = 8;
/// How many bytes sealing a value adds.
pub const SEAL_BYTES: usize = NUMBER_BYTES + TAG_BYTES;
/// How many bytes [`Seal::seal`] adds.
pub const TAG_BYTES: usize = 16;

/// Authenticated encryption under the key of one tree.
pub trait Seal: Send {
    /// Encrypts `value` where it stands and gives its tag, which also covers `associated`. The
    /// store gives each `number` to one value alone.
    fn seal(&self, number: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES];

    /// Decrypts `value` where it stands.
    ///
    /// # Errors
    /// [`Unsealable`] if value, tag, number or associated data are not those that were sealed.
    fn open(
        &self,
        number: u64,
        associated: &[u8],
        value: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), Unsealable>;
}

/// A value was not sealed with this key for this place, or was changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsealable;

impl fmt::Debug for dyn Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// The seal of each tree that has one.
#[derive(Debug)]
pub(crate) struct Seals(LiteMap<u16, Box<dyn Seal>>);

impl Seals {
    /// No tree has one.
    pub(crate) fn new() -> Self {
        Self(LiteMap::new())
    }

    /// Gives a tree its seal, or takes it away.
    pub(crate) fn set(&mut self, tree: TreeId, seal: Option<Box<dyn Seal>>) {
        match seal {
            Some(seal) => self.0.insert(tree.0, seal),
            None => self.0.remove(&tree.0),
        };
    }

    /// How many bytes the value takes in its record.
    pub(crate) fn stored_length(&self, tree: TreeId, value: &[u8]) -> usize {
        value.len() + if self.has(tree) { SEAL_BYTES } else { 0 }
    }

    /// Whether a tree is sealed.
    pub(crate) fn has(&self, tree: TreeId) -> bool {
        self.0.contains_key(&tree.0)
    }

    /// The value in the form in which it stands in the record at position `number`, if its tree is sealed.
    pub(crate) fn sealed(
        &self,
        number: u64,
        tree: TreeId,
        path: &str,
        kind: ValueKind,
        value: &[u8],
    ) -> Option<Vec<u8>> {
        let seal = self.0.get(&tree.0)?;
        let mut sealed = Vec::with_capacity(value.len() + SEAL_BYTES);
        sealed.extend(number.to_le_bytes());
        sealed.extend(value);
        let place = associated(tree, path.as_bytes(), kind);
        let tag = seal.seal(number, &place, &mut sealed[NUMBER_BYTES..]);
        sealed.extend(tag);
        Some(sealed)
    }

    /// The value in the record of `entry`, where `stored` stands.
    pub(crate) fn open(
        &self,
        entry: &Entry,
        kind: ValueKind,
        stored: Vec<u8>,
    ) -> Result<Value, ReadError> {
        let tree = TreeId(entry.head.tree);
        match (self.0.get(&tree.0), entry.head.is_sealed) {
            (None, false) => Ok(Value { kind, bytes: stored }),
            (None, true) => Err(ReadError::Sealed),
            (Some(_), false) => Err(ReadError::Unsealable),
            (Some(seal), true) => open(seal.as_ref(), tree, entry.path(), kind, stored)
                .map(|bytes| Value { kind, bytes })
                .ok_or(ReadError::Unsealable),
        }
    }
}

/// Opens what [`Seals::sealed`] made.
fn open(
    seal: &dyn Seal,
    tree: TreeId,
    path: &[u8],
    kind: ValueKind,
    mut stored: Vec<u8>,
) -> Option<Vec<u8>> {
    let (rest, tag) = stored.split_last_chunk_mut::<TAG_BYTES>()?;
    let (number, value) = rest.split_first_chunk_mut::<NUMBER_BYTES>()?;
    let place = associated(tree, path, kind);
    seal.open(u64::from_le_bytes(*number), &place, value, tag).ok()?;
    stored.truncate(stored.len() - TAG_BYTES);
    stored.drain(..NUMBER_BYTES);
    Some(stored)
}

fn associated(tree: TreeId, path: &[u8], kind: ValueKind) -> Vec<u8> {
    let kind = match kind {
        ValueKind::Bytes => 0,
        ValueKind::Text => 1,
    };
    let mut place = Vec::with_capacity(3 + path.len());
    place.extend(tree.0.to_le_bytes());
    place.push(kind);
    place.extend(path);
    place
}
