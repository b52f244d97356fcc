//! Instructions executed outside the interpreter: rare ones, and those that work in steps.
//!
//! A bulk instruction takes a unit of fuel for every granule of bytes or elements, and keeps what is left
//! to do in its operands' slots: it can stop between any two steps. Every instruction here has a surcharge
//! (`build/isa.rs`) for leaving the interpreter.

use super::{
    TrapKind,
    fuel::{UNIT_BYTES, moving_bytes},
    parts::Parts,
    tables::Tables,
};
use crate::{image::Image, interpreter::entry_units, isa, memory::Unavailable};

/// The amount that one unit of fuel fills or moves: bytes of memory, elements of a table. Copying takes longer
/// where the `skew`, the distance between both addresses, isn't whole words.
fn granule(opcode: u16, skew: usize) -> u32 {
    match opcode {
        isa::MEMORY_FILL => 8,
        isa::MEMORY_COPY | isa::MEMORY_INIT if skew.is_multiple_of(4) => 4,
        isa::TABLE_COPY | isa::TABLE_INIT => 1,
        _ => 2,
    }
}

/// A bulk operation's operands: slots of destination, source or value, and count.
struct Bulk {
    to: u32,
    from: u32,
    count: u32,
}

/// What an instruction outside the interpreter works on, lent for as long as it takes.
pub(super) struct Outer<'i> {
    pub(super) image: &'i Image<'i>,
    pub(super) parts: &'i mut Parts,
    /// Bytes of code that there is fuel for.
    pub(super) left: &'i mut i32,
}

impl<'i> Outer<'i> {
    /// The nth unit of the instruction at `pc`.
    pub(super) fn unit(&self, n: usize) -> u16 {
        isa::unit_at(self.image.bytes(), self.parts.position.pc as usize + 2 * n).unwrap_or(0)
    }

    /// The low half of the slot that the nth unit names.
    pub(super) fn read(&self, n: usize) -> u32 {
        self.parts.stack.read(self.parts.position.frame, self.unit(n))
    }

    fn write(&mut self, n: usize, value: u32) {
        self.parts.stack.write(self.parts.position.frame, self.unit(n), value);
    }

    /// Makes the first `end` bytes of memory available, and takes the fuel for that.
    pub(super) fn commit(&mut self, end: u64) -> Result<(), TrapKind> {
        let moved = self.parts.memory.commit(end).map_err(|unavailable| match unavailable {
            Unavailable::OutOfBounds => TrapKind::OutOfBounds,
            Unavailable::OverBudget => TrapKind::MemoryBudget,
            Unavailable::Exhausted => TrapKind::OutOfMemory,
        })?;
        *self.left -= moving_bytes(moved) as i32;
        Ok(())
    }

    /// Executes the instruction at `pc`, as far as fuel allows.
    pub(super) fn execute(&mut self) -> Result<(), TrapKind> {
        let Some((opcode, length)) =
            isa::instruction_at(self.image.bytes(), self.parts.position.pc as usize)
        else {
            return Err(TrapKind::Unreachable);
        };
        let finished = match opcode {
            isa::RETURN_CALL | isa::RETURN_CALL_INDIRECT => {
                *self.left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.tail_call(opcode);
            }
            isa::CALL_INDIRECT_TABLE => {
                *self.left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.call_through_table(length);
            }
            isa::MEMORY_FILL | isa::MEMORY_COPY | isa::MEMORY_INIT => self.bulk_memory(opcode)?,
            isa::TABLE_FILL | isa::TABLE_COPY | isa::TABLE_INIT => self.bulk_table(opcode)?,
            _ => {
                self.simple(opcode)?;
                true
            }
        };
        if finished {
            *self.left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
            self.parts.position.pc += length as u32;
        }
        Ok(())
    }

    fn simple(&mut self, opcode: u16) -> Result<(), TrapKind> {
        match opcode {
            isa::MEMORY_SIZE => self.write(1, self.parts.memory.pages()),
            isa::MEMORY_GROW => {
                let pages = self.read(1);
                let maximum = self.image.memory_bytes_max();
                let before = self.parts.memory.grow(pages, maximum);
                self.write(2, before.unwrap_or(u32::MAX));
            }
            isa::DATA_DROP => {
                let index = self.unit(1) as u32;
                self.parts.segments.drop_data(index);
            }
            isa::ELEM_DROP => {
                let index = self.unit(1) as u32;
                self.parts.segments.drop_elements(index);
            }
            isa::TABLE_GET => {
                let (index, table) = (self.read(1), self.unit(2) as usize);
                let value =
                    self.parts.tables.get(table).and_then(|table| table.get(index as usize));
                let value = *value.ok_or(TrapKind::TableOutOfBounds)?;
                self.write(3, value);
            }
            isa::TABLE_SET => {
                let (index, value) = (self.read(1), self.read(2));
                let table = self.unit(3) as usize;
                let table = self.parts.tables.get_mut(table);
                let slot = table.and_then(|table| table.get_mut(index as usize));
                *slot.ok_or(TrapKind::TableOutOfBounds)? = value;
            }
            isa::TABLE_SIZE => {
                let size = self.parts.tables.len(self.unit(1) as usize);
                self.write(2, size as u32);
            }
            isa::TABLE_GROW => {
                let grown = self.grow_table();
                self.write(4, grown.unwrap_or(u32::MAX));
            }
            // The interpreter executes everything else itself.
            _ => return Err(TrapKind::Unreachable),
        }
        Ok(())
    }

    /// Takes what is added from the budget of memory, and fuel for each element, new or moved.
    fn grow_table(&mut self) -> Option<u32> {
        let (value, count) = (self.read(1), self.read(2));
        let index = self.unit(3) as u32;
        let maximum = Tables::maximum(self.image, index);
        let before = self.parts.tables.get(index as usize)?.len();
        let size = before.checked_add(count as usize).filter(|&size| size <= maximum as usize)?;
        if size > before {
            self.parts.memory.cede((size - before) * size_of::<u32>())?;
            self.burn(size as u32 / granule(isa::TABLE_GROW, 0));
            self.parts.tables.grow(index as usize, size - before, value)?;
        }
        Some(before as u32)
    }

    fn bulk(&self) -> Bulk {
        Bulk { to: self.read(1), from: self.read(2), count: self.read(3) }
    }

    /// How much of `count` fuel allows at once, and takes it.
    fn step(&mut self, count: u32, granule: u32) -> u32 {
        let granules = (*self.left).max(0) as u32 / UNIT_BYTES;
        let count_now = granules.saturating_mul(granule).min(count);
        self.burn(count_now.div_ceil(granule));
        // Fuel of half a unit there is not: at least one step was possible.
        count_now
    }

    /// Stores what is left to do; whether that is nothing. With `ascending`, the part that was done lay
    /// at the front.
    fn note_progress(&mut self, bulk: &Bulk, done: u32, ascending: bool, source: bool) -> bool {
        if ascending {
            self.write(1, bulk.to.wrapping_add(done));
            if source {
                self.write(2, bulk.from.wrapping_add(done));
            }
        }
        self.write(3, bulk.count - done);
        done == bulk.count
    }

    fn bulk_memory(&mut self, opcode: u16) -> Result<bool, TrapKind> {
        let bulk = self.bulk();
        let (to, from, count) = (bulk.to as usize, bulk.from as usize, bulk.count as usize);
        let source: &'i [u8] = match opcode {
            isa::MEMORY_INIT => self.parts.segments.data(self.image, self.unit(4) as u32),
            _ => &[],
        };
        if opcode == isa::MEMORY_INIT && from as u64 + count as u64 > source.len() as u64 {
            return Err(TrapKind::OutOfBounds);
        }
        if opcode == isa::MEMORY_COPY {
            self.commit(bulk.from as u64 + bulk.count as u64)?;
        }
        self.commit(bulk.to as u64 + bulk.count as u64)?;
        // Where a segment lies in the image is the same everywhere.
        let source_at = match opcode {
            isa::MEMORY_INIT => {
                source.as_ptr().addr().wrapping_sub(self.image.bytes().as_ptr().addr())
            }
            _ => 0,
        };
        let skew = source_at.wrapping_add(from).wrapping_sub(to);
        let now = self.step(bulk.count, granule(opcode, skew)) as usize;
        let memory = self.parts.memory.bytes_mut();
        // Copying upwards onto itself must begin at the end.
        let ascending = opcode != isa::MEMORY_COPY || to <= from;
        let skipped = if ascending { 0 } else { count - now };
        if opcode == isa::MEMORY_COPY {
            memory.copy_within(from + skipped..from + skipped + now, to + skipped);
        } else if let Some(target) = memory.get_mut(to..to + now) {
            match source.get(from..from + now) {
                Some(source) if opcode == isa::MEMORY_INIT => target.copy_from_slice(source),
                _ => target.fill(bulk.from as u8),
            }
        }
        let source = opcode != isa::MEMORY_FILL;
        Ok(self.note_progress(&bulk, now as u32, ascending, source))
    }

    fn bulk_table(&mut self, opcode: u16) -> Result<bool, TrapKind> {
        let bulk = self.bulk();
        let end = |start: u32| start as u64 + bulk.count as u64;
        let table_at = if opcode == isa::TABLE_INIT { 5 } else { 4 };
        let table = self.unit(table_at) as usize;
        let length = |table: usize| self.parts.tables.len(table) as u64;
        let segment = match opcode {
            isa::TABLE_INIT => self.parts.segments.elements(self.image, self.unit(4) as u32),
            _ => None,
        };
        let other = self.unit(5) as usize;
        let source_length = match opcode {
            isa::TABLE_INIT => segment.map_or(0, |segment| segment.len() as u64),
            isa::TABLE_COPY => length(other),
            _ => u64::MAX,
        };
        if end(bulk.to) > length(table) || end(bulk.from) > source_length {
            return Err(TrapKind::TableOutOfBounds);
        }
        let now = self.step(bulk.count, granule(opcode, 0));
        let ascending = opcode != isa::TABLE_COPY || bulk.to <= bulk.from;
        let skipped = if ascending { 0 } else { bulk.count - now };
        let (to, from) = ((bulk.to + skipped) as usize, bulk.from.wrapping_add(skipped) as usize);
        let count = now as usize;
        match (opcode, segment) {
            (isa::TABLE_COPY, _) => self.parts.tables.copy((other, from), (table, to), count),
            (_, segment) => {
                let table = self.parts.tables.get_mut(table);
                let Some(target) = table.and_then(|table| table.get_mut(to..to + count)) else {
                    return Err(TrapKind::TableOutOfBounds);
                };
                match segment {
                    Some(segment) => segment.copy_to(from, target),
                    None => target.fill(bulk.from),
                }
            }
        }
        let source = opcode != isa::TABLE_FILL;
        Ok(self.note_progress(&bulk, now, ascending, source))
    }

    /// The function that a table's element refers to.
    fn element(&self, table: usize, index: u32, canonical: u16) -> Result<u32, TrapKind> {
        let element = self.parts.tables.get(table).and_then(|table| table.get(index as usize));
        let function = element.ok_or(TrapKind::TableOutOfBounds)?.wrapping_sub(1);
        let entry = self.image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        if entry.canonical != canonical {
            return Err(TrapKind::SignatureMismatch);
        }
        Ok(function)
    }

    fn call_through_table(&mut self, length: usize) -> Result<(), TrapKind> {
        let (table, canonical) = (self.unit(1) as usize, self.unit(2));
        let function = self.element(table, self.read(3), canonical)?;
        let delta = self.unit(4) as u32;
        let link = self.parts.position.pc + length as u32;
        self.enter(function, self.parts.position.frame + delta, link)
    }

    /// Moves the arguments to the frame's beginning and enters the function in its place.
    fn tail_call(&mut self, opcode: u16) -> Result<(), TrapKind> {
        let indirect = opcode == isa::RETURN_CALL_INDIRECT;
        let (function, first) = if indirect {
            let (table, canonical) = (self.unit(1) as usize, self.unit(2));
            (self.element(table, self.read(3), canonical)?, 4)
        } else {
            (self.unit(1) as u32, 2)
        };
        let entry = self.image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        let link = self.read(first + 1);
        let params = entry.params as usize;
        let (frame, from) = (self.parts.position.frame, self.unit(first));
        let moved = self.parts.stack.replace(frame, &entry, from, params);
        moved.ok_or(TrapKind::StackOverflow)?;
        self.burn((params / 2) as u32);
        self.enter(function, self.parts.position.frame, link)
    }

    fn enter(&mut self, function: u32, frame: u32, link: u32) -> Result<(), TrapKind> {
        let entry = self.image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        self.parts.stack.enter(frame, &entry, link).ok_or(TrapKind::StackOverflow)?;
        self.burn(entry_units(entry.zeros as usize) as u32);
        self.parts.position.frame = frame;
        self.parts.position.pc = entry.code;
        Ok(())
    }

    fn burn(&mut self, units: u32) {
        *self.left -= (units * UNIT_BYTES) as i32;
    }
}
