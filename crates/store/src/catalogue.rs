//! The store's knowledge in RAM of the records on the flash: the index and the sums over it.
//!
//! Invariants:
//! - A key's entry is its newest set record, unless a deletion stands behind that.
//! - The sums are those over the index. A record that can't be read any more is taken out of the index when
//!   a search meets it, so that it costs itself alone; its bytes stay counted until the next mount.
//!
//! Keys stand on the flash alone, so that whoever searches lends the log.

use litemap::LiteMap;

use tenure_hal::{Flash, FlashError};

use crate::index::{Found, Index, Location, Slot};
use crate::layout::Cost;
use crate::log::{Entry, Log};
use crate::path::{self, Edge, Place};
use crate::record::Action;
use crate::removals::Removals;
use crate::value::TreeId;

/// The index of all live records, and what they come to.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    index: Index,
    trees: LiteMap<u16, TreeUsage>,
    live_bytes: u64,
    charged: u64,
    records_lost: usize,
    removals: Removals,
}

/// The outcome of one step of a deletion.
pub(crate) struct Step {
    /// How many values it took out of the index.
    pub(crate) values: usize,
    /// Whether there is no more to do.
    pub(crate) is_done: bool,
}

/// The sums of one tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeUsage {
    pub(crate) bytes: usize,
    pub(crate) keys: usize,
}

impl Catalogue {
    /// How many values there are in all trees.
    pub(crate) fn keys(&self) -> usize {
        self.index.len()
    }

    /// Bytes that the index takes from the heap.
    pub(crate) fn index_bytes(&self) -> usize {
        self.index.heap_bytes()
    }

    /// The trees that have a value, in order.
    pub(crate) fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.keys().copied().map(TreeId)
    }

    pub(crate) fn usage(&self, tree: TreeId) -> TreeUsage {
        self.trees.get(&tree.0).copied().unwrap_or_default()
    }

    /// Bytes that all live records take.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes that they count against the limit of the store.
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    /// Records that were found damaged since the mount.
    pub(crate) fn records_lost(&self) -> usize {
        self.records_lost
    }

    fn count(&mut self, tree: u16, cost: Cost) {
        let usage = self.trees.entry(tree).or_default();
        usage.bytes += cost.bytes as usize;
        usage.keys += 1;
        self.live_bytes += u64::from(cost.bytes);
        self.charged += cost.charge;
    }

    fn discount(&mut self, tree: u16, cost: Cost) {
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(cost.bytes));
        self.charged = self.charged.saturating_sub(cost.charge);
        if let Some(usage) = self.trees.get_mut(&tree) {
            usage.bytes = usage.bytes.saturating_sub(cost.bytes as usize);
            usage.keys = usage.keys.saturating_sub(1);
            if usage.keys == 0 {
                self.trees.remove(&tree);
            }
        }
    }

    /// Where `place` is in the index, and whether the key there is the one sought.
    pub(crate) fn seek<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        place: Place<'_>,
    ) -> Result<(Slot, bool), FlashError> {
        loop {
            let found = self.index.search(|location| {
                let entry = log.entry(location)?;
                Ok(entry.map(|entry| place.compare_key(entry.head.tree, entry.path())))
            })?;
            match found {
                Found::At(slot) => return Ok((slot, true)),
                Found::Before(slot) => return Ok((slot, false)),
                Found::Lost(slot) => self.lose(slot),
            }
        }
    }

    /// Where `place` is in the index, and the record of the very key sought, if there is one.
    pub(crate) fn look_up<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        place: Place<'_>,
    ) -> Result<(Slot, Option<Entry>), FlashError> {
        loop {
            let (slot, is_there) = self.seek(log, place)?;
            if !is_there {
                return Ok((slot, None));
            }
            // A record that rots between the two looks was there no longer.
            if let Some(entry) = self.entry_at(log, slot)?
                && place.compare_key(entry.head.tree, entry.path()).is_eq()
            {
                return Ok((slot, Some(entry)));
            }
        }
    }

    /// The first record of the place's tree at the place or after it.
    pub(crate) fn entry_from<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        place: Place<'_>,
    ) -> Result<Option<Entry>, FlashError> {
        let (slot, _) = self.seek(log, place)?;
        let next = self.entry_at(log, slot)?;
        Ok(next.filter(|entry| entry.head.tree == place.tree))
    }

    /// The record of the entry at `slot`, or of the first one after it that can be read.
    fn entry_at<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        slot: Slot,
    ) -> Result<Option<Entry>, FlashError> {
        while let Some(location) = self.index.entry(slot) {
            if let Some(entry) = log.entry(location)? {
                return Ok(Some(entry));
            }
            self.lose(slot);
        }
        Ok(None)
    }

    fn lose(&mut self, slot: Slot) {
        self.index.remove(slot);
        self.records_lost += 1;
    }

    /// Makes the set record at `location` the one that counts for its key.
    pub(crate) fn put<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        location: Location,
    ) -> Result<(), FlashError> {
        let Some(entry) = log.entry(location)? else {
            return Ok(());
        };
        let (slot, old) = self.look_up(log, place_of(&entry))?;
        let old = old.map(|old| log.cost(&old));
        self.put_at(slot, old, location, entry.head.tree, log.cost(&entry));
        Ok(())
    }

    /// The same, where `slot` is known, and what the record costs that counted until now.
    pub(crate) fn put_at(
        &mut self,
        slot: Slot,
        old: Option<Cost>,
        location: Location,
        tree: u16,
        cost: Cost,
    ) {
        match old {
            Some(old) => {
                self.discount(tree, old);
                self.index.replace(slot, location);
            }
            None => self.index.insert(slot, location),
        }
        self.count(tree, cost);
    }

    /// Takes the node at `path` and all below it out of the index, so many values at most; gives their
    /// number.
    fn remove_subtree<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        tree: u16,
        node: &[u8],
        values_max: usize,
    ) -> Result<usize, FlashError> {
        let (slot, _) = self.seek(log, Place { tree, path: node, edge: Edge::At })?;
        let mut gone = 0;
        while gone < values_max
            && let Some(entry) = self.entry_at(log, slot)?
        {
            if entry.head.tree != tree || !path::is_within(entry.path(), node) {
                break;
            }
            self.discount(tree, log.cost(&entry));
            self.index.remove(slot);
            gone += 1;
        }
        Ok(gone)
    }

    /// The slot of this record, if it is the one that counts for its key.
    fn live_slot<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        entry: &Entry,
    ) -> Result<Option<Slot>, FlashError> {
        let (slot, is_there) = self.seek(log, place_of(entry))?;
        let is_live = is_there && self.index.entry(slot) == Some(entry.location);
        if is_live && self.removals.take_along(entry) {
            self.discount(entry.head.tree, log.cost(entry));
            self.index.remove(slot);
            return Ok(None);
        }
        Ok(is_live.then_some(slot))
    }

    /// Whether the record at `location` is the one that counts for its key.
    pub(crate) fn counts<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        location: Location,
    ) -> Result<bool, FlashError> {
        let Some(entry) = log.entry(location)? else { return Ok(false) };
        Ok(self.live_slot(log, &entry)?.is_some())
    }

    /// Has `copy` copy a record of the oldest sector, if it is live, and count instead of it.
    pub(crate) fn carry_over<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        entry: &Entry,
        copy: impl FnOnce(&mut Log<F>) -> Result<Location, FlashError>,
    ) -> Result<(), FlashError> {
        if let Some(slot) = self.live_slot(log, entry)? {
            let location = copy(log)?;
            self.index.replace(slot, location);
        }
        Ok(())
    }

    /// Makes the changes in the records at `locations` count, in their order.
    pub(crate) fn apply<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        locations: &[Location],
    ) -> Result<(), FlashError> {
        for location in locations {
            let Some(entry) = log.entry(*location)? else {
                continue;
            };
            match entry.head.action {
                Action::Set(_) => self.put(log, *location)?,
                Action::Delete => {
                    self.remove_subtree(log, entry.head.tree, entry.path(), usize::MAX)?;
                }
                Action::Commit | Action::Reclaimed => {}
            }
        }
        Ok(())
    }

    /// The deletion of a node is on the flash.
    pub(crate) fn begin_removal(&mut self, tree: TreeId, node: &[u8]) {
        self.removals.push(tree.0, node.to_vec());
    }

    /// Goes on with the deletion that is under way in `tree`, for so many values at most.
    pub(crate) fn go_on_removing<F: Flash>(
        &mut self,
        log: &mut Log<F>,
        tree: TreeId,
        values_max: usize,
    ) -> Result<Step, FlashError> {
        let Some(removal) = self.removals.take(tree.0) else {
            return Ok(Step { values: 0, is_done: true });
        };
        let removed = self.remove_subtree(log, removal.tree, &removal.node, values_max)?;
        let is_done = removed < values_max;
        if !is_done {
            self.removals.push(removal.tree, removal.node);
        }
        Ok(Step { values: removal.reclaimed + removed, is_done })
    }
}

fn place_of(entry: &Entry) -> Place<'_> {
    Place { tree: entry.head.tree, path: entry.path(), edge: Edge::At }
}
