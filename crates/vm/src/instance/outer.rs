//! Instructions executed outside the interpreter: rare ones, and those that work in steps.
//!
//! A bulk instruction takes a unit of fuel for every granule of bytes or elements, and keeps what is left
//! to do in its operands' slots: it can stop between any two steps. Every instruction here has a surcharge
//! (`build/isa.rs`) for leaving the interpreter.

use super::{HOST_BYTES, Instance, Status, TrapKind, UNIT_BYTES, fingerprint, start};
use crate::{
    image::{FunctionIndex, Image},
    interpreter::entry_units,
    isa,
    memory::Lined,
};

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

impl Instance {
    pub(super) fn unit(&self, image: &Image<'_>, n: usize) -> u16 {
        isa::unit_at(image.bytes(), self.pc as usize + 2 * n).unwrap_or(0)
    }

    pub(super) fn slot_index(&self, image: &Image<'_>, n: usize) -> usize {
        self.globals + (self.frame as usize + self.unit(image, n) as usize) / 8
    }

    pub(super) fn read(&self, image: &Image<'_>, n: usize) -> u32 {
        self.slots.get(self.slot_index(image, n)).map_or(0, |&slot| slot as u32)
    }

    /// Writes the low half of a slot, as the interpreter does.
    pub(super) fn write(&mut self, image: &Image<'_>, n: usize, value: u32) {
        let index = self.slot_index(image, n);
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = *slot >> 32 << 32 | value as u64;
        }
    }

    /// Executes the instruction at `pc`, as far as fuel allows.
    pub(super) fn execute_outer(
        &mut self,
        image: &Image<'_>,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        let Some((opcode, length)) = isa::instruction_at(image.bytes(), self.pc as usize) else {
            return Err(TrapKind::Unreachable);
        };
        let finished = match opcode {
            isa::HOST => {
                *left -= HOST_BYTES as i32;
                return self.wait_for_host(image).map(|_| ());
            }
            isa::RETURN_CALL | isa::RETURN_CALL_INDIRECT => {
                *left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.tail_call(image, opcode, left);
            }
            isa::CALL_INDIRECT_TABLE => {
                *left -= length as i32 + isa::surcharge_bytes(opcode) as i32;
                return self.call_through_table(image, length, left);
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
            self.pc += length as u32;
        }
        Ok(())
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
                start::drop_segment(&mut self.dropped_data, index);
            }
            isa::ELEM_DROP => {
                let index = self.unit(image, 1) as u32;
                start::drop_segment(&mut self.dropped_elements, index);
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
                let size =
                    self.tables.get(self.unit(image, 1) as usize).map_or(0, |table| table.len());
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
        let maximum = Instance::table_maximum(image, index);
        let table = self.tables.get_mut(index as usize)?;
        let before = table.len();
        let size = before.checked_add(count as usize).filter(|&size| size <= maximum as usize)?;
        if size > before {
            self.memory.cede((size - before) * size_of::<u32>())?;
            *left -= (size as u32 / granule(isa::TABLE_GROW, 0)) as i32 * UNIT_BYTES;
            table.extend(size - before, value).ok()?;
        }
        Some(before as u32)
    }

    /// Whether the instruction at `pc` calls the host.
    #[inline(always)]
    pub(super) fn is_host_call(&self, image: &Image<'_>, pc: u32) -> bool {
        isa::unit_at(image.bytes(), pc as usize) == Some(isa::HOST * isa::OPCODE_SCALE)
    }

    /// Waits for the host function whose number it gives. The call is charged when it is made; `pc` stays
    /// until it is finished.
    pub(super) fn wait_for_host(&mut self, image: &Image<'_>) -> Result<u16, TrapKind> {
        let stub = image.stub_at(self.pc).ok_or(TrapKind::Unreachable)?;
        let signature = image.signature(FunctionIndex(stub)).ok_or(TrapKind::Unreachable)?;
        let function = self.unit(image, 1);
        self.status = Status::Waiting {
            function,
            arguments: signature.params().len() as u16,
            results: fingerprint(signature.results()),
        };
        Ok(function)
    }

    fn bulk(&self, image: &Image<'_>) -> Bulk {
        Bulk { to: self.read(image, 1), from: self.read(image, 2), count: self.read(image, 3) }
    }

    /// How much of `count` fuel allows at once, and takes it.
    fn step(count: u32, granule: u32, left: &mut i32) -> u32 {
        let granules = (*left).max(0) / UNIT_BYTES;
        let count_now = (granules as u32).saturating_mul(granule).min(count);
        *left -= count_now.div_ceil(granule) as i32 * UNIT_BYTES;
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
            isa::MEMORY_INIT => self.segment_bytes(image, self.unit(image, 4) as u32),
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

    fn segment_bytes<'a>(&self, image: &Image<'a>, index: u32) -> &'a [u8] {
        if start::is_dropped(&self.dropped_data, index) {
            return &[];
        }
        image.data(index).map_or(&[], |segment| segment.bytes)
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
        let length = |index: usize| self.tables.get(index).map_or(0, |table| table.len()) as u64;
        let segment = match opcode {
            isa::TABLE_INIT => {
                let index = self.unit(image, 4) as u32;
                let segment = image.elements(index);
                segment.filter(|_| !start::is_dropped(&self.dropped_elements, index))
            }
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
            (isa::TABLE_COPY, _) => {
                copy_elements(&mut self.tables, (other, from), (table, to), count)
            }
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
        let link = self.pc + length as u32;
        self.enter(image, function, self.frame + delta, link, left)
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
        let from = self.slot_index(image, first);
        let to = self.globals + self.frame as usize / 8;
        let params = entry.params as usize;
        // Check the room before the frame is given up, so that a backtrace can be made.
        if to + entry.frame_bytes as usize / 8 > self.slots.len() {
            return Err(TrapKind::StackOverflow);
        }
        // They come from above, so that ascending order is safe.
        for index in 0..params {
            let argument = *self.slots.get(from + index).ok_or(TrapKind::StackOverflow)?;
            *self.slots.get_mut(to + index).ok_or(TrapKind::StackOverflow)? = argument;
        }
        *left -= (params / 2) as i32 * UNIT_BYTES;
        self.enter(image, function, self.frame, link, left)
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
        let start = self.globals + frame as usize / 8;
        let frame_slots = self.slots.get_mut(start..start + entry.frame_bytes as usize / 8);
        let after = frame_slots.and_then(|slots| slots.get_mut(entry.link as usize / 8..));
        let Some((slot, locals)) = after.and_then(|slots| slots.split_first_mut()) else {
            return Err(TrapKind::StackOverflow);
        };
        *slot = link as u64;
        locals.iter_mut().take(entry.zeros as usize).for_each(|local| *local = 0);
        *left -= entry_units(entry.zeros as usize) as i32 * UNIT_BYTES;
        self.frame = frame;
        self.pc = entry.code;
        Ok(())
    }
}

/// Copies `count` elements between tables, or within one, as if by way of a third place.
fn copy_elements(
    tables: &mut [Lined<u32>],
    (source, from): (usize, usize),
    (target, to): (usize, usize),
    count: usize,
) {
    if source == target {
        if let Some(table) = tables.get_mut(target) {
            table.copy_within(from..from + count, to);
        }
    } else if let Ok([source, target]) = tables.get_disjoint_mut([source, target])
        && let Some((source, target)) =
            source.get(from..from + count).zip(target.get_mut(to..to + count))
    {
        target.copy_from_slice(source);
    }
}
