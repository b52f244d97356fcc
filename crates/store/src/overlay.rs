//! A tree's changes on top of a base tree that never changes.
//!
//! What was set stands in the store and hides the base's value at that path. What was deleted of the
//! base is a bit for each of its values, in RAM as [`Hidden`] and in the store in chunks, in a tree of
//! their own; a deletion writes the chunks that it changes, in one batch with what it deletes from the
//! store. So the store holds the changes alone, and a power cut leaves old or new.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use tenure_hal::Flash;

use crate::base::{Base, BaseValue};
use crate::batch::Change;
use crate::error::{BatchError, DeleteError, ReadError, SetError};
use crate::path::{self, Edge, Place};
use crate::record::ValueKind;
use crate::store::{Store, TreeId, Value};

/// How many values of a base one chunk in the store is for.
const CHUNK_BITS: usize = 256;
const WORD_BITS: usize = u32::BITS as usize;

/// Which values of a base are deleted; absent words are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden(Vec<u32>);

impl Hidden {
    /// Takes up what `tree` has of it in the store.
    ///
    /// # Errors
    /// As [`ReadError`] says, but for chunks that are damaged: their values are there again.
    pub fn load<F: Flash>(store: &mut Store<F>, tree: TreeId) -> Result<Self, ReadError> {
        let mut hidden = Self::default();
        for name in store.children(tree, "")? {
            let Ok(chunk) = name.parse::<usize>() else { continue };
            let bytes = match store.get(tree, &name) {
                Ok(Some(value)) => value.bytes,
                Ok(None) | Err(ReadError::Corrupt) => continue,
                Err(error) => return Err(error),
            };
            for (bit, _) in bits_of(&bytes).enumerate().filter(|(_, is_set)| *is_set) {
                hidden.insert(chunk * CHUNK_BITS + bit);
            }
        }
        Ok(hidden)
    }

    /// Those of `next`, which takes the place of `base`, at whose paths this one hides a value.
    pub fn carried_over(&self, base: &Base<'_>, next: &Base<'_>) -> Self {
        let mut carried = Self::default();
        for index in 0..base.len() {
            if self.contains(index)
                && let Some(path) = base.path(index)
                && let Some(found) = next.find(path)
            {
                carried.insert(found);
            }
        }
        carried
    }

    /// All that `base` has but for what `kept` says.
    fn all_but(base: &Base<'_>, kept: impl Fn(usize) -> bool) -> Self {
        let mut hidden = Self::default();
        (0..base.len()).filter(|index| !kept(*index)).for_each(|index| hidden.insert(index));
        hidden
    }

    /// The chunks as they stand in the store: name and bytes of each that isn't empty.
    pub fn chunks(&self) -> Vec<(String, Vec<u8>)> {
        let words = CHUNK_BITS / WORD_BITS;
        let chunks = self.0.chunks(words).enumerate();
        let chunks = chunks.filter(|(_, words)| words.iter().any(|word| *word != 0));
        chunks
            .map(|(chunk, words)| {
                let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                bytes
                    .truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                (chunk.to_string(), bytes)
            })
            .collect()
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index / WORD_BITS).is_some_and(|word| word >> (index % WORD_BITS) & 1 != 0)
    }

    fn insert(&mut self, index: usize) {
        if self.0.len() <= index / WORD_BITS {
            self.0.resize(index / WORD_BITS + 1, 0);
        }
        self.0[index / WORD_BITS] |= 1 << (index % WORD_BITS);
    }

    /// The first value from `index` on that is there.
    fn next_shown(&self, mut index: usize) -> usize {
        while let Some(word) = self.0.get(index / WORD_BITS) {
            let shown = !word >> (index % WORD_BITS);
            if shown != 0 {
                return index + shown.trailing_zeros() as usize;
            }
            index = (index / WORD_BITS + 1) * WORD_BITS;
        }
        index
    }
}

fn bits_of(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 != 0))
}

/// A tree on top of its base.
pub struct Overlay<'a, F> {
    /// Where the changes stand.
    pub store: &'a mut Store<F>,
    /// What they are changes of.
    pub base: Base<'a>,
    /// What of that is deleted.
    pub hidden: &'a mut Hidden,
    /// The tree of what was set.
    pub tree: TreeId,
    /// The tree of what was deleted of the base.
    pub hidden_tree: TreeId,
}

impl<F: Flash> Overlay<'_, F> {
    /// The value at `path`, as [`Store::get`].
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn get(&mut self, path: &str) -> Result<Option<Value>, ReadError> {
        match self.store.get(self.tree, path)? {
            Some(value) => Ok(Some(value)),
            None => self.shown(path).map(|index| self.base.value(index)).transpose(),
        }
    }

    /// Sets the value at `path`, as [`Store::set`]; what the base has there already isn't written.
    ///
    /// # Errors
    /// As [`SetError`] says; the tree is as before then.
    pub fn set(&mut self, path: &str, kind: ValueKind, value: &[u8]) -> Result<(), SetError> {
        if self.base_holds(path, kind, value).map_err(SetError::Flash)? {
            return Ok(());
        }
        self.store.set(self.tree, path, kind, value)
    }

    /// Whether setting this value would write nothing, because the base has it.
    fn base_holds(
        &mut self,
        path: &str,
        kind: ValueKind,
        value: &[u8],
    ) -> Result<bool, tenure_hal::FlashError> {
        let Some(index) = self.shown(path) else { return Ok(false) };
        if self.base.value_bytes(index) != Some((kind, value)) {
            return Ok(false);
        }
        match self.store.exists_at(self.tree, path) {
            Err(ReadError::Flash(error)) => Err(error),
            found => Ok(matches!(found, Ok(false))),
        }
    }

    /// Deletes the node at `path` and all below it, as [`Store::delete`]; gives the number of values
    /// that are gone.
    ///
    /// # Errors
    /// As [`DeleteError`] says; the tree is as before then.
    pub fn delete(&mut self, path: &str) -> Result<usize, DeleteError> {
        path::check_node(path).map_err(DeleteError::Path)?;
        let range = self.range_of(path);
        let mut hidden = self.hidden.clone();
        let mut gone = 0;
        let mut index = hidden.next_shown(range.start);
        while index < range.end {
            hidden.insert(index);
            // What was set there is counted with the store's.
            if let Some(path) = self.base.path(index)
                && !self.store.exists_at(self.tree, path).map_err(flash_error)?
            {
                gone += 1;
            }
            index = hidden.next_shown(index);
        }
        if hidden == *self.hidden {
            return self.store.delete(self.tree, path);
        }
        let before = self.store.keys(self.tree);
        let chunks = hidden.chunks();
        let old = self.hidden.chunks();
        let mut changes: Vec<Change<'_>> = chunks
            .iter()
            .filter(|chunk| !old.contains(chunk))
            .map(|(name, bytes)| self.chunk_change(name, bytes))
            .collect();
        if self.store.exists(self.tree, path).map_err(flash_error)? {
            changes.push(Change::Delete { tree: self.tree, path });
        }
        self.store.batch(&changes).map_err(|error| match error {
            BatchError::Flash(error) => DeleteError::Flash(error),
            BatchError::Path { error, .. } => DeleteError::Path(error),
            BatchError::Full | BatchError::ValueTooLong { .. } => DeleteError::Full,
        })?;
        *self.hidden = hidden;
        Ok(gone + before - self.store.keys(self.tree))
    }

    /// The name of the first node right below `path`, or of the first after the one named `after`, as
    /// [`Store::next_child`].
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn next_child(
        &mut self,
        path: &str,
        after: Option<&str>,
    ) -> Result<Option<String>, ReadError> {
        let set = self.store.next_child(self.tree, path, after)?;
        let (sibling, edge) = path::place_after_child(path, after);
        let from = Place { tree: 0, path: sibling.as_bytes(), edge };
        let next = self.next_from(from).and_then(|base| {
            let name = path::segment_below(base.as_bytes(), path.as_bytes())?;
            Some(String::from_utf8_lossy(name).into_owned())
        });
        Ok(first_of(set, next))
    }

    /// The names of the nodes right below `path`, in order, as [`Store::children`].
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn children(&mut self, path: &str) -> Result<Vec<String>, ReadError> {
        let mut names: Vec<String> = Vec::new();
        while let Some(name) = self.next_child(path, names.last().map(String::as_str))? {
            names.push(name);
        }
        Ok(names)
    }

    /// The path of the first value of the tree, or of the first after the one at `after`, as
    /// [`Store::next_path`].
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub fn next_path(&mut self, after: Option<&str>) -> Result<Option<String>, ReadError> {
        let set = self.store.next_path(self.tree, after)?;
        let (path, edge) = after.map_or(("", Edge::At), |path| (path, Edge::Past));
        let next = self.next_from(Place { tree: 0, path: path.as_bytes(), edge });
        Ok(first_of(set, next.map(str::to_string)))
    }

    /// What the changes take on the flash, in bytes.
    pub fn stored_bytes(&self) -> usize {
        self.store.stored_bytes(self.tree) + self.store.stored_bytes(self.hidden_tree)
    }

    /// What of these values has to be set, and what of the base hidden, so that the tree is these
    /// values and no others.
    pub fn difference<'v>(
        &self,
        values: &'v [(String, ValueKind, Vec<u8>)],
    ) -> (Vec<BaseValue<'v>>, Hidden) {
        let mut kept = Vec::new();
        let mut set = Vec::new();
        for (path, kind, bytes) in values {
            match self.base.find(path) {
                Some(index) if self.base.value_bytes(index) == Some((*kind, bytes)) => {
                    kept.push(index);
                }
                _ => set.push(BaseValue { path, kind: *kind, bytes }),
            }
        }
        kept.sort_unstable();
        let hidden = Hidden::all_but(&self.base, |index| kept.binary_search(&index).is_ok());
        (set, hidden)
    }

    fn chunk_change<'c>(&self, name: &'c str, bytes: &'c [u8]) -> Change<'c> {
        Change::Set { tree: self.hidden_tree, path: name, kind: ValueKind::Bytes, value: bytes }
    }

    /// The number of the base's value at `path`, if it is not deleted.
    fn shown(&self, path: &str) -> Option<usize> {
        self.base.find(path).filter(|index| !self.hidden.contains(*index))
    }

    /// The numbers of the base's values at `path` and below.
    fn range_of(&self, path: &str) -> Range<usize> {
        let place = |edge| Place { tree: 0, path: path.as_bytes(), edge };
        let start = self.base.first_from(place(Edge::At));
        start..if path.is_empty() {
            self.base.len()
        } else {
            self.base.first_from(place(Edge::Beyond))
        }
    }

    /// The path of the base's first value that is there and not before `place`.
    fn next_from(&self, place: Place<'_>) -> Option<&'_ str> {
        let mut index = self.base.first_from(place);
        loop {
            index = self.hidden.next_shown(index);
            if index >= self.base.len() {
                return None;
            }
            // What is damaged has no path any more.
            match self.base.path(index) {
                Some(path) => return Some(path),
                None => index += 1,
            }
        }
    }
}

fn first_of(one: Option<String>, two: Option<String>) -> Option<String> {
    match (one, two) {
        (Some(one), Some(two)) => {
            let two_first = path::order(two.as_bytes(), one.as_bytes()).is_lt();
            Some(if two_first { two } else { one })
        }
        (one, two) => one.or(two),
    }
}

fn flash_error(error: ReadError) -> DeleteError {
    match error {
        ReadError::Flash(error) => DeleteError::Flash(error),
        ReadError::Path(error) => DeleteError::Path(error),
        // Neither is asked for the value.
        ReadError::Corrupt | ReadError::Sealed | ReadError::Unsealable => DeleteError::Full,
    }
}
