//! Instructions of a body that reach memory, tables and other functions.

use super::{
    arithmetic::Arithmetic,
    function::{Body, Stop},
    operands::{Popped, Source},
};
use crate::{
    error::{Feature, Invalid, Malformed},
    isa,
    value::ValueType::{self, F32, F64, FuncRef, I32, I64},
    wasm::{Checked, TypeEntry},
};

/// Of 0x28 to 0x3E: type of the value, log2 of the bytes, instruction.
const ACCESSES: [(ValueType, u8, u16); 23] = [
    (I32, 2, isa::LOAD32_S_A),
    (I64, 3, isa::LOAD64),
    (F32, 2, isa::LOAD32_S_A),
    (F64, 3, isa::LOAD64),
    (I32, 0, isa::LOAD8_S_S_A),
    (I32, 0, isa::LOAD8_U_S_A),
    (I32, 1, isa::LOAD16_S_S_A),
    (I32, 1, isa::LOAD16_U_S_A),
    (I64, 0, isa::LOAD64_8_S),
    (I64, 0, isa::LOAD64_8_U),
    (I64, 1, isa::LOAD64_16_S),
    (I64, 1, isa::LOAD64_16_U),
    (I64, 2, isa::LOAD64_32_S),
    (I64, 2, isa::LOAD64_32_U),
    (I32, 2, isa::STORE32_SS),
    (I64, 3, isa::STORE64_SS),
    (F32, 2, isa::STORE32_SS),
    (F64, 3, isa::STORE64_SS),
    (I32, 0, isa::STORE8_SS),
    (I32, 1, isa::STORE16_SS),
    (I64, 0, isa::STORE8_SS),
    (I64, 1, isa::STORE16_SS),
    (I64, 2, isa::STORE32_SS),
];

impl Body<'_, '_> {
    pub(super) fn memory_access(&mut self, opcode: u8) -> Checked<()> {
        let (value_type, log_bytes, instruction) = ACCESSES[opcode as usize - 0x28];
        if matches!(value_type, F32 | F64) && !cfg!(feature = "float") {
            return self.reader.error(Feature::Floats);
        }
        let start = self.reader;
        let alignment = self.reader.u32()?;
        if (64..128).contains(&alignment) {
            return start.error(Feature::MultipleMemories);
        }
        if alignment >= 64 {
            return start.error(Malformed::LimitsFlags);
        }
        let offset = self.reader.u32()?;
        self.require_memory()?;
        if alignment > log_bytes as u32 {
            return start.error(Invalid::Alignment);
        }
        if opcode >= 0x36 {
            let value = self.operands.pop(Some(value_type));
            let address = self.operands.pop(Some(I32));
            self.store(instruction, address, value, offset, 1 << log_bytes);
            return Ok(());
        }
        let address = self.operands.pop(Some(I32));
        if let Source::Constant(base) = self.operands.source(address)
            && instruction == isa::LOAD32_S_A
            && let Some(sum) = (base as u32).checked_add(offset)
        {
            self.operands.produce(isa::LOAD32_I_A, &[sum as u16, (sum >> 16) as u16], value_type);
            return Ok(());
        }
        self.load(instruction, value_type, address, offset, 1 << log_bytes);
        Ok(())
    }

    fn require_memory(&mut self) -> Checked<()> {
        match self.module.memory {
            Some(_) => Ok(()),
            None => self.reader.error(Invalid::UnknownMemory),
        }
    }

    /// Offset and size in one: what is added to the address of the first byte gives that of the last.
    fn reach(offset: u32, bytes: u32) -> Option<u16> {
        u16::try_from(offset.checked_add(bytes - 1)?).ok()
    }

    /// Adds an offset that is too large for an operand; the sum is in the accumulator.
    fn add_far_offset(&mut self, address: Popped, offset: u32) {
        let slot = self.operands.slot(address);
        self.operands.free_accumulator();
        self.operands.perform(isa::ADDRESS_S_A, &[slot, offset as u16, (offset >> 16) as u16]);
        self.operands.code.forget_accumulator();
    }

    fn load(
        &mut self,
        instruction: u16,
        value_type: ValueType,
        address: Popped,
        offset: u32,
        bytes: u32,
    ) {
        let wide = value_type.is_wide();
        let Some(reach) = Self::reach(offset, bytes) else {
            self.add_far_offset(address, offset);
            if !wide {
                return self.operands.produce(instruction + 2, &[bytes as u16 - 1], value_type);
            }
            // 64-bit loads take their address from a slot; the result's own is free.
            let own = self.operands.temporary(self.operands.depth());
            self.operands.perform(isa::COPY_A, &[own]);
            return self.operands.produce_slot(instruction, &[own, bytes as u16 - 1], value_type);
        };
        if !wide {
            if let Source::Constant(base) = self.operands.source(address) {
                self.operands.constant_to_accumulator(base);
                return self.operands.produce(instruction + 2, &[reach], value_type);
            }
            if self.operands.is_in_accumulator(address) {
                return self.operands.produce(instruction + 2, &[reach], value_type);
            }
        }
        let slot = self.operands.slot(address);
        if wide {
            self.operands.produce_slot(instruction, &[slot, reach], value_type)
        } else {
            self.operands.produce(instruction, &[slot, reach], value_type)
        }
    }

    fn store(&mut self, instruction: u16, address: Popped, value: Popped, offset: u32, bytes: u32) {
        let wide = instruction == isa::STORE64_SS;
        let address_from_accumulator = instruction + if wide { 1 } else { 2 };
        let Some(reach) = Self::reach(offset, bytes) else {
            let value = self.operands.slot(value);
            self.add_far_offset(address, offset);
            self.operands.perform(address_from_accumulator, &[value, bytes as u16 - 1]);
            return;
        };
        if let (Source::Constant(constant), false) = (self.operands.source(value), wide)
            && let Ok(constant) = i16::try_from(constant)
        {
            if self.operands.is_in_accumulator(address) {
                self.operands.perform(instruction + 4, &[constant as u16, reach]);
            } else {
                let address = self.operands.slot(address);
                self.operands.perform(instruction + 3, &[address, constant as u16, reach]);
            }
            return;
        }
        let value_in_accumulator = !wide && self.operands.is_in_accumulator(value);
        if self.operands.is_in_accumulator(address) {
            let value = self.operands.slot(value);
            self.operands.perform(address_from_accumulator, &[value, reach]);
        } else if value_in_accumulator {
            let address = self.operands.slot(address);
            self.operands.perform(instruction + 1, &[address, reach]);
        } else {
            let (address, value) = (self.operands.slot(address), self.operands.slot(value));
            self.operands.perform(instruction, &[address, value, reach]);
        }
    }

    pub(super) fn memory_size(&mut self, grow: bool) -> Checked<()> {
        self.zero_byte()?;
        self.require_memory()?;
        if grow {
            Arithmetic(&mut self.operands).unary(isa::MEMORY_GROW, I32, I32);
        } else {
            self.operands.produce_slot(isa::MEMORY_SIZE, &[], I32);
        }
        Ok(())
    }

    fn zero_byte(&mut self) -> Checked<()> {
        match self.reader.byte()? {
            0 => Ok(()),
            _ => self.reader.error(Malformed::ZeroByte),
        }
    }

    pub(super) fn table_access(&mut self, get: bool) -> Checked<()> {
        let (index, table) = self.table()?;
        if get {
            let position = self.operands.pop(Some(I32));
            let slot = self.operands.slot(position);
            self.operands.produce_slot(isa::TABLE_GET, &[slot, index], table.element);
            return Ok(());
        }
        let value = self.operands.pop(Some(table.element));
        let position = self.operands.pop(Some(I32));
        let (position, value) = (self.operands.slot(position), self.operands.slot(value));
        self.operands.perform(isa::TABLE_SET, &[position, value, index]);
        Ok(())
    }

    /// Instructions behind the byte 0xFC.
    pub(super) fn prefixed(&mut self) -> Checked<()> {
        let start = self.reader;
        match self.reader.u32()? {
            0..=7 if !cfg!(feature = "float") => return start.error(Feature::Floats),
            variant @ 0..=3 => Arithmetic(&mut self.operands).truncation(I32, variant as u8, true),
            variant @ 4..=7 => {
                Arithmetic(&mut self.operands).truncation(I64, variant as u8 - 4, true)
            }
            8 => {
                let segment = self.data_index()?;
                self.zero_byte()?;
                self.require_memory()?;
                self.bulk(isa::MEMORY_INIT, [I32, I32, I32], &[segment]);
            }
            9 => {
                let segment = self.data_index()?;
                self.operands.perform(isa::DATA_DROP, &[segment]);
            }
            10 => {
                self.zero_byte()?;
                self.zero_byte()?;
                self.require_memory()?;
                self.bulk(isa::MEMORY_COPY, [I32, I32, I32], &[]);
            }
            11 => {
                self.zero_byte()?;
                self.require_memory()?;
                self.bulk(isa::MEMORY_FILL, [I32, I32, I32], &[]);
            }
            12 => {
                let (segment, element) = self.element_index()?;
                let (index, table) = self.table()?;
                if table.element != element {
                    return self.reader.error(Invalid::TypeMismatch);
                }
                self.bulk(isa::TABLE_INIT, [I32, I32, I32], &[segment, index]);
            }
            13 => {
                let (segment, _) = self.element_index()?;
                self.operands.perform(isa::ELEM_DROP, &[segment]);
            }
            14 => {
                let (to, first) = self.table()?;
                let (from, second) = self.table()?;
                if first.element != second.element {
                    return self.reader.error(Invalid::TypeMismatch);
                }
                self.bulk(isa::TABLE_COPY, [I32, I32, I32], &[to, from]);
            }
            15 => {
                let (index, table) = self.table()?;
                let count = self.operands.pop(Some(I32));
                let value = self.operands.pop(Some(table.element));
                let (value, count) = (self.operands.slot(value), self.operands.slot(count));
                self.operands.produce_slot(isa::TABLE_GROW, &[value, count, index], I32);
            }
            16 => {
                let (index, _) = self.table()?;
                self.operands.produce_slot(isa::TABLE_SIZE, &[index], I32);
            }
            17 => {
                let (index, table) = self.table()?;
                self.bulk(isa::TABLE_FILL, [I32, table.element, I32], &[index]);
            }
            19..=22 => return start.error(Feature::WideArithmetic),
            _ => return start.error(Malformed::Opcode),
        }
        Ok(())
    }

    /// Three operands in their own slots: the instruction counts in them while it works in steps.
    fn bulk(&mut self, opcode: u16, types: [ValueType; 3], indices: &[u16]) {
        self.operands.expect_top(types.into_iter(), false);
        self.operands.settle_top(3);
        let mut units = [0; 5];
        for (index, expected) in types.into_iter().enumerate().rev() {
            let operand = self.operands.pop(Some(expected));
            units[index] = self.operands.slot(operand);
            self.operands.code.wrote(units[index]);
        }
        units[3..3 + indices.len()].copy_from_slice(indices);
        self.operands.perform(opcode, &units[..3 + indices.len()]);
    }

    fn data_index(&mut self) -> Checked<u16> {
        let start = self.reader;
        let index = self.reader.u32()?;
        match self.module.data_count {
            None => start.error(Malformed::DataCountRequired),
            Some(count) if index >= count => start.error(Invalid::UnknownData),
            Some(_) => Ok(index as u16),
        }
    }

    fn element_index(&mut self) -> Checked<(u16, ValueType)> {
        let start = self.reader;
        let index = self.reader.u32()?;
        match self.module.element_types.get(index as usize) {
            Some(&element) => Ok((index as u16, element)),
            None => start.error(Invalid::UnknownElements),
        }
    }

    /// call, call_indirect, return_call, return_call_indirect.
    pub(super) fn call_instruction(&mut self, opcode: u8) -> Result<(), Stop> {
        let indirect = opcode & 1 != 0;
        let tail = opcode & 2 != 0;
        let start = self.reader;
        let index = self.reader.u32()?;
        let entry = if indirect {
            self.module.type_entry(index).ok_or(Invalid::UnknownType)
        } else {
            self.module.type_of_function(index).ok_or(Invalid::UnknownFunction)
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(reason) => return Ok(start.error(reason)?),
        };
        let mut element = None;
        let mut table_index = 0;
        if indirect {
            let (index, table) = self.table()?;
            if table.element != FuncRef {
                return Ok(start.error(Invalid::TypeMismatch)?);
            }
            table_index = index;
            element = Some(self.operands.pop(Some(I32)));
        }
        if tail {
            return self.tail_call(index as u16, entry, table_index, element);
        }
        self.call(index as u16, entry, table_index, element)
    }

    fn call(
        &mut self,
        function: u16,
        entry: TypeEntry,
        table: u16,
        element: Option<Popped>,
    ) -> Result<(), Stop> {
        let types = self.module.function_type(entry);
        self.operands.expect_top(types.params(), false);
        let element = element.map(|element| self.operands.slot(element));
        self.operands.settle_top(types.params().len());
        self.operands.pop_all(types.params());
        let delta = self.operands.temporary(self.operands.depth());
        match element {
            None => self.operands.perform(isa::CALL, &[function, delta]),
            Some(slot) if table == 0 => {
                self.operands.perform(isa::CALL_INDIRECT, &[entry.canonical, slot, delta])
            }
            Some(slot) => self
                .operands
                .perform(isa::CALL_INDIRECT_TABLE, &[table, entry.canonical, slot, delta]),
        }
        self.operands.code.forget_accumulator();
        self.operands.push_all(types.results());
        Ok(())
    }

    fn tail_call(
        &mut self,
        function: u16,
        entry: TypeEntry,
        table: u16,
        element: Option<Popped>,
    ) -> Result<(), Stop> {
        let types = self.module.function_type(entry);
        if !types.results().eq(self.blocks.body_results()) {
            return Ok(self.reader.error(Invalid::TypeMismatch)?);
        }
        self.operands.expect_top(types.params(), false);
        let element = element.map(|element| self.operands.slot(element));
        self.operands.settle_top(types.params().len());
        self.operands.pop_all(types.params());
        let first = self.operands.temporary(self.operands.depth());
        let link = self.locals.link();
        match element {
            None => self.operands.perform(isa::RETURN_CALL, &[function, first, link]),
            Some(slot) => self
                .operands
                .perform(isa::RETURN_CALL_INDIRECT, &[table, entry.canonical, slot, first, link]),
        }
        self.operands.leave();
        Ok(())
    }
}
