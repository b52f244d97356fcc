//! Instructions executed outside the interpreter: rare ones, and those that work in steps.
//!
//! A bulk instruction takes a unit of fuel for every granule of bytes or elements, and keeps what is left
//! to do in its operands' slots: it can stop between any two steps. Every instruction here has a surcharge
//! (`build/isa.rs`) for leaving the interpreter.

use super::{
    HOST_BYTES, TrapKind,
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

impl Parts {
    /// The nth unit of the instruction at `pc`.
    pub(super) fn unit(&self, image: &Image<'_>, n: usize) -> u16 {
        isa::unit_at(image.bytes(), self.position.pc as usize + 2 * n).unwrap_or(0)
    }

    /// The low half of the slot that the nth unit names.
    pub(super) fn read(&self, image: &Image<'_>, n: usize) -> u32 {
        self.stack.read(self.position.frame, self.unit(image, n))
    }

    fn write(&mut self, image: &Image<'_>, n: usize, value: u32) {
        self.stack.write(self.position.frame, self.unit(image, n), value);
    }

    /// Makes the first `end` bytes of memory available, and takes the fuel for that.
    pub(super) fn commit(&mut self, end: u64, left: &mut i32) -> Result<(), TrapKind> {
        let moved = self.memory.commit(end).map_err(|unavailable| match unavailable {
            Unavailable::OutOfBounds => TrapKind::OutOfBounds,
            Unavailable::OverBudget => TrapKind::MemoryBudget,
            Unavailable::Exhausted => TrapKind::OutOfMemory,
        })?;
        *left -= moving_bytes(moved) as i32;
        Ok(())
    }

    /// Executes the instruction at `pc`, as far as fuel allows; whether it calls the host, which is left to
    /// the caller.
    pub(super) fn execute_outer(
        &mut self,
        image: &Image<'_>,
        left: &mut i32,
    ) -> Result<bool, TrapKind> {
        let Some((opcode, length)) = isa::instruction_at(image.bytes(), self.position.pc as usize)
        else {
            return Err(TrapKind::Unreachable);
        };
        let finished = match opcode {
            isa::HOST => {
                *left -= HOST_BYTES as i32;
                return Ok(true);
            }
            isa::RETURN_CALL | isa::RETURN_CALL_INDIRECT => {
                *left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.tail_call(image, opcode, left).map(|()| false);
            }
            isa::CALL_INDIRECT_TABLE => {
                *left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.call_through_table(image, length, left).map(|()| false);
            }
            isa::MEMORY_FILL | isa::MEMORY_COPY | isa::MEMORY_INIT => {
                self.bulk_memory(image, opcode, left)?
            }
            isa::TABLE_FILL | isa::TABLE_COPY | isa::TABLE_INIT => {
                self.bulk_table(image, opcode, left)?
            }
            _ => {
                self.simple(image, opcode, left)?;
                true
            }
        };
        if finished {
            *left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
            self.position.pc += length as u32;
        }
        Ok(false)
    }

    fn simple(&mut self, image: &Image<'_>, opcode: u16, left: &mut i32) -> Result<(), TrapKind> {
        match opcode {
            isa::MEMORY_SIZE => self.write(image, 1, self.memory.pages()),
            isa::MEMORY_GROW => {
                let pages = self.read(image, 1);
                let maximum = image.memory_bytes_max();
                let before = self.memory.grow(pages, maximum);
                self.write(image, 2, before.unwrap_or(u32::MAX));
            }
            isa::DATA_DROP => {
                let index = self.unit(image, 1) as u32;
                self.segments.drop_data(index);
            }
            isa::ELEM_DROP => {
                let index = self.unit(image, 1) as u32;
                self.segments.drop_elements(index);
            }
            isa::TABLE_GET => {
                let (index, table) = (self.read(image, 1), self.unit(image, 2) as usize);
                let value = self.tables.get(table).and_then(|table| table.get(index as usize));
                let value = *value.ok_or(TrapKind::TableOutOfBounds)?;
                self.write(image, 3, value);
            }
            isa::TABLE_SET => {
                let (index, value) = (self.read(image, 1), self.read(image, 2));
                let table = self.unit(image, 3) as usize;
                let slot =
                    self.tables.get_mut(table).and_then(|table| table.get_mut(index as usize));
                *slot.ok_or(TrapKind::TableOutOfBounds)? = value;
            }
            isa::TABLE_SIZE => {
                let size = self.tables.len(self.unit(image, 1) as usize);
                self.write(image, 2, size as u32);
            }
            isa::TABLE_GROW => {
                let grown = self.grow_table(image, left);
                self.write(image, 4, grown.unwrap_or(u32::MAX));
            }
            // The interpreter executes everything else itself.
            _ => return Err(TrapKind::Unreachable),
        }
        Ok(())
    }

    /// Takes what is added from the budget of memory, and fuel for each element, new or moved.
    fn grow_table(&mut self, image: &Image<'_>, left: &mut i32) -> Option<u32> {
        let (value, count) = (self.read(image, 1), self.read(image, 2));
        let index = self.unit(image, 3) as u32;
        let maximum = Tables::maximum(image, index);
        let before = self.tables.get(index as usize)?.len();
        let size = before.checked_add(count as usize).filter(|&size| size <= maximum as usize)?;
        if size > before {
            self.memory.cede((size - before) * size_of::<u32>())?;
            *left -= (size as u32 / granule(isa::TABLE_GROW, 0)) as i32 * UNIT_BYTES as i32;
            self.tables.grow(index as usize, size - before, value)?;
        }
        Some(before as u32)
    }

    fn bulk(&self, image: &Image<'_>) -> Bulk {
        Bulk { to: self.read(image, 1), from: self.read(image, 2), count: self.read(image, 3) }
    }

    /// How much of `count` fuel allows at once, and takes it.
    fn step(count: u32, granule: u32, left: &mut i32) -> u32 {
        let granules = (*left).max(0) / UNIT_BYTES as i32;
        let count_now = (granules as u32).saturating_mul(granule).min(count);
        *left -= count_now.div_ceil(granule) as i32 * UNIT_BYTES as i32;
        // Fuel of half a unit there is not: at least one step was possible.
        count_now
    }

    /// Stores what is left to do; whether that is nothing. With `ascending`, the part that was done lay
    /// at the front.
    fn note_progress(
        &mut self,
        image: &Image<'_>,
        bulk: &Bulk,
        done: u32,
        ascending: bool,
        source: bool,
    ) -> bool {
        if ascending {
            self.write(image, 1, bulk.to.wrapping_add(done));
            if source {
                self.write(image, 2, bulk.from.wrapping_add(done));
            }
        }
        self.write(image, 3, bulk.count - done);
        done == bulk.count
    }

    fn bulk_memory(
        &mut self,
        image: &Image<'_>,
        opcode: u16,
        left: &mut i32,
    ) -> Result<bool, TrapKind> {
        let bulk = self.bulk(image);
        let (to, from, count) = (bulk.to as usize, bulk.from as usize, bulk.count as usize);
        let source: &[u8] = match opcode {
            isa::MEMORY_INIT => self.segments.data(image, self.unit(image, 4) as u32),
            _ => &[],
        };
        if opcode == isa::MEMORY_INIT && from as u64 + count as u64 > source.len() as u64 {
            return Err(TrapKind::OutOfBounds);
        }
        if opcode == isa::MEMORY_COPY {
            self.commit(bulk.from as u64 + bulk.count as u64, left)?;
        }
        self.commit(bulk.to as u64 + bulk.count as u64, left)?;
        // Where a segment lies in the image is the same everywhere.
        let source_at = match opcode {
            isa::MEMORY_INIT => source.as_ptr().addr().wrapping_sub(image.bytes().as_ptr().addr()),
            _ => 0,
        };
        let skew = source_at.wrapping_add(from).wrapping_sub(to);
        let now = Self::step(bulk.count, granule(opcode, skew), left) as usize;
        let memory = self.memory.bytes_mut();
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
        Ok(self.note_progress(image, &bulk, now as u32, ascending, source))
    }

    fn bulk_table(
        &mut self,
        image: &Image<'_>,
        opcode: u16,
        left: &mut i32,
    ) -> Result<bool, TrapKind> {
        let bulk = self.bulk(image);
        let end = |start: u32| start as u64 + bulk.count as u64;
        let table_at = if opcode == isa::TABLE_INIT { 5 } else { 4 };
        let table = self.unit(image, table_at) as usize;
        let length = |table: usize| self.tables.len(table) as u64;
        let segment = match opcode {
            isa::TABLE_INIT => self.segments.elements(image, self.unit(image, 4) as u32),
            _ => None,
        };
        let other = self.unit(image, 5) as usize;
        let source_length = match opcode {
            isa::TABLE_INIT => segment.map_or(0, |segment| segment.len() as u64),
            isa::TABLE_COPY => length(other),
            _ => u64::MAX,
        };
        if end(bulk.to) > length(table) || end(bulk.from) > source_length {
            return Err(TrapKind::TableOutOfBounds);
        }
        let now = Self::step(bulk.count, granule(opcode, 0), left);
        let ascending = opcode != isa::TABLE_COPY || bulk.to <= bulk.from;
        let skipped = if ascending { 0 } else { bulk.count - now };
        let (to, from) = ((bulk.to + skipped) as usize, bulk.from.wrapping_add(skipped) as usize);
        let count = now as usize;
        match (opcode, segment) {
            (isa::TABLE_COPY, _) => self.tables.copy((other, from), (table, to), count),
            (_, segment) => {
                let table = self.tables.get_mut(table);
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
        Ok(self.note_progress(image, &bulk, now, ascending, source))
    }

    /// The function that a table's element refers to.
    fn element(
        &self,
        image: &Image<'_>,
        table: usize,
        index: u32,
        canonical: u16,
    ) -> Result<u32, TrapKind> {
        let element = self.tables.get(table).and_then(|table| table.get(index as usize));
        let function = element.ok_or(TrapKind::TableOutOfBounds)?.wrapping_sub(1);
        let entry = image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        if entry.canonical != canonical {
            return Err(TrapKind::SignatureMismatch);
        }
        Ok(function)
    }

    fn call_through_table(
        &mut self,
        image: &Image<'_>,
        length: usize,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        let (table, canonical) = (self.unit(image, 1) as usize, self.unit(image, 2));
        let function = self.element(image, table, self.read(image, 3), canonical)?;
        let delta = self.unit(image, 4) as u32;
        let link = self.position.pc + length as u32;
        self.enter(image, function, self.position.frame + delta, link, left)
    }

    /// Moves the arguments to the frame's beginning and enters the function in its place.
    fn tail_call(
        &mut self,
        image: &Image<'_>,
        opcode: u16,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        let indirect = opcode == isa::RETURN_CALL_INDIRECT;
        let (function, first) = if indirect {
            let (table, canonical) = (self.unit(image, 1) as usize, self.unit(image, 2));
            (self.element(image, table, self.read(image, 3), canonical)?, 4)
        } else {
            (self.unit(image, 1) as u32, 2)
        };
        let entry = image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        let link = self.read(image, first + 1);
        let params = entry.params as usize;
        let (frame, from) = (self.position.frame, self.unit(image, first));
        let moved = self.stack.replace(frame, &entry, from, params);
        moved.ok_or(TrapKind::StackOverflow)?;
        *left -= (params / 2) as i32 * UNIT_BYTES as i32;
        self.enter(image, function, self.position.frame, link, left)
    }

    fn enter(
        &mut self,
        image: &Image<'_>,
        function: u32,
        frame: u32,
        link: u32,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        let entry = image.function_entry(function).ok_or(TrapKind::UninitializedElement)?;
        self.stack.enter(frame, &entry, link).ok_or(TrapKind::StackOverflow)?;
        *left -= entry_units(entry.zeros as usize) as i32 * UNIT_BYTES as i32;
        self.position.frame = frame;
        self.position.pc = entry.code;
        Ok(())
    }
}
