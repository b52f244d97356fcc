//! A call or a reply while its fragments come in.

use alloc::vec;
use alloc::vec::Vec;

use tenure_wire::frame::{Fragment, FragmentSet};

/// A byte string of which some fragments are missing.
#[derive(Clone, Debug)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    fragment_bytes: u16,
    missing: FragmentSet,
}

impl Assembly {
    /// Room for the whole that `fragment` is a part of; the part itself isn't added yet. The
    /// caller has checked that there is room for [`Fragment::length`].
    pub(crate) fn begin(fragment: &Fragment<'_>) -> Self {
        Self {
            bytes: vec![0; fragment.length()],
            fragment_bytes: fragment.fragment_bytes(),
            missing: FragmentSet::first(fragment.count()),
        }
    }

    /// Adds a part; one that doesn't fit the first is ignored. Returns whether it was new.
    pub(crate) fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        if !self.fits(fragment) || !self.missing.contains(fragment.index()) {
            return false;
        }
        let end = fragment.offset() + fragment.bytes().len();
        if let Some(place) = self.bytes.get_mut(fragment.offset()..end) {
            place.copy_from_slice(fragment.bytes());
            self.missing.remove(fragment.index());
        }
        true
    }

    /// Whether a part is of the same whole, as far as its lengths tell.
    pub(crate) fn fits(&self, fragment: &Fragment<'_>) -> bool {
        fragment.length() == self.bytes.len() && fragment.fragment_bytes() == self.fragment_bytes
    }

    /// The parts that aren't there yet.
    pub(crate) fn missing(&self) -> FragmentSet {
        self.missing
    }

    /// Whether parts before that one are missing.
    pub(crate) fn has_gap_before(&self, index: usize) -> bool {
        self.missing.iter().any(|missing| missing < index)
    }

    /// How much memory it takes.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes are there, to within the last fragment's.
    pub(crate) fn received_bytes(&self) -> usize {
        let missing = self.missing.len().saturating_mul(self.fragment_bytes.into());
        self.bytes.len().saturating_sub(missing)
    }

    /// The whole, once nothing is missing.
    pub(crate) fn complete(&mut self) -> Option<Vec<u8>> {
        self.missing.is_empty().then(|| core::mem::take(&mut self.bytes))
    }
}
