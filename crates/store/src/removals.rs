//! Deletions that are on the flash and not yet through the index.
//!
//! Invariants:
//! - A tree has one at most: whatever else is done with the tree ends it first.
//! - A value that a reclaim meets in between goes with the deletion, and is counted there.

use alloc::vec::Vec;

use crate::log::Entry;
use crate::path;

/// A node whose deletion is on the flash, while entries of it stand in the index.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) tree: u16,
    pub(crate) node: Vec<u8>,
    /// Values that a reclaim took out of the index before it came to them.
    pub(crate) reclaimed: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Removals(Vec<Removal>);

impl Removals {
    /// The deletion of a node begins, or goes on.
    pub(crate) fn push(&mut self, tree: u16, node: Vec<u8>) {
        self.0.push(Removal { tree, node, reclaimed: 0 });
    }

    /// The deletion that is under way in a tree: it ends, unless it is pushed again.
    pub(crate) fn take(&mut self, tree: u16) -> Option<Removal> {
        let at = self.0.iter().position(|removal| removal.tree == tree)?;
        Some(self.0.swap_remove(at))
    }

    /// Whether a deletion that is under way takes this record along; it is counted there then.
    pub(crate) fn take_along(&mut self, entry: &Entry) -> bool {
        let covers = |removal: &&mut Removal| {
            removal.tree == entry.head.tree && path::is_within(entry.path(), &removal.node)
        };
        let found = self.0.iter_mut().find(covers);
        found.map(|removal| removal.reclaimed += 1).is_some()
    }
}
