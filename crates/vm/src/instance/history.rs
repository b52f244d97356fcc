//! For walks through a program's past: where it stands, its calls' variables, and the change since an earlier moment.

use alloc::vec::Vec;

use super::{Debt, Frame, Instance, Position, Status, Trap};
use super::{segments::Segments, tables::Tables};
use crate::{image::Image, isa};

/// Where a program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Offset in the image of the next instruction, or of the one that failed.
    pub code_at: u32,
    /// Offset of the innermost call's frame in the stack, in bytes: larger, the deeper the call is.
    pub frame: u32,
}

impl Instance {
    /// Where the call under way stands, or the one that failed.
    pub fn standing(&self) -> Option<Standing> {
        if matches!(self.status, Status::Idle | Status::Done) {
            return None;
        }
        let Position { pc, frame, .. } = self.parts.position;
        Some(Standing { code_at: pc, frame })
    }

    /// As [`Instance::backtrace`], each call with its frame's offset in the stack, in bytes.
    pub fn frames(&self, image: &Image<'_>) -> Vec<(Frame, u32)> {
        let mut at = self.parts.position.frame;
        let mut frames = Vec::new();
        for call in self.backtrace(image) {
            if !frames.is_empty() {
                // The last unit of a call says how far behind the caller's frame the callee's begins.
                let link =
                    image.function_entry(call.function).map_or(0, |it| it.code) + call.offset;
                let last = link.checked_sub(2).unwrap_or(link) as usize;
                let delta = isa::unit_at(image.bytes(), last).unwrap_or(0);
                at = at.saturating_sub(u32::from(delta));
            }
            frames.push((call, at));
        }
        frames
    }

    /// The slot of a parameter or local variable of `function`, whose frame begins at that offset of the stack; of 32-bit
    /// types only the low half counts. `None` if the function has none of this number.
    pub fn local(&self, image: &Image<'_>, function: u32, frame: u32, index: u32) -> Option<u64> {
        let entry = image.function_entry(function)?;
        let params = u32::from(entry.params);
        let slot = match index.checked_sub(params) {
            None => index,
            Some(behind) if behind < u32::from(entry.zeros) => {
                u32::from(entry.link) / 8 + 1 + behind
            }
            Some(_) => return None,
        };
        self.parts.stack.frames_from(frame).get(slot as usize).copied()
    }

    /// How the call failed, if it did.
    pub fn failure(&self, image: &Image<'_>) -> Option<Trap> {
        match self.status {
            Status::Trapped { kind } => Some(self.trap(image, kind)),
            _ => None,
        }
    }

    /// Owes nothing any more: what it will use is counted from here on.
    pub fn forgive(&mut self) {
        self.debt = Debt::NONE;
    }

    /// The change of this instance since it was as `before`; `None` if they aren't of one image and of stacks of one size.
    pub fn change_since(&self, before: &Instance) -> Option<Change> {
        let (slots, slots_before) = (self.parts.stack.all(), before.parts.stack.all());
        if self.token.checksum != before.token.checksum || slots.len() != slots_before.len() {
            return None;
        }
        let (now, then) = (&self.parts, &before.parts);
        let are_tables_same = now.tables.all().len() == then.tables.all().len()
            && now.tables.all().iter().zip(then.tables.all()).all(|(now, then)| **now == **then);
        let are_marks_same = now.segments.marks() == then.segments.marks();
        Some(Change {
            status: self.status,
            entry: self.entry,
            debt: self.debt,
            position: now.position,
            slots: Pieces::between(slots_before, slots),
            size: now.memory.size(),
            bytes: Pieces::between(then.memory.bytes(), now.memory.bytes()),
            tables: (!are_tables_same).then(|| now.tables.clone()),
            segments: (!are_marks_same).then(|| now.segments.clone()),
        })
    }

    /// Becomes what `change` says of an instance that was as this one is. Without memory for that it stays as it is.
    pub fn apply(&mut self, change: &Change) {
        if self.parts.memory.resize(change.size).is_none() {
            return;
        }
        (self.status, self.entry, self.debt) = (change.status, change.entry, change.debt);
        self.parts.position = change.position;
        change.slots.write_to(self.parts.stack.all_mut());
        change.bytes.write_to(self.parts.memory.bytes_mut());
        if let Some(tables) = &change.tables {
            self.parts.tables = tables.clone();
        }
        if let Some(segments) = &change.segments {
            self.parts.segments = segments.clone();
        }
    }
}

impl Image<'_> {
    /// The image's bytes, to be kept and opened again by [`Image::reopen`].
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes()
    }

    /// Whether the instruction at an offset works in steps, and so may be done in part.
    pub fn is_bulk_at(&self, code_at: u32) -> bool {
        let instruction = isa::instruction_at(self.bytes(), code_at as usize);
        instruction.is_some_and(|(opcode, _)| {
            matches!(
                opcode,
                isa::MEMORY_FILL
                    | isa::MEMORY_COPY
                    | isa::MEMORY_INIT
                    | isa::TABLE_FILL
                    | isa::TABLE_COPY
                    | isa::TABLE_INIT
            )
        })
    }
}

/// The change of an instance since an earlier moment.
pub struct Change {
    status: Status,
    entry: u32,
    debt: Debt,
    position: Position,
    slots: Pieces<u64>,
    /// Pages, committed bytes and the budget of memory.
    size: (u32, usize, usize),
    bytes: Pieces<u8>,
    tables: Option<Tables>,
    segments: Option<Segments>,
}

impl Change {
    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let tables = self.tables.as_ref().map_or(0, |tables| {
            tables.all().iter().map(|table| table.len() * size_of::<u32>()).sum::<usize>()
        });
        size_of::<Self>() + self.slots.bytes() + self.bytes.bytes() + tables
    }
}

/// The pieces of a list that differ: where each begins, and its elements now.
struct Pieces<T>(Vec<(usize, Vec<T>)>);

/// Lists are compared so many elements at a time.
const CHUNK: usize = 64;
/// Pieces with fewer elements than that between them are one.
const GAP: usize = 8;

impl<T: Copy + Default + PartialEq> Pieces<T> {
    /// The pieces of `now` that differ; where `before` ends early, it counts as zero.
    fn between(before: &[T], now: &[T]) -> Self {
        let mut pieces: Vec<(usize, Vec<T>)> = Vec::new();
        for (number, chunk) in now.chunks(CHUNK).enumerate() {
            let from = number * CHUNK;
            let known = before.get(from..).unwrap_or(&[]);
            if known.get(..chunk.len()) == Some(chunk) {
                continue;
            }
            for (index, value) in chunk.iter().enumerate() {
                if *value == known.get(index).copied().unwrap_or_default() {
                    continue;
                }
                let at = from + index;
                let end = pieces.last().map(|(start, values)| start + values.len());
                match (pieces.last_mut(), end) {
                    (Some((_, values)), Some(end)) if at - end < GAP => {
                        values.extend_from_slice(&now[end..=at]);
                    }
                    _ => pieces.push((at, alloc::vec![*value])),
                }
            }
        }
        Self(pieces)
    }

    fn write_to(&self, list: &mut [T]) {
        for (at, values) in &self.0 {
            if let Some(place) = list.get_mut(*at..*at + values.len()) {
                place.copy_from_slice(values);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.0
            .iter()
            .map(|(_, values)| size_of::<(usize, Vec<T>)>() + size_of_val(&values[..]))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_one_list_of_the_other_and_hold_little_more_than_what_differs() {
        let before: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut now = before.clone();
        now.resize(1100, 0);
        for at in [0, 3, 63, 64, 500, 999, 1050] {
            now[at] ^= 1;
        }
        let pieces = Pieces::between(&before, &now);
        assert_eq!(pieces.0.len(), 5, "of which two join what is near");
        let mut rebuilt = before.clone();
        rebuilt.resize(now.len(), 0);
        pieces.write_to(&mut rebuilt);
        assert_eq!(rebuilt, now);
        assert!(Pieces::between(&now, &now).0.is_empty());
        assert!(Pieces::between(&now, &now[..10]).0.is_empty(), "what ends early has no piece");
    }
}
