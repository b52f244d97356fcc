//! One instruction of a body: checked, and turned into image code (wasm 2.0 §5.4).

use super::{
    arithmetic::Arithmetic,
    blocks::Kind,
    function::{Body, Stop},
};
use crate::{
    error::{Feature, Invalid, Malformed, TranslateErrorKind},
    isa,
    value::ValueType::{self, F32, F64, FuncRef, I32, I64},
    wasm::{Checked, Table, block_type, null_type, value_type},
};

impl Body<'_, '_> {
    /// Reads, checks and translates one instruction.
    pub(super) fn instruction(&mut self) -> Result<(), Stop> {
        let start = self.reader;
        let opcode = self.reader.byte()?;
        match opcode {
            0x00 => {
                self.operands.perform(isa::UNREACHABLE, &[]);
                self.operands.leave();
            }
            0x01 => {}
            0x02 | 0x03 => {
                let signature = block_type(&mut self.reader, self.module)?;
                let kind = if opcode == 0x02 { Kind::Block } else { Kind::Loop };
                self.blocks.block(&mut self.operands, kind, signature)?;
            }
            0x04 => {
                let signature = block_type(&mut self.reader, self.module)?;
                self.blocks.if_block(&mut self.operands, signature)?;
            }
            0x05 => self.blocks.else_arm(&mut self.operands)?,
            0x0B => self.blocks.end(&mut self.operands)?,
            0x0C => self.br()?,
            0x0D => self.br_if()?,
            0x0E => self.br_table()?,
            0x0F => self.return_from_body()?,
            0x10..=0x13 => self.call_instruction(opcode)?,
            0x1A => drop(self.operands.pop(None)),
            0x1B | 0x1C => self.select(opcode == 0x1C)?,
            0x20..=0x24 => self.variable(opcode)?,
            0x25 | 0x26 => self.table_access(opcode == 0x25)?,
            0x28..=0x3E => self.memory_access(opcode)?,
            0x3F | 0x40 => self.memory_size(opcode == 0x40)?,
            0x41..=0x44 => self.constant(opcode)?,
            0x45..=0xC4 => Arithmetic(&mut self.operands).numeric(opcode),
            0xD0..=0xD2 => self.reference(opcode)?,
            0xFC => self.prefixed()?,
            _ => return Ok(start.error(unknown(opcode))?),
        }
        Ok(())
    }

    fn variable(&mut self, opcode: u8) -> Checked<()> {
        match opcode {
            0x20 => {
                let (value_type, slot) = self.local()?;
                self.operands.push_local(value_type, slot);
            }
            0x21 | 0x22 => {
                let (value_type, slot) = self.local()?;
                let value = self.operands.pop(Some(value_type));
                self.operands.set_local(value, slot);
                if opcode == 0x22 {
                    self.operands.push_local(value_type, slot);
                }
            }
            0x23 => {
                let (index, value_type, _) = self.global()?;
                if value_type.is_wide() {
                    self.operands.produce_slot(isa::GLOBAL_GET64_S, &[index], value_type);
                } else {
                    self.operands.produce(isa::GLOBAL_GET32_A, &[index], value_type);
                }
            }
            _ => {
                let (index, value_type, mutable) = self.global()?;
                if !mutable {
                    return self.reader.error(Invalid::ImmutableGlobal);
                }
                let value = self.operands.pop(Some(value_type));
                if value_type.is_wide() {
                    let slot = self.operands.slot(value);
                    self.operands.perform(isa::GLOBAL_SET64_S, &[slot, index]);
                } else if self.operands.is_in_accumulator(value) {
                    self.operands.perform(isa::GLOBAL_SET32_A, &[index]);
                } else {
                    let slot = self.operands.slot(value);
                    self.operands.perform(isa::GLOBAL_SET32_S, &[slot, index]);
                }
            }
        }
        Ok(())
    }

    /// A global by its byte offset among all, with its type.
    fn global(&mut self) -> Checked<(u16, ValueType, bool)> {
        let start = self.reader;
        let index = self.reader.u32()?;
        match self.module.globals.get(index as usize) {
            Some(global) => Ok((index as u16 * 8, global.value_type, global.mutable)),
            None => start.error(Invalid::UnknownGlobal),
        }
    }

    fn constant(&mut self, opcode: u8) -> Checked<()> {
        let (value_type, bits) = match opcode {
            0x41 => (I32, self.reader.i32()? as i64),
            0x42 => (I64, self.reader.i64()?),
            _ if !cfg!(feature = "float") => return self.reader.error(Feature::Floats),
            0x43 => {
                let bytes = self.reader.take(4)?;
                (F32, i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as i64)
            }
            _ => {
                let mut buffer = [0; 8];
                buffer.copy_from_slice(self.reader.take(8)?);
                (F64, i64::from_le_bytes(buffer))
            }
        };
        match i32::try_from(bits) {
            Ok(value) => self.operands.push_constant(value_type, value),
            Err(_) => {
                let unit = |index: u32| (bits >> (16 * index)) as u16;
                self.operands.produce_slot(
                    isa::CONST64,
                    &[unit(0), unit(1), unit(2), unit(3)],
                    value_type,
                )
            }
        }
        Ok(())
    }

    fn select(&mut self, typed: bool) -> Checked<()> {
        let expected = if typed {
            if self.reader.u32()? != 1 {
                return self.reader.error(Invalid::SelectArity);
            }
            Some(value_type(&mut self.reader)?)
        } else {
            None
        };
        let condition = self.operands.pop(Some(I32));
        let second = self.operands.pop(expected);
        let first = self.operands.pop(expected.or(second.value_type));
        let found = expected.or(first.value_type).or(second.value_type);
        if !typed && found.is_some_and(|value_type| value_type.is_reference()) {
            return self.reader.error(Invalid::TypeMismatch);
        }
        let Some(result) = found else {
            self.operands.push_temporary(None);
            return Ok(());
        };
        let (a, b) = (self.operands.slot(first), self.operands.slot(second));
        let wide = result.is_wide();
        if self.operands.is_in_accumulator(condition) {
            match wide {
                true => self.operands.produce_slot(isa::SELECT64_A_S, &[a, b], result),
                false => self.operands.produce(isa::SELECT32_A_A, &[a, b], result),
            }
        } else {
            let c = self.operands.slot(condition);
            match wide {
                true => self.operands.produce_slot(isa::SELECT64_S_S, &[a, b, c], result),
                false => self.operands.produce(isa::SELECT32_S_A, &[a, b, c], result),
            }
        }
        Ok(())
    }

    fn reference(&mut self, opcode: u8) -> Checked<()> {
        match opcode {
            0xD0 => {
                let reference = null_type(&mut self.reader)?;
                self.operands.push_constant(reference, 0);
            }
            0xD1 => {
                let operand = self.operands.pop(None);
                if operand.value_type.is_some_and(|value_type| !value_type.is_reference()) {
                    self.operands.refuse(Invalid::TypeMismatch);
                }
                let slot = self.operands.slot(operand);
                self.operands.produce_truth(isa::I32_EQ_SZ, &[slot]);
            }
            _ => {
                let start = self.reader;
                let function = self.reader.u32()?;
                if function as usize >= self.module.functions.len() {
                    return start.error(Invalid::UnknownFunction);
                }
                if !self.module.is_declared(function) {
                    return start.error(Invalid::UndeclaredReference);
                }
                self.operands.push_constant(FuncRef, function as i32 + 1);
            }
        }
        Ok(())
    }

    pub(super) fn table(&mut self) -> Checked<(u16, Table)> {
        let start = self.reader;
        let index = self.reader.u32()?;
        match self.module.tables.get(index as usize) {
            Some(&table) => Ok((index as u16, table)),
            None => start.error(Invalid::UnknownTable),
        }
    }
}

/// Names the proposal that an opcode belongs to, if it is one that this engine does not have.
fn unknown(opcode: u8) -> TranslateErrorKind {
    match opcode {
        0x06..=0x0A | 0x18 | 0x19 | 0x1F => Feature::Exceptions.into(),
        0x14 | 0x15 | 0xD3..=0xD6 => Feature::FunctionReferences.into(),
        0xE0..=0xE6 => Feature::StackSwitching.into(),
        0xFB => Feature::GarbageCollection.into(),
        0xFD => Feature::Simd.into(),
        0xFE => Feature::Threads.into(),
        _ => Malformed::Opcode.into(),
    }
}
