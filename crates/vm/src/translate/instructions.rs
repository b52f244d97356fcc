//! One instruction of a body: checked, and turned into image code (wasm 2.0 §5.4).

use super::{
    function::{Body, Kind, Stop},
    operands::{Popped, Source},
};
use crate::{
    error::{Feature, Invalid, Malformed, TranslateErrorKind},
    isa,
    value::ValueType::{self, F32, F64, FuncRef, I32, I64},
    wasm::{Checked, Table, block_type, value_type},
};

/// Place of wasm's comparisons (eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u) among the image's.
const COMPARISON: [u16; 10] = [0, 1, 2, 4, 6, 8, 7, 9, 3, 5];
const LT_S: u16 = 2;
const GE_S: u16 = 3;
const LT_U: u16 = 4;
const GE_U: u16 = 5;
/// The comparison with its operands exchanged.
const EXCHANGED: [u16; 10] = [0, 1, 6, 7, 8, 9, 2, 3, 4, 5];

/// Instructions with every operand form stand in rows of this many.
const FORMS: u16 = 8;
const FORM_AS: u16 = 2;
const FORM_SI: u16 = 4;
const FORM_AI: u16 = 6;

impl Body<'_, '_> {
    /// Reads, checks and translates one instruction.
    pub(super) fn instruction(&mut self) -> Result<(), Stop> {
        let start = self.reader;
        let opcode = self.reader.byte()?;
        match opcode {
            0x00 => self.set_unreachable(),
            0x01 => {}
            0x02 | 0x03 => {
                let signature = block_type(&mut self.reader, self.module)?;
                self.block(if opcode == 0x02 { Kind::Block } else { Kind::Loop }, signature)?;
            }
            0x04 => {
                let signature = block_type(&mut self.reader, self.module)?;
                self.if_block(signature)?;
            }
            0x05 => self.else_arm()?,
            0x0B => self.end()?,
            0x0C => self.br()?,
            0x0D => self.br_if()?,
            0x0E => self.br_table()?,
            0x0F => self.return_from_body()?,
            0x10..=0x13 => self.call_instruction(opcode)?,
            0x1A => drop(self.pop(None)),
            0x1B | 0x1C => self.select(opcode == 0x1C)?,
            0x20..=0x24 => self.variable(opcode)?,
            0x25 | 0x26 => self.table_access(opcode == 0x25)?,
            0x28..=0x3E => self.memory_access(opcode)?,
            0x3F | 0x40 => self.memory_size(opcode == 0x40)?,
            0x41..=0x44 => self.constant(opcode)?,
            0x45..=0xC4 => self.numeric(opcode),
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
                self.push_local(value_type, slot);
            }
            0x21 | 0x22 => {
                let (value_type, slot) = self.local()?;
                let value = self.pop(Some(value_type));
                self.set_local(value, slot);
                if opcode == 0x22 {
                    self.push_local(value_type, slot);
                }
            }
            0x23 => {
                let (index, value_type, _) = self.global()?;
                if value_type.is_wide() {
                    self.produce_slot(isa::GLOBAL_GET64_S, &[index], value_type);
                } else {
                    self.produce(isa::GLOBAL_GET32_A, &[index], value_type);
                }
            }
            _ => {
                let (index, value_type, mutable) = self.global()?;
                if !mutable {
                    return self.reader.error(Invalid::ImmutableGlobal);
                }
                let value = self.pop(Some(value_type));
                if value_type.is_wide() {
                    let slot = self.slot(value);
                    self.perform(isa::GLOBAL_SET64_S, &[slot, index]);
                } else if self.is_in_accumulator(value) {
                    self.perform(isa::GLOBAL_SET32_A, &[index]);
                } else {
                    let slot = self.slot(value);
                    self.perform(isa::GLOBAL_SET32_S, &[slot, index]);
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
            Ok(value) => self.push_constant(value_type, value),
            Err(_) => {
                let unit = |index: u32| (bits >> (16 * index)) as u16;
                self.produce_slot(isa::CONST64, &[unit(0), unit(1), unit(2), unit(3)], value_type)
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
        let condition = self.pop(Some(I32));
        let second = self.pop(expected);
        let first = self.pop(expected.or(second.value_type));
        let found = expected.or(first.value_type).or(second.value_type);
        if !typed && found.is_some_and(|value_type| value_type.is_reference()) {
            return self.reader.error(Invalid::TypeMismatch);
        }
        let Some(result) = found else {
            self.push_temporary(None);
            return Ok(());
        };
        let (a, b) = (self.slot(first), self.slot(second));
        let wide = result.is_wide();
        if self.is_in_accumulator(condition) {
            match wide {
                true => self.produce_slot(isa::SELECT64_A_S, &[a, b], result),
                false => self.produce(isa::SELECT32_A_A, &[a, b], result),
            }
        } else {
            let c = self.slot(condition);
            match wide {
                true => self.produce_slot(isa::SELECT64_S_S, &[a, b, c], result),
                false => self.produce(isa::SELECT32_S_A, &[a, b, c], result),
            }
        }
        Ok(())
    }

    fn numeric(&mut self, opcode: u8) {
        match opcode {
            0x45 => self.i32_eqz(),
            0x46..=0x4F => self.i32_comparison(COMPARISON[opcode as usize - 0x46]),
            0x50 => {
                let operand = self.pop(Some(I64));
                let slot = self.slot(operand);
                self.produce_truth(isa::I64_EQ_SZ, &[slot])
            }
            0x51..=0x5A => self.i64_comparison(COMPARISON[opcode as usize - 0x51]),
            0x67..=0x69 => self.unary(isa::I32_CLZ + opcode as u16 - 0x67, I32, I32),
            0x6A..=0x78 => self.i32_binary(opcode),
            0x79..=0x7B => self.unary(isa::I64_CLZ + opcode as u16 - 0x79, I64, I64),
            0x7C..=0x8A => self.i64_binary(opcode),
            0xA7 => self.retype(I64, I32),
            0xAC => self.unary(isa::I64_EXTEND_I32_S, I32, I64),
            0xAD => self.unary(isa::I64_EXTEND_I32_U, I32, I64),
            0xC0 => self.i32_extend(isa::I32_EXTEND8_S_S_A),
            0xC1 => self.i32_extend(isa::I32_EXTEND16_S_S_A),
            0xC2..=0xC4 => self.unary(isa::I64_EXTEND8_S + opcode as u16 - 0xC2, I64, I64),
            _ if !cfg!(feature = "float") => self.refuse(Feature::Floats),
            _ => self.float(opcode),
        }
    }

    pub(super) fn unary(&mut self, opcode: u16, from: ValueType, to: ValueType) {
        let operand = self.pop(Some(from));
        let slot = self.slot(operand);
        self.produce_slot(opcode, &[slot], to)
    }

    /// The same bits under another type: no code.
    pub(super) fn retype(&mut self, from: ValueType, to: ValueType) {
        let operand = self.pop(Some(from));
        self.push_back(operand, Some(to))
    }

    pub(super) fn binary(&mut self, opcode: u16, value_type: ValueType, result: ValueType) {
        let second = self.pop(Some(value_type));
        let first = self.pop(Some(value_type));
        let (a, b) = (self.slot(first), self.slot(second));
        self.produce_slot(opcode, &[a, b], result)
    }

    fn i32_extend(&mut self, opcode: u16) {
        let operand = self.pop(Some(I32));
        if self.is_in_accumulator(operand) {
            self.produce(opcode + 2, &[], I32)
        } else {
            let slot = self.slot(operand);
            self.produce(opcode, &[slot], I32)
        }
    }

    fn i32_binary(&mut self, opcode: u8) {
        let second = self.pop(Some(I32));
        let first = self.pop(Some(I32));
        // add sub mul | div_s div_u rem_s rem_u | and or xor shl shr_s shr_u rotl | rotr
        let hot = match opcode {
            0x6A..=0x6C => opcode as u16 - 0x6A,
            0x71..=0x77 => opcode as u16 - 0x71 + 3,
            0x78 => {
                if let Source::Constant(by) = self.source(second) {
                    let rotl = isa::I32_ADD_SS_A + 9 * FORMS;
                    return self.i32_forms(rotl, first, Source::Constant(32 - (by & 31)), second);
                }
                return self.i32_cold(isa::I32_ROTR_SS_A, first, second);
            }
            _ => {
                let cold = isa::I32_DIV_S_SS_A + (opcode as u16 - 0x6D) * 2;
                return self.i32_cold(cold, first, second);
            }
        };
        let row = isa::I32_ADD_SS_A + hot * FORMS;
        let commutative = matches!(hot, 0 | 2..=5);
        let (mut a, mut b) = (first, second);
        let left_constant = matches!(self.source(a), Source::Constant(_));
        let right_accumulator =
            self.source(b) == Source::Accumulator && self.source(a) != Source::Accumulator;
        if commutative && (left_constant || right_accumulator) {
            (a, b) = (b, a);
        }
        match (hot, self.source(b)) {
            // a - c = a + (-c)
            (1, Source::Constant(value)) => {
                self.i32_forms(isa::I32_ADD_SS_A, a, Source::Constant(value.wrapping_neg()), b)
            }
            (_, source) => self.i32_forms(row, a, source, b),
        }
    }

    fn i32_cold(&mut self, opcode: u16, first: Popped, second: Popped) {
        let (a, b) = (self.slot(first), self.slot(second));
        self.produce(opcode, &[a, b], I32)
    }

    /// Emits the shortest form of the operation whose row begins at `row`. `right` is how `second` is
    /// best read, or a constant that stands for it.
    fn i32_forms(&mut self, row: u16, first: Popped, right: Source, second: Popped) {
        if let Source::Constant(value) = right
            && let Ok(value) = i16::try_from(value)
        {
            return if self.is_in_accumulator(first) {
                self.produce(row + FORM_AI, &[value as u16], I32)
            } else {
                let a = self.slot(first);
                self.produce(row + FORM_SI, &[a, value as u16], I32)
            };
        }
        if let Source::Constant(value) = right {
            // Too long for an operand.
            if !self.is_in_accumulator(first) && is_commutative(row) {
                let a = self.slot(first);
                self.constant_to_accumulator(value);
                return self.produce(row + FORM_AS, &[a], I32);
            }
            let own = self.slot_for_constant(second, value);
            return self.produce_left(row, first, own);
        }
        if right == Source::Accumulator
            && !self.is_in_accumulator(first)
            && let Some(opcode) = slot_accumulator(row)
        {
            let a = self.slot(first);
            return self.produce(opcode, &[a], I32);
        }
        let b = self.slot(second);
        self.produce_left(row, first, b)
    }

    fn produce_left(&mut self, row: u16, first: Popped, right: u16) {
        if self.is_in_accumulator(first) {
            self.produce(row + FORM_AS, &[right], I32)
        } else {
            let a = self.slot(first);
            self.produce(row, &[a, right], I32)
        }
    }

    fn i32_eqz(&mut self) {
        let operand = self.pop(Some(I32));
        if self.is_fresh_truth(operand) {
            self.emitter.negate_comparison();
            return self.push_back(operand, Some(I32));
        }
        if self.is_in_accumulator(operand) {
            self.produce_truth(isa::I32_EQ_AZ, &[])
        } else {
            let slot = self.slot(operand);
            self.produce_truth(isa::I32_EQ_SZ, &[slot])
        }
    }

    fn i32_comparison(&mut self, comparison: u16) {
        let second = self.pop(Some(I32));
        let first = self.pop(Some(I32));
        let (mut a, mut b, mut comparison) = (first, second, comparison);
        let left_constant = matches!(self.source(a), Source::Constant(_));
        let right_accumulator = self.source(b) == Source::Accumulator;
        if left_constant || (right_accumulator && self.source(a) != Source::Accumulator) {
            (a, b, comparison) = (b, a, EXCHANGED[comparison as usize]);
        }
        if let Source::Constant(value) = self.source(b)
            && let Some((comparison, value)) = with_immediate(comparison, value)
        {
            return match (self.is_in_accumulator(a), value) {
                (true, 0) if comparison < 2 => self.produce_truth(isa::I32_EQ_AZ + comparison, &[]),
                (true, _) => self.produce_truth(isa::I32_EQ_AI + comparison, &[value as u16]),
                (false, 0) if comparison < 2 => {
                    let a = self.slot(a);
                    self.produce_truth(isa::I32_EQ_SZ + comparison, &[a])
                }
                (false, _) => {
                    let a = self.slot(a);
                    self.produce_truth(isa::I32_EQ_SI + comparison, &[a, value as u16])
                }
            };
        }
        let right = self.slot(b);
        if self.is_in_accumulator(a) {
            return self.produce_truth(isa::I32_EQ_AS + comparison, &[right]);
        }
        let left = self.slot(a);
        self.produce_slots_truth(isa::I32_EQ_SS, comparison, left, right)
    }

    /// Of two slots there are only six comparisons; the others exchange their operands.
    fn produce_slots_truth(&mut self, row: u16, comparison: u16, a: u16, b: u16) {
        if comparison < 6 {
            self.produce_truth(row + comparison, &[a, b])
        } else {
            self.produce_truth(row + EXCHANGED[comparison as usize], &[b, a])
        }
    }

    fn i64_comparison(&mut self, comparison: u16) {
        let second = self.pop(Some(I64));
        let first = self.pop(Some(I64));
        if let Source::Constant(value) = self.source(second)
            && let Some((comparison, value)) = with_immediate(comparison, value)
        {
            let a = self.slot(first);
            return if value == 0 && comparison < 2 {
                self.produce_truth(isa::I64_EQ_SZ + comparison, &[a])
            } else {
                self.produce_truth(isa::I64_EQ_SI + comparison, &[a, value as u16])
            };
        }
        let (a, b) = (self.slot(first), self.slot(second));
        self.produce_slots_truth(isa::I64_EQ_SS, comparison, a, b)
    }

    fn i64_binary(&mut self, opcode: u8) {
        let second = self.pop(Some(I64));
        let first = self.pop(Some(I64));
        let hot = match opcode {
            0x7C..=0x7E => opcode as u16 - 0x7C,
            0x83..=0x89 => opcode as u16 - 0x83 + 3,
            _ => {
                let cold = if opcode == 0x8A { 0 } else { 1 + (opcode as u16 - 0x7F) };
                let (a, b) = (self.slot(first), self.slot(second));
                return self.produce_slot(isa::I64_ROTR_SS_S + cold, &[a, b], I64);
            }
        };
        let row = isa::I64_ADD_SS_S + hot * 2;
        let commutative = matches!(hot, 0 | 2..=5);
        let (mut a, mut b) = (first, second);
        if commutative && matches!(self.source(a), Source::Constant(_)) {
            (a, b) = (b, a);
        }
        if let Source::Constant(value) = self.source(b)
            && let Ok(value) = i16::try_from(value)
        {
            let a = self.slot(a);
            return self.produce_slot(row + 1, &[a, value as u16], I64);
        }
        let (a, b) = (self.slot(a), self.slot(b));
        self.produce_slot(row, &[a, b], I64)
    }

    fn reference(&mut self, opcode: u8) -> Checked<()> {
        match opcode {
            0xD0 => match value_type(&mut self.reader)? {
                reference if reference.is_reference() => self.push_constant(reference, 0),
                _ => self.refuse(Malformed::ReferenceType),
            },
            0xD1 => {
                let operand = self.pop(None);
                if operand.value_type.is_some_and(|value_type| !value_type.is_reference()) {
                    self.refuse(Invalid::TypeMismatch);
                }
                let slot = self.slot(operand);
                self.produce_truth(isa::I32_EQ_SZ, &[slot]);
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
                self.push_constant(FuncRef, function as i32 + 1);
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

fn is_commutative(row: u16) -> bool {
    matches!((row - isa::I32_ADD_SS_A) / FORMS, 0 | 2..=5)
}

/// The form of an operation whose right operand is the accumulator, where there is one.
fn slot_accumulator(row: u16) -> Option<u16> {
    Some(match (row - isa::I32_ADD_SS_A) / FORMS {
        1 => isa::I32_SUB_SA_A,
        6 => isa::I32_SHL_SA_A,
        7 => isa::I32_SHR_S_SA_A,
        8 => isa::I32_SHR_U_SA_A,
        _ => return None,
    })
}

/// A comparison with a constant as one of the first six with a 16-bit constant, if possible:
/// `a > c` is `a >= c + 1`.
fn with_immediate(comparison: u16, value: i32) -> Option<(u16, i16)> {
    let (comparison, value) = match comparison {
        6 => (GE_S, value.checked_add(1)?),
        7 => (LT_S, value.checked_add(1)?),
        8 | 9 if value == -1 => return None,
        8 => (GE_U, value.wrapping_add(1)),
        9 => (LT_U, value.wrapping_add(1)),
        other => (other, value),
    };
    Some((comparison, i16::try_from(value).ok()?))
}

/// Names the proposal that an opcode belongs to, if it is one that this engine does not have.
fn unknown(opcode: u8) -> TranslateErrorKind {
    match opcode {
        0x06..=0x0A | 0x18 | 0x19 | 0x1F => Feature::Exceptions.into(),
        0x14 | 0x15 | 0xD3..=0xD6 => Feature::FunctionReferences.into(),
        0xFB => Feature::GarbageCollection.into(),
        0xFD => Feature::Simd.into(),
        0xFE => Feature::Threads.into(),
        _ => Malformed::Opcode.into(),
    }
}
