//! The values that a machine finds in its tree when it is first installed.
//!
//! Entries follow one another, in ascending order of their paths and each path once:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | length `p` of the path |
//! | 1 | kind: 0 bytes, 1 text |
//! | 2 | length `v` of the value, little-endian |
//! | `p` | the path |
//! | `v` | the value |

use core::fmt;

use tenure_wire::limits::{PATH_BYTES_MAX, VALUE_BYTES_MAX};

const HEADER_BYTES: usize = 4;

const _: () = assert!(PATH_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(VALUE_BYTES_MAX <= u16::MAX as usize);

/// An initial tree, checked.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    bytes: &'a [u8],
}

/// A value of an initial tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it stands (`a.b.c`).
    pub path: &'a str,
    /// The kind.
    pub kind: ValueKind,
    /// The value; if it is text, it is UTF-8.
    pub value: &'a [u8],
}

/// The kinds of value, numbered as the host call `tree_set` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueKind {
    /// Bytes.
    Bytes = 0,
    /// Text.
    Text = 1,
}

impl<'a> Tree<'a> {
    /// Checks `bytes` from end to end.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, TreeError> {
        let mut rest = bytes;
        let mut last = "";
        while !rest.is_empty() {
            let (entry, after) = take_entry(rest)?;
            if !last.is_empty() && entry.path <= last {
                return Err(TreeError::Order);
            }
            last = entry.path;
            rest = after;
        }
        Ok(Self { bytes })
    }

    /// The values, in the order of their paths.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (entry, after) = take_entry(rest).ok()?;
            rest = after;
            Some(entry)
        })
    }
}

impl Entry<'_> {
    /// Checks path and value.
    pub(crate) fn check(&self) -> Result<(), TreeError> {
        tenure_wire::path::check_value(self.path).map_err(|_| TreeError::Path)?;
        if self.value.len() > VALUE_BYTES_MAX {
            return Err(TreeError::Value);
        }
        if self.kind == ValueKind::Text && core::str::from_utf8(self.value).is_err() {
            return Err(TreeError::Text);
        }
        Ok(())
    }

    /// Appends the entry to `bytes`; it has been checked.
    pub(crate) fn write(&self, bytes: &mut alloc::vec::Vec<u8>) {
        bytes.extend([self.path.len() as u8, self.kind as u8]);
        bytes.extend((self.value.len() as u16).to_le_bytes());
        bytes.extend(self.path.as_bytes());
        bytes.extend(self.value);
    }
}

/// Takes the first entry off `bytes`.
pub(crate) fn take_entry(bytes: &[u8]) -> Result<(Entry<'_>, &[u8]), TreeError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(TreeError::Truncated)?;
    let [path_bytes, kind, value_low, value_high] = *header;
    let kind = match kind {
        0 => ValueKind::Bytes,
        1 => ValueKind::Text,
        _ => return Err(TreeError::Kind),
    };
    let value_bytes = usize::from(u16::from_le_bytes([value_low, value_high]));
    let (path, rest) = rest.split_at_checked(path_bytes.into()).ok_or(TreeError::Truncated)?;
    let (value, rest) = rest.split_at_checked(value_bytes).ok_or(TreeError::Truncated)?;
    let path = core::str::from_utf8(path).map_err(|_| TreeError::Path)?;
    let entry = Entry { path, kind, value };
    entry.check()?;
    Ok((entry, rest))
}

/// A fault of an initial tree. The package's author is to blame, or somebody who tampered with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// It ends within an entry.
    Truncated,
    /// A path is empty, too long, or has an empty part or a control character.
    Path,
    /// A path is there twice, or not in order.
    Order,
    /// A value is neither bytes nor text.
    Kind,
    /// A value is too long.
    Value,
    /// A text isn't UTF-8.
    Text,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("it ends within an entry"),
            Self::Path => write!(
                f,
                "a path isn't 1 to {PATH_BYTES_MAX} bytes of names without control characters, with a dot between \
                 each two"
            ),
            Self::Order => f.write_str("a path is there twice, or not in order"),
            Self::Kind => f.write_str("a value is neither bytes nor text"),
            Self::Value => write!(f, "a value is longer than {VALUE_BYTES_MAX} bytes"),
            Self::Text => f.write_str("a text isn't UTF-8"),
        }
    }
}

impl core::error::Error for TreeError {}

#[cfg(test)]
mod tests;
