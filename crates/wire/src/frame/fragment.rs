//! Parts of a longer byte string, and sets of them.

use alloc::vec::Vec;

use super::Finished;

/// The most fragments that a call or a reply is split into.
pub const FRAGMENTS_MAX: usize = 256;
/// How many bytes of a message with a fragment aren't the fragment's own, at most.
pub const FRAGMENT_OVERHEAD: usize = Finished::BYTES + 1 + 8 + 4 + FRAGMENT_HEADER_BYTES;

const FRAGMENT_HEADER_BYTES: usize = 4 + 2 + 1 + 1;

/// A part of a longer byte string. One that exists is consistent: its index and the length of its
/// bytes fit the lengths it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    length: u32,
    fragment_bytes: u16,
    index: u8,
    last_of_burst: bool,
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The part number `index` of `whole`, when parts are `fragment_bytes` long; `None` if there
    /// is no such part, or if `whole` would have too many.
    pub fn of(
        whole: &'a [u8],
        fragment_bytes: u16,
        index: usize,
        last_of_burst: bool,
    ) -> Option<Self> {
        let length = u32::try_from(whole.len()).ok()?;
        if index >= fragment_count(length, fragment_bytes)? {
            return None;
        }
        let start = index * usize::from(fragment_bytes);
        let end = whole.len().min(start + usize::from(fragment_bytes));
        let index = u8::try_from(index).ok()?;
        let bytes = whole.get(start..end)?;
        Some(Self { length, fragment_bytes, index, last_of_burst, bytes })
    }

    /// The length of the whole, in bytes; never zero.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The length of all parts but the last, in bytes; never zero.
    pub fn fragment_bytes(&self) -> u16 {
        self.fragment_bytes
    }

    /// Which part this is, from 0.
    pub fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.length().div_ceil(usize::from(self.fragment_bytes))
    }

    /// Where in the whole this part begins.
    pub fn offset(&self) -> usize {
        self.index() * usize::from(self.fragment_bytes)
    }

    /// Whether the sender waits now to be told what is missing.
    pub fn last_of_burst(&self) -> bool {
        self.last_of_burst
    }

    /// The part itself.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.length.to_le_bytes());
        to.extend_from_slice(&self.fragment_bytes.to_le_bytes());
        to.push(self.index);
        to.push(self.last_of_burst.into());
        to.extend_from_slice(self.bytes);
    }

    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (fragment_bytes, rest) = rest.split_first_chunk()?;
        let ([index, last_of_burst], bytes) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        let fragment_bytes = u16::from_le_bytes(*fragment_bytes);
        let last_of_burst = match last_of_burst {
            0 => false,
            1 => true,
            _ => return None,
        };
        if usize::from(*index) >= fragment_count(length, fragment_bytes)? {
            return None;
        }
        let fragment = Self { length, fragment_bytes, index: *index, last_of_burst, bytes };
        let expected =
            usize::from(fragment_bytes).min(fragment.length().checked_sub(fragment.offset())?);
        (bytes.len() == expected).then_some(fragment)
    }
}

/// How many fragments `length` bytes take; `None` if none or too many.
fn fragment_count(length: u32, fragment_bytes: u16) -> Option<usize> {
    if fragment_bytes == 0 {
        return None;
    }
    let count = (length as usize).div_ceil(usize::from(fragment_bytes));
    (1..=FRAGMENTS_MAX).contains(&count).then_some(count)
}

/// A set of fragments of one byte string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentSet([u64; FRAGMENTS_MAX / 64]);

impl FragmentSet {
    /// No fragment.
    pub const EMPTY: Self = Self([0; FRAGMENTS_MAX / 64]);
    /// Every fragment that there can be.
    pub const ALL: Self = Self([u64::MAX; FRAGMENTS_MAX / 64]);

    /// The fragments 0 to `count` - 1.
    pub fn first(count: usize) -> Self {
        let mut set = Self::EMPTY;
        (0..count).for_each(|index| set.insert(index));
        set
    }

    /// Adds a fragment; one that can't exist is ignored.
    pub fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Takes a fragment out.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// Whether a fragment is in the set.
    pub fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// How many fragments are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no fragment is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The fragments that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    /// The fragments in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..FRAGMENTS_MAX).filter(|index| self.contains(*index))
    }

    pub(super) fn to_bytes(self) -> [u8; FRAGMENTS_MAX / 8] {
        let mut bytes = [0; FRAGMENTS_MAX / 8];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; FRAGMENTS_MAX / 8] = bytes.try_into().ok()?;
        let mut set = Self::EMPTY;
        for (word, place) in set.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(*place.first_chunk()?);
        }
        Some(set)
    }
}
