//! Several changes that happen together or not at all.
//!
//! The records of a batch count once its commit record stands behind them. The commit says where
//! the batch begins, so that it can't vouch for what an earlier, broken-off batch left behind; it
//! is written twice, so that the loss of one record never costs a batch.

use alloc::vec::Vec;

use tenure_hal::{Flash, FlashError};

use crate::error::BatchError;
use crate::index::Location;
use crate::path;
use crate::record::{
    Action, COMMIT_VALUE_BYTES, EMPTY_VALUE_CRC, Head, Origin, ValueKind, value_crc,
};
use crate::store::Store;
use crate::value::TreeId;

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Sets a value, as [`Store::set`] does.
    Set {
        /// Of which tree.
        tree: TreeId,
        /// Where.
        path: &'a str,
        /// Bytes or text.
        kind: ValueKind,
        /// The value.
        value: &'a [u8],
    },
    /// Deletes a node and all below it, as [`Store::delete`] does.
    Delete {
        /// Of which tree.
        tree: TreeId,
        /// Which node; the empty path stands for the whole tree.
        path: &'a str,
    },
}

impl Change<'_> {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Set { path, .. } | Self::Delete { path, .. } => path,
        }
    }

    fn tree(&self) -> TreeId {
        match self {
            Self::Set { tree, .. } | Self::Delete { tree, .. } => *tree,
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Self::Set { value, .. } => value,
            Self::Delete { .. } => &[],
        }
    }
}

impl<F: Flash> Store<F> {
    /// Does all of `changes`, one after the other, or none: a power cut at any point leaves either
    /// all of them or none.
    ///
    /// The values that the batch replaces stay on the flash until the batch is whole, so it needs room for
    /// all that it sets.
    ///
    /// # Errors
    /// As [`BatchError`] says; all trees are as before then.
    pub fn batch(&mut self, changes: &[Change<'_>]) -> Result<(), BatchError> {
        self.check_changes(changes)?;
        for change in changes {
            self.settle(change.tree()).map_err(BatchError::Flash)?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let layout = self.log.layout;
        let cost =
            |change: &Change<'_>| layout.cost(change.path().len(), self.stored_length_of(change));
        let charge: u64 = (changes.iter())
            .filter(|change| matches!(change, Change::Set { .. }))
            .map(|change| cost(change).charge)
            .sum();
        if charge > 0 && self.catalogue.charged() + charge > layout.charge_max() {
            return Err(BatchError::Full);
        }
        let commits = [layout.record_bytes(0, COMMIT_VALUE_BYTES); 2];
        let sizes: Vec<u32> = changes.iter().map(|change| cost(change).bytes).collect();
        self.reclaim().make_room_for_all(sizes.into_iter().chain(commits))?;
        let locations = self.write_batch(changes).map_err(BatchError::Flash)?;
        let applied = self.catalogue.apply(&mut self.log, &locations);
        self.log.or_fail(applied).map_err(BatchError::Flash)
    }

    fn check_changes(&self, changes: &[Change<'_>]) -> Result<(), BatchError> {
        let bytes_max = self.value_bytes_max();
        for (change, what) in changes.iter().enumerate() {
            let checked = match what {
                Change::Set { path, .. } => path::check_value(path),
                Change::Delete { path, .. } => path::check_node(path),
            };
            checked.map_err(|error| BatchError::Path { change, error })?;
            if self.stored_length_of(what) > bytes_max {
                let bytes_max = bytes_max - (self.stored_length_of(what) - what.value().len());
                return Err(BatchError::ValueTooLong { change, bytes_max });
            }
        }
        Ok(())
    }

    /// Writes the batch and its commits, for which there is room.
    fn write_batch(&mut self, changes: &[Change<'_>]) -> Result<Vec<Location>, FlashError> {
        self.log.begin_run();
        let appended: Result<Vec<_>, _> =
            changes.iter().map(|change| self.append_change(change, Origin::Batched)).collect();
        // All of it stands on the flash before the commit does.
        let programmed = self.log.end_run();
        let locations = appended?;
        programmed?;
        let first = self.log.position(locations[0]).to_le_bytes();
        let commit = Head {
            action: Action::Commit,
            origin: Origin::Alone,
            is_sealed: false,
            is_odd: false,
            tree: 0,
            path_length: 0,
            value_length: COMMIT_VALUE_BYTES as u16,
            value_crc: value_crc(&first),
        };
        self.log.append_anywhere(commit, &[], &first)?;
        // The batch counts already; the second commit only guards the first.
        let _ = self.log.append_anywhere(commit, &[], &first);
        Ok(locations)
    }

    /// Appends the record of a change, for which there is room, in the next sector if the newest has none.
    pub(crate) fn append_change(
        &mut self,
        change: &Change<'_>,
        origin: Origin,
    ) -> Result<Location, FlashError> {
        self.log.open_sector_for(change.path().len(), self.stored_length_of(change))?;
        match *change {
            Change::Set { tree, path, kind, value } => {
                self.append_set(tree, path, kind, value, origin)
            }
            Change::Delete { tree, path } => {
                let head = Head {
                    action: Action::Delete,
                    origin,
                    is_sealed: false,
                    is_odd: false,
                    tree: tree.0,
                    path_length: path.len() as u8,
                    value_length: 0,
                    value_crc: EMPTY_VALUE_CRC,
                };
                self.log.append(head, path.as_bytes(), &[])
            }
        }
    }

    pub(crate) fn stored_length_of(&self, change: &Change<'_>) -> usize {
        match *change {
            Change::Set { tree, value, .. } => self.seals.stored_length(tree, value),
            Change::Delete { .. } => 0,
        }
    }
}
