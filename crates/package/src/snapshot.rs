//! A machine's tree as it was at one moment, to be kept elsewhere and put back.
//!
//! | bytes | what |
//! |---|---|
//! | 5 | `TNSN` and the version, 1 |
//! | 32 | digest of the package that the machine was made from |
//! | 1 | length `n` of the machine's name |
//! | `n` | its name |
//! | … | the values, each as in an initial tree, in the order of the store |
//! | 32 | SHA-256 of all that stands before |

use alloc::vec::Vec;
use core::fmt;

use tenure_crypto::{Sha256, sha256};
use tenure_wire::{Digest, Name};

use crate::tree::{Entry, TreeError, take_entry};

const MAGIC: [u8; 5] = *b"TNSN\x01";
const DIGEST_BYTES: usize = 32;

/// Makes a snapshot piece by piece; what it gives is handed on at once.
pub struct SnapshotWriter {
    sum: Sha256,
}

impl SnapshotWriter {
    /// Begins a snapshot of the machine `name`; gives its first bytes.
    pub fn begin(name: &Name, package: &Digest) -> (Self, Vec<u8>) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(package.0);
        bytes.push(name.as_str().len() as u8);
        bytes.extend(name.as_str().as_bytes());
        let mut sum = Sha256::new();
        sum.update(&bytes);
        (Self { sum }, bytes)
    }

    /// Adds a value; gives its bytes.
    pub fn value(&mut self, entry: &Entry<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        entry.write(&mut bytes);
        self.sum.update(&bytes);
        bytes
    }

    /// Ends the snapshot; gives its last bytes.
    pub fn finish(self) -> [u8; DIGEST_BYTES] {
        self.sum.finish().0
    }
}

/// A snapshot, checked.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// The package that the machine was made from.
    pub package: Digest,
    /// The machine's name.
    pub name: Name,
    values: &'a [u8],
}

impl<'a> Snapshot<'a> {
    /// Checks `bytes` from end to end.
    ///
    /// # Errors
    /// As [`SnapshotError`] says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let (body, digest) =
            bytes.split_last_chunk::<DIGEST_BYTES>().ok_or(SnapshotError::NoSnapshot)?;
        let rest = body.strip_prefix(&MAGIC).ok_or(SnapshotError::NoSnapshot)?;
        if sha256(&[body]).0 != *digest {
            return Err(SnapshotError::Damaged);
        }
        let (package, rest) = rest.split_first_chunk().ok_or(SnapshotError::Damaged)?;
        let (length, rest) = rest.split_first().ok_or(SnapshotError::Damaged)?;
        let (name, values) =
            rest.split_at_checked(usize::from(*length)).ok_or(SnapshotError::Damaged)?;
        let name = core::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        let mut left = values;
        while !left.is_empty() {
            left = take_entry(left).map_err(SnapshotError::Value)?.1;
        }
        Ok(Self { package: Digest(*package), name: name.ok_or(SnapshotError::Damaged)?, values })
    }

    /// The values, in the order in which the store had them.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut rest = self.values;
        core::iter::from_fn(move || {
            let (entry, after) = take_entry(rest).ok()?;
            rest = after;
            Some(entry)
        })
    }
}

/// Why bytes are no snapshot: whoever kept them is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// It is something else, or of another version.
    NoSnapshot,
    /// It was changed, or cut short.
    Damaged,
    /// One of its values can't be in a tree.
    Value(TreeError),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot => f.write_str("it is no snapshot of this version"),
            Self::Damaged => f.write_str("the snapshot is damaged"),
            Self::Value(error) => write!(f, "the snapshot: {error}"),
        }
    }
}

impl core::error::Error for SnapshotError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::ValueKind;

    fn snapshot(values: &[(&str, &[u8])]) -> Vec<u8> {
        let name = "counter".parse().unwrap();
        let (mut writer, mut bytes) = SnapshotWriter::begin(&name, &Digest([7; 32]));
        for (path, value) in values {
            bytes.extend(writer.value(&Entry { path, kind: ValueKind::Bytes, value }));
        }
        bytes.extend(writer.finish());
        bytes
    }

    #[test]
    fn what_was_written_is_read_back() {
        let values: [(&str, &[u8]); 3] = [("a.b", b"1"), ("a-b", b""), ("c", &[9; 2000])];
        let bytes = snapshot(&values);
        let read = Snapshot::parse(&bytes).unwrap();
        assert_eq!((read.name.as_str(), read.package), ("counter", Digest([7; 32])));
        assert!(read.entries().map(|entry| (entry.path, entry.value)).eq(values));
    }

    #[test]
    fn whatever_is_changed_or_cut_is_refused() {
        let bytes = snapshot(&[("a", b"1"), ("b", b"2")]);
        for length in 0..bytes.len() {
            assert!(Snapshot::parse(&bytes[..length]).is_err());
            let mut changed = bytes.clone();
            changed[length] ^= 1;
            assert!(Snapshot::parse(&changed).is_err());
        }
        let forged = snapshot(&[("a..b", b"1")]);
        assert_eq!(Snapshot::parse(&forged).unwrap_err(), SnapshotError::Value(TreeError::Path));
    }
}
