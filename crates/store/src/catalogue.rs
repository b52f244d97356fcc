//! The store's knowledge in RAM of the records on the flash: the index and the sums over it.
//!
//! A record that can't be read any more is taken out of the index when a search meets it, so that
//! it costs itself alone; its bytes stay counted until the next mount.

use litemap::LiteMap;

use tenure_hal::{Flash, FlashError};

use crate::index::{Found, Index, Location, Slot};
use crate::layout::Cost;
use crate::log::Entry;
use crate::path::{self, Edge, Place};
use crate::store::{Removal, Store};

/// The index of all live records, and what they come to.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) index: Index,
    pub(crate) trees: LiteMap<u16, TreeUsage>,
    /// Bytes that all live records take.
    pub(crate) live_bytes: u64,
    /// Bytes that they count against the limit of the store.
    pub(crate) charged: u64,
    pub(crate) records_lost: usize,
}

/// The sums of one tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeUsage {
    pub(crate) bytes: usize,
    pub(crate) keys: usize,
}

impl Catalogue {
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
}

impl<F: Flash> Store<F> {
    /// Where `place` is in the index, and whether the key there is the one sought.
    pub(crate) fn seek(&mut self, place: Place<'_>) -> Result<(Slot, bool), FlashError> {
        loop {
            let log = &mut self.log;
            let found = self.catalogue.index.search(|location| {
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
    pub(crate) fn look_up(
        &mut self,
        place: Place<'_>,
    ) -> Result<(Slot, Option<Entry>), FlashError> {
        loop {
            let (slot, is_there) = self.seek(place)?;
            if !is_there {
                return Ok((slot, None));
            }
            // A record that rots between the two looks was there no longer.
            if let Some(entry) = self.entry_at(slot)?
                && place.compare_key(entry.head.tree, entry.path()).is_eq()
            {
                return Ok((slot, Some(entry)));
            }
        }
    }

    /// The first record of the place's tree at the place or after it.
    pub(crate) fn entry_from(&mut self, place: Place<'_>) -> Result<Option<Entry>, FlashError> {
        let (slot, _) = self.seek(place)?;
        let next = self.entry_at(slot)?;
        Ok(next.filter(|entry| entry.head.tree == place.tree))
    }

    /// The record of the entry at `slot`, or of the first one after it that can be read.
    fn entry_at(&mut self, slot: Slot) -> Result<Option<Entry>, FlashError> {
        while let Some(location) = self.catalogue.index.entry(slot) {
            if let Some(entry) = self.log.entry(location)? {
                return Ok(Some(entry));
            }
            self.lose(slot);
        }
        Ok(None)
    }

    fn lose(&mut self, slot: Slot) {
        self.catalogue.index.remove(slot);
        self.catalogue.records_lost += 1;
    }

    /// Makes the set record at `location` the one that counts for its key.
    pub(crate) fn put(&mut self, location: Location) -> Result<(), FlashError> {
        let Some(entry) = self.log.entry(location)? else {
            return Ok(());
        };
        let (slot, old) = self.look_up(place_of(&entry))?;
        self.put_at(slot, old.as_ref(), location, entry.head.tree, self.cost(&entry));
        Ok(())
    }

    /// The same, where `slot` and the record that counted until now are known.
    pub(crate) fn put_at(
        &mut self,
        slot: Slot,
        old: Option<&Entry>,
        location: Location,
        tree: u16,
        cost: Cost,
    ) {
        match old {
            Some(old) => {
                self.discount(old);
                self.catalogue.index.replace(slot, location);
            }
            None => self.catalogue.index.insert(slot, location),
        }
        self.catalogue.count(tree, cost);
    }

    /// Takes the node at `path` and all below it out of the index, so many values at most; gives their
    /// number.
    pub(crate) fn remove_subtree(
        &mut self,
        tree: u16,
        node: &[u8],
        values_max: usize,
    ) -> Result<usize, FlashError> {
        let (slot, _) = self.seek(Place { tree, path: node, edge: Edge::At })?;
        let mut gone = 0;
        while gone < values_max
            && let Some(entry) = self.entry_at(slot)?
        {
            if entry.head.tree != tree || !path::is_within(entry.path(), node) {
                break;
            }
            self.discount(&entry);
            self.catalogue.index.remove(slot);
            gone += 1;
        }
        Ok(gone)
    }

    /// The slot of this record, if it is the one that counts for its key.
    pub(crate) fn live_slot(&mut self, entry: &Entry) -> Result<Option<Slot>, FlashError> {
        let (slot, is_there) = self.seek(place_of(entry))?;
        let is_live = is_there && self.catalogue.index.entry(slot) == Some(entry.location);
        if is_live && self.ends_with_removal(entry) {
            self.discount(entry);
            self.catalogue.index.remove(slot);
            return Ok(None);
        }
        Ok(is_live.then_some(slot))
    }

    /// Whether a deletion that is under way takes this record along; it is counted there then.
    fn ends_with_removal(&mut self, entry: &Entry) -> bool {
        let covers = |removal: &&mut Removal| {
            removal.tree == entry.head.tree && path::is_within(entry.path(), &removal.node)
        };
        let found = self.removals.iter_mut().find(covers);
        found.map(|removal| removal.reclaimed += 1).is_some()
    }

    fn discount(&mut self, entry: &Entry) {
        let cost = self.cost(entry);
        self.catalogue.discount(entry.head.tree, cost);
    }

    pub(crate) fn cost(&self, entry: &Entry) -> Cost {
        self.log.layout.cost(entry.path().len(), entry.value_length())
    }
}

fn place_of(entry: &Entry) -> Place<'_> {
    Place { tree: entry.head.tree, path: entry.path(), edge: Edge::At }
}
