//! A tree's changes on top of a base tree that never changes.
//!
//! A set value stands in the store and hides the base's value at that path. A deletion of the
//! base is a bit for each of its values, in RAM as [`Hidden`] and in the store in chunks, in a tree of
//! their own; a deletion writes the chunks that it changes one after the other, and then deletes from the
//! store. So the store holds the changes alone, and a power cut leaves each value as it was, or gone.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use tenure_hal::Flash;

use crate::base::{Base, BaseValue};
use crate::error::{DeleteError, ReadError, SetError};
use crate::path::{self, Edge, Place};
use crate::record::ValueKind;
use crate::store::{Removed, Store};
use crate::value::{TreeId, Value};

/// How many values of a base one chunk in the store is for.
const CHUNK_BITS: usize = 256;
const WORD_BITS: usize = u32::BITS as usize;
const CHUNK_WORDS: usize = CHUNK_BITS / WORD_BITS;

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
        let chunks = 0..self.0.len().div_ceil(CHUNK_WORDS);
        let chunks = chunks.map(|chunk| (chunk.to_string(), self.chunk(chunk).bytes()));
        chunks.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }

    /// The values that one chunk is for, counted from its first.
    fn chunk(&self, chunk: usize) -> Self {
        let rest = self.0.get(chunk * CHUNK_WORDS..).unwrap_or_default();
        Self(rest.iter().take(CHUNK_WORDS).copied().collect())
    }

    /// As they stand in the store, without the zeros at the end.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        bytes
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

/// How far the deletion of a node has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// How many values are gone, as far as they are counted.
    pub values: usize,
    stage: Stage,
    /// The numbers of the base's values that go, and that of the one to look at next.
    range: Range<usize>,
    at: usize,
}

/// The next step of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Begins,
    Counts,
    Hides,
    Removes,
    Done,
}

/// The effect of one step of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionStep {
    /// At how many values it looked.
    pub looked_at: usize,
    /// How many bytes it wrote: one record, or none.
    pub written_bytes: usize,
}

impl Deletion {
    /// Whether nothing was done yet.
    pub fn is_new(&self) -> bool {
        self.stage == Stage::Begins
    }

    /// Whether there is no more to do.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }
}

/// A tree on top of its base.
pub struct Overlay<'a, F> {
    /// Where the changes stand.
    pub store: &'a mut Store<F>,
    /// The tree that they change.
    pub base: Base<'a>,
    /// The values of the base that are deleted.
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

    /// Deletes the node at `path` and all below it; gives the number of values that are gone.
    ///
    /// # Errors
    /// As [`DeleteError`] says; each value of the node is as before then, or gone.
    pub fn delete(&mut self, path: &str) -> Result<usize, DeleteError> {
        let mut deletion = Deletion::default();
        while !deletion.is_done() {
            self.delete_step(path, &mut deletion, usize::MAX)?;
        }
        Ok(deletion.values)
    }

    /// The next step of [`Overlay::delete`], which looks at `values_max` values at most, or writes one
    /// record. Who stops in between leaves each value of the node as it was, or gone, and may begin
    /// again.
    ///
    /// The base's values are hidden first, a chunk at a time, and the set ones are deleted last and together: so
    /// the base's value never shows where another was set.
    ///
    /// # Errors
    /// As [`DeleteError`] says; each value of the node is as before then, or gone.
    pub fn delete_step(
        &mut self,
        path: &str,
        deletion: &mut Deletion,
        values_max: usize,
    ) -> Result<DeletionStep, DeleteError> {
        if deletion.stage == Stage::Begins {
            path::check_node(path).map_err(DeleteError::Path)?;
            let range = self.range_of(path);
            *deletion = Deletion { values: 0, at: range.start, range, stage: Stage::Counts };
        }
        if deletion.stage == Stage::Counts {
            let looked_at = self.count_shown(deletion, values_max)?;
            if looked_at > 0 {
                return Ok(DeletionStep { looked_at, written_bytes: 0 });
            }
            (deletion.at, deletion.stage) = (deletion.range.start, Stage::Hides);
        }
        if deletion.stage == Stage::Hides {
            if let Some(written_bytes) = self.hide_chunk(deletion)? {
                return Ok(DeletionStep { looked_at: 0, written_bytes });
            }
            let is_set = self.store.begin_delete(self.tree, path)?;
            deletion.stage = if is_set { Stage::Removes } else { Stage::Done };
            let record_bytes = self.store.record_bytes(self.tree, path, &[]);
            let written_bytes = if is_set { record_bytes } else { 0 };
            return Ok(DeletionStep { looked_at: 0, written_bytes });
        }
        let removed = self.store.go_on_deleting(self.tree, values_max);
        let Removed { values, is_done } = removed.map_err(DeleteError::Flash)?;
        deletion.values += values;
        if is_done {
            deletion.stage = Stage::Done;
        }
        Ok(DeletionStep { looked_at: values, written_bytes: 0 })
    }

    /// Counts values of the base over which none was set; gives at how many it looked.
    fn count_shown(
        &mut self,
        deletion: &mut Deletion,
        values_max: usize,
    ) -> Result<usize, DeleteError> {
        let mut looked_at = 0;
        while looked_at < values_max {
            let index = self.hidden.next_shown(deletion.at);
            if index >= deletion.range.end {
                break;
            }
            (looked_at, deletion.at) = (looked_at + 1, index + 1);
            // A damaged value has no path any more.
            let Some(path) = self.base.path(index) else { continue };
            let is_set = self.store.exists_at(self.tree, path).map_err(flash_error)?;
            deletion.values += usize::from(!is_set);
        }
        Ok(looked_at)
    }

    /// Hides the next values that one chunk is for; gives the bytes that this wrote, or `None` if all are
    /// hidden.
    fn hide_chunk(&mut self, deletion: &mut Deletion) -> Result<Option<usize>, DeleteError> {
        let first = self.hidden.next_shown(deletion.at);
        if first >= deletion.range.end {
            return Ok(None);
        }
        let chunk = first / CHUNK_BITS;
        let end = deletion.range.end.min((chunk + 1) * CHUNK_BITS);
        let mut hidden = self.hidden.chunk(chunk);
        (first..end).for_each(|index| hidden.insert(index % CHUNK_BITS));
        let (name, bytes) = (chunk.to_string(), hidden.bytes());
        self.store.set(self.hidden_tree, &name, ValueKind::Bytes, &bytes).map_err(set_error)?;
        (first..end).for_each(|index| self.hidden.insert(index));
        deletion.at = end;
        Ok(Some(self.store.record_bytes(self.hidden_tree, &name, &bytes)))
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

    /// Bytes that the changes take on the flash.
    pub fn stored_bytes(&self) -> usize {
        self.store.stored_bytes(self.tree) + self.store.stored_bytes(self.hidden_tree)
    }

    /// Returns the values to set and those of the base to hide, so that the tree is these
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
        tenure_hal::sort(&mut kept);
        let hidden = Hidden::all_but(&self.base, |index| kept.binary_search(&index).is_ok());
        (set, hidden)
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
            // A damaged value has no path any more.
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

fn set_error(error: SetError) -> DeleteError {
    match error {
        SetError::Flash(error) => DeleteError::Flash(error),
        SetError::Path(error) => DeleteError::Path(error),
        SetError::Full | SetError::ValueTooLong { .. } => DeleteError::Full,
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
