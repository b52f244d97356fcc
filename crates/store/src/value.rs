//! The content of a store: values, in trees.

use alloc::vec::Vec;

use crate::record::ValueKind;

/// The number of a tree: who it belongs to is the caller's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u16);

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Bytes or text.
    pub kind: ValueKind,
    /// The value itself.
    pub bytes: Vec<u8>,
}
