//! The store's operations: what its users call.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use tenure_hal::{Flash, FlashError};

use crate::batch::Change;
use crate::catalogue::{Catalogue, Step};
use crate::error::{DeleteError, ReadError, RoomError, SetError};
use crate::index::Location;
use crate::log::{Condition, Entry, Log};
use crate::path::{self, Edge, Place};
use crate::reclaim::Reclaim;
use crate::record::{Action, Head, Origin, ValueKind, value_crc};
use crate::seal::{Seal, Seals};
use crate::value::{TreeId, Value};

/// The effect of a step of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// How many values it took out of the index.
    pub values: usize,
    /// Whether there is no more to do.
    pub is_done: bool,
}

/// How full a store is. All but the numbers of sectors and keys are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Bytes that all live records take on the flash.
    pub stored_bytes: u64,
    /// Bytes that they count against `charge_bytes_max`: a large record counts for more than it takes,
    /// as it may leave a gap before it.
    pub charged_bytes: u64,
    /// Where the store is full.
    pub charge_bytes_max: u64,
    /// Live values in all trees.
    pub keys: usize,
    /// Sectors not in use now. One is always kept.
    pub free_sectors: u32,
    /// Sectors of the flash.
    pub sectors: u32,
    /// Bytes that the index of all keys takes from the heap.
    pub index_bytes: usize,
    /// Sectors taken into use since the store was formatted: divided by `sectors`, how often each
    /// sector was erased.
    pub sectors_opened: u32,
    /// Records that were intact when the store was mounted, and found damaged since.
    pub records_lost: usize,
}

/// A tree of values per [`TreeId`], kept on `F`.
///
/// Every change is on the flash when its call returns `Ok`, and not at all when it returns an
/// error. After a flash error that leaves it unknown what the flash holds, every call fails with
/// [`FlashError::Hardware`] until the flash is mounted anew.
#[derive(Debug)]
pub struct Store<F> {
    pub(crate) log: Log<F>,
    pub(crate) catalogue: Catalogue,
    pub(crate) seals: Seals,
}

impl<F: Flash> Store<F> {
    /// A store whose log is `log`, and what its records come to.
    pub(crate) fn new(log: Log<F>, catalogue: Catalogue) -> Self {
        Self { log, catalogue, seals: Seals::new() }
    }

    /// Seals what is written to `tree` from now on, and reads nothing else from it; `None` ends
    /// that. Whoever mounts a store gives its trees their seals before anything else.
    pub fn seal_tree(&mut self, tree: TreeId, seal: Option<Box<dyn Seal>>) {
        self.seals.set(tree, seal);
    }

    /// Sets the value at `path`; the nodes above it come into being with it.
    ///
    /// Setting what is stored already writes nothing.
    ///
    /// # Errors
    /// As [`SetError`] says; the tree is as before then.
    pub fn set(
        &mut self,
        tree: TreeId,
        path: &str,
        kind: ValueKind,
        value: &[u8],
    ) -> Result<(), SetError> {
        path::check_value(path).map_err(SetError::Path)?;
        let stored_length = self.seals.stored_length(tree, value);
        let bytes_max = self.value_bytes_max();
        if stored_length > bytes_max {
            let bytes_max = bytes_max - (stored_length - value.len());
            return Err(SetError::ValueTooLong { bytes_max });
        }
        self.settle(tree).map_err(SetError::Flash)?;
        let place = Place { tree: tree.0, path: path.as_bytes(), edge: Edge::At };
        let (slot, old) = self.catalogue.look_up(&mut self.log, place).map_err(SetError::Flash)?;
        if let Some(old) = &old
            && self.holds(old, kind, value).map_err(SetError::Flash)?
        {
            return Ok(());
        }
        let new_cost = self.log.layout.cost(path.len(), stored_length);
        let old_cost = old.as_ref().map(|old| self.log.cost(old));
        let old_charge = old_cost.map_or(0, |cost| cost.charge);
        let charged = self.catalogue.charged().saturating_sub(old_charge) + new_cost.charge;
        if new_cost.charge > old_charge && charged > self.log.layout.charge_max() {
            return Err(SetError::Full);
        }
        let keys = self.catalogue.keys();
        let location = self.write_alone(&Change::Set { tree, path, kind, value })?;
        if self.catalogue.keys() == keys {
            // Making room has moved records, and no slot.
            self.catalogue.put_at(slot, old_cost, location, tree.0, new_cost);
            return Ok(());
        }
        let put = self.catalogue.put(&mut self.log, location);
        self.log.or_fail(put).map_err(SetError::Flash)
    }

    /// The value at `path`, or `None` if the node isn't there or has no value of its own.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn get(&mut self, tree: TreeId, path: &str) -> Result<Option<Value>, ReadError> {
        path::check_value(path).map_err(ReadError::Path)?;
        self.settle(tree)?;
        let place = Place { tree: tree.0, path: path.as_bytes(), edge: Edge::At };
        let (_, Some(entry)) = self.catalogue.look_up(&mut self.log, place)? else {
            return Ok(None);
        };
        let Action::Set(kind) = entry.head.action else {
            return Ok(None);
        };
        self.read_value(&entry, kind).map(Some)
    }

    /// Deletes the node at `path` and all below it; the empty path deletes the whole tree. Gives
    /// the number of values that are gone.
    ///
    /// It takes one small record whatever the number of values, and works when the store is full.
    ///
    /// # Errors
    /// As [`DeleteError`] says; the tree is as before then.
    pub fn delete(&mut self, tree: TreeId, path: &str) -> Result<usize, DeleteError> {
        if !self.begin_delete(tree, path)? {
            return Ok(0);
        }
        let removed = self.go_on_deleting(tree, usize::MAX).map_err(DeleteError::Flash)?;
        Ok(removed.values)
    }

    /// The first step of [`Store::delete`], for who can't wait for all of it: writes the deletion, from
    /// which on it is done, whenever the power goes. [`Store::go_on_deleting`] does the rest, whose time
    /// grows with the number of values; whatever else is done with this tree does that first.
    ///
    /// Gives whether there is anything to delete.
    ///
    /// # Errors
    /// As [`DeleteError`] says; the tree is as before then.
    pub fn begin_delete(&mut self, tree: TreeId, path: &str) -> Result<bool, DeleteError> {
        path::check_node(path).map_err(DeleteError::Path)?;
        self.settle(tree).map_err(DeleteError::Flash)?;
        if !self.exists_checked(tree, path).map_err(DeleteError::Flash)? {
            return Ok(false);
        }
        self.write_alone(&Change::Delete { tree, path })?;
        self.catalogue.begin_removal(tree, path.as_bytes());
        Ok(true)
    }

    /// Goes on with what [`Store::begin_delete`] began in `tree`, for so many values at most.
    ///
    /// # Errors
    /// The flash's, which leaves the store unusable until it is mounted anew.
    pub fn go_on_deleting(
        &mut self,
        tree: TreeId,
        values_max: usize,
    ) -> Result<Removed, FlashError> {
        self.log.check_sound()?;
        let step = self.catalogue.go_on_removing(&mut self.log, tree, values_max);
        let Step { values, is_done } = self.log.or_fail(step)?;
        Ok(Removed { values, is_done })
    }

    /// Whether there is a node at `path`: a value, or a value below it.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn exists(&mut self, tree: TreeId, path: &str) -> Result<bool, ReadError> {
        path::check_node(path).map_err(ReadError::Path)?;
        self.settle(tree)?;
        Ok(self.exists_checked(tree, path)?)
    }

    /// Whether there is a value at this very `path`.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn exists_at(&mut self, tree: TreeId, path: &str) -> Result<bool, ReadError> {
        path::check_value(path).map_err(ReadError::Path)?;
        self.settle(tree)?;
        let place = Place { tree: tree.0, path: path.as_bytes(), edge: Edge::At };
        Ok(self.catalogue.seek(&mut self.log, place)?.1)
    }

    /// The names of the nodes right below `path`, in order; the empty path stands for the tree.
    /// Empty if there is no such node.
    ///
    /// It costs one search per child, whatever stands below the children.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn children(&mut self, tree: TreeId, path: &str) -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        while let Some(name) = self.next_child(tree, path, names.last().map(String::as_str))? {
            names.push(name);
        }
        Ok(names)
    }

    /// The name of the first node right below `path`, or of the first after the one named `after`.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn next_child(
        &mut self,
        tree: TreeId,
        path: &str,
        after: Option<&str>,
    ) -> Result<Option<String>, ReadError> {
        path::check_node(path).map_err(ReadError::Path)?;
        self.settle(tree)?;
        let (sibling, edge) = path::place_after_child(path, after);
        let place = Place { tree: tree.0, path: sibling.as_bytes(), edge };
        let next = self.catalogue.entry_from(&mut self.log, place)?;
        Ok(next.and_then(|entry| {
            let name = path::segment_below(entry.path(), path.as_bytes())?;
            Some(String::from_utf8_lossy(name).into_owned())
        }))
    }

    /// The path of the first value of the tree, or of the first after the one at `after`.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn next_path(
        &mut self,
        tree: TreeId,
        after: Option<&str>,
    ) -> Result<Option<String>, ReadError> {
        let (path, edge) = after.map_or(("", Edge::At), |path| (path, Edge::Past));
        path::check_node(path).map_err(ReadError::Path)?;
        self.settle(tree)?;
        let next = self
            .catalogue
            .entry_from(&mut self.log, Place { tree: tree.0, path: path.as_bytes(), edge })?;
        Ok(next.map(|entry| String::from_utf8_lossy(entry.path()).into_owned()))
    }

    /// Bytes that the tree's values take on the flash: paths, values, heads and padding.
    pub fn stored_bytes(&self, tree: TreeId) -> usize {
        self.catalogue.usage(tree).bytes
    }

    /// How many values the tree has.
    pub fn keys(&self, tree: TreeId) -> usize {
        self.catalogue.usage(tree).keys
    }

    /// Bytes that a value in `tree` takes on the flash: its share of
    /// [`Store::stored_bytes`].
    pub fn record_bytes(&self, tree: TreeId, path: &str, value: &[u8]) -> usize {
        self.log.layout.record_bytes(path.len(), self.seals.stored_length(tree, value)) as usize
    }

    /// The trees that have a value, in order.
    pub fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.catalogue.trees()
    }

    /// The longest value that this flash can hold, in bytes; in a sealed tree [`SEAL_BYTES`](crate::SEAL_BYTES) less.
    pub fn value_bytes_max(&self) -> usize {
        self.log.layout.value_bytes_max()
    }

    /// How full the store is.
    pub fn occupancy(&self) -> Occupancy {
        let sectors = self.log.layout.geometry.sector_count;
        Occupancy {
            stored_bytes: self.catalogue.live_bytes(),
            charged_bytes: self.catalogue.charged(),
            charge_bytes_max: self.log.layout.charge_max(),
            keys: self.catalogue.keys(),
            free_sectors: self.log.free_sectors(),
            sectors,
            index_bytes: self.catalogue.index_bytes(),
            sectors_opened: self.log.newest + 1 - sectors,
            records_lost: self.catalogue.records_lost(),
        }
    }

    /// Whether a flash error has left it unknown what the flash holds: then every call fails until
    /// the flash is mounted anew.
    pub fn has_failed(&self) -> bool {
        self.log.has_failed()
    }

    /// Gives the flash back, to mount it anew for instance.
    pub fn into_flash(self) -> F {
        self.log.into_flash()
    }

    /// The flash below.
    pub fn flash(&self) -> &F {
        self.log.flash()
    }

    /// The flash below. Whoever writes to it must mount it anew.
    pub fn flash_mut(&mut self) -> &mut F {
        self.log.flash_mut()
    }

    /// Refuses all work when it is unknown what the flash holds; ends a deletion in `tree` that is under
    /// way.
    pub(crate) fn settle(&mut self, tree: TreeId) -> Result<(), FlashError> {
        self.go_on_deleting(tree, usize::MAX).map(|_| ())
    }

    /// To make room in the log.
    pub(crate) fn reclaim(&mut self) -> Reclaim<'_, F> {
        Reclaim { log: &mut self.log, catalogue: &mut self.catalogue }
    }

    /// The value in the record of `entry`.
    fn read_value(&mut self, entry: &Entry, kind: ValueKind) -> Result<Value, ReadError> {
        match self.log.value(entry)? {
            (_, Condition::Damaged) => Err(ReadError::Corrupt),
            (stored, _) => self.seals.open(entry, kind, stored),
        }
    }

    fn exists_checked(&mut self, tree: TreeId, path: &str) -> Result<bool, FlashError> {
        let place = Place { tree: tree.0, path: path.as_bytes(), edge: Edge::At };
        let first = self.catalogue.entry_from(&mut self.log, place)?;
        Ok(first.is_some_and(|entry| path::is_within(entry.path(), path.as_bytes())))
    }

    /// Whether the record holds this very value.
    fn holds(&mut self, old: &Entry, kind: ValueKind, value: &[u8]) -> Result<bool, FlashError> {
        let tree = TreeId(old.head.tree);
        let alike = old.head.action == Action::Set(kind)
            && old.value_length() == self.seals.stored_length(tree, value)
            && (self.seals.has(tree) || old.head.value_crc == value_crc(value));
        if !alike {
            return Ok(false);
        }
        match self.read_value(old, kind) {
            Ok(old) => Ok(old.bytes == value),
            Err(ReadError::Flash(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Appends the record of a change that is no batch's, making room for it.
    fn write_alone(&mut self, change: &Change<'_>) -> Result<Location, RoomError> {
        let length = self.stored_length_of(change);
        let bytes = self.log.layout.record_bytes(change.path().len(), length);
        let mut is_second = false;
        loop {
            self.reclaim().make_room(bytes)?;
            match self.append_change(change, Origin::Alone) {
                // A place that should be erased is not: the room is damaged, and the log has left it.
                Err(FlashError::NotErased) if !is_second => is_second = true,
                appended => return Ok(appended?),
            }
        }
    }

    /// Appends the record of a value, for which there is room; seals it if its tree is sealed.
    pub(crate) fn append_set(
        &mut self,
        tree: TreeId,
        path: &str,
        kind: ValueKind,
        value: &[u8],
        origin: Origin,
    ) -> Result<Location, FlashError> {
        let sealed = self.seals.sealed(self.log.next_position(), tree, path, kind, value);
        let stored = sealed.as_deref().unwrap_or(value);
        let head = Head {
            action: Action::Set(kind),
            origin,
            is_sealed: sealed.is_some(),
            is_odd: false,
            tree: tree.0,
            path_length: path.len() as u8,
            value_length: stored.len() as u16,
            value_crc: value_crc(stored),
        };
        self.log.append(head, path.as_bytes(), stored)
    }
}
