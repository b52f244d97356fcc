//! Arithmetic of a body: instructions that know nothing but their operands.

use super::operands::{Operands, Popped, Source};
use crate::{
    error::Feature,
    isa,
    value::ValueType::{self, I32, I64},
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

/// The operands, lent for one instruction.
pub(super) struct Arithmetic<'b, 'w>(pub(super) &'b mut Operands<'w>);

impl Arithmetic<'_, '_> {
    /// Translates the instruction with this opcode, one of 0x45 to 0xC4.
    pub(super) fn numeric(self, opcode: u8) {
        match opcode {
            0x45 => self.i32_eqz(),
            0x46..=0x4F => self.i32_comparison(COMPARISON[opcode as usize - 0x46]),
            0x50 => {
                let operand = self.0.pop(Some(I64));
                let slot = self.0.slot(operand);
                self.0.produce_truth(isa::I64_EQ_SZ, &[slot])
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
            _ if !cfg!(feature = "float") => self.0.refuse(Feature::Floats),
            _ => self.float(opcode),
        }
    }

    pub(super) fn unary(self, opcode: u16, from: ValueType, to: ValueType) {
        let operand = self.0.pop(Some(from));
        let slot = self.0.slot(operand);
        self.0.produce_slot(opcode, &[slot], to)
    }

    /// The same bits under another type: no code.
    pub(super) fn retype(self, from: ValueType, to: ValueType) {
        let operand = self.0.pop(Some(from));
        self.0.push_back(operand, Some(to))
    }

    pub(super) fn binary(self, opcode: u16, value_type: ValueType, result: ValueType) {
        let second = self.0.pop(Some(value_type));
        let first = self.0.pop(Some(value_type));
        let (a, b) = (self.0.slot(first), self.0.slot(second));
        self.0.produce_slot(opcode, &[a, b], result)
    }

    fn i32_extend(self, opcode: u16) {
        let operand = self.0.pop(Some(I32));
        if self.0.is_in_accumulator(operand) {
            self.0.produce(opcode + 2, &[], I32)
        } else {
            let slot = self.0.slot(operand);
            self.0.produce(opcode, &[slot], I32)
        }
    }

    fn i32_binary(self, opcode: u8) {
        let second = self.0.pop(Some(I32));
        let first = self.0.pop(Some(I32));
        // add sub mul | div_s div_u rem_s rem_u | and or xor shl shr_s shr_u rotl | rotr
        let hot = match opcode {
            0x6A..=0x6C => opcode as u16 - 0x6A,
            0x71..=0x77 => opcode as u16 - 0x71 + 3,
            0x78 => {
                if let Source::Constant(by) = self.0.source(second) {
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
        let left_constant = matches!(self.0.source(a), Source::Constant(_));
        let right_accumulator =
            self.0.source(b) == Source::Accumulator && self.0.source(a) != Source::Accumulator;
        if commutative && (left_constant || right_accumulator) {
            (a, b) = (b, a);
        }
        match (hot, self.0.source(b)) {
            // a - c = a + (-c)
            (1, Source::Constant(value)) => {
                self.i32_forms(isa::I32_ADD_SS_A, a, Source::Constant(value.wrapping_neg()), b)
            }
            (_, source) => self.i32_forms(row, a, source, b),
        }
    }

    fn i32_cold(self, opcode: u16, first: Popped, second: Popped) {
        let (a, b) = (self.0.slot(first), self.0.slot(second));
        self.0.produce(opcode, &[a, b], I32)
    }

    /// Emits the shortest form of the operation whose row begins at `row`. `right` is how `second` is
    /// best read, or a constant that stands for it.
    fn i32_forms(self, row: u16, first: Popped, right: Source, second: Popped) {
        if let Source::Constant(value) = right
            && let Ok(value) = i16::try_from(value)
        {
            return if self.0.is_in_accumulator(first) {
                self.0.produce(row + FORM_AI, &[value as u16], I32)
            } else {
                let a = self.0.slot(first);
                self.0.produce(row + FORM_SI, &[a, value as u16], I32)
            };
        }
        if let Source::Constant(value) = right {
            // Too long for an operand.
            if !self.0.is_in_accumulator(first) && is_commutative(row) {
                let a = self.0.slot(first);
                self.0.constant_to_accumulator(value);
                return self.0.produce(row + FORM_AS, &[a], I32);
            }
            let own = self.0.slot_for_constant(second, value);
            return self.produce_left(row, first, own);
        }
        if right == Source::Accumulator
            && !self.0.is_in_accumulator(first)
            && let Some(opcode) = slot_accumulator(row)
        {
            let a = self.0.slot(first);
            return self.0.produce(opcode, &[a], I32);
        }
        let b = self.0.slot(second);
        self.produce_left(row, first, b)
    }

    fn produce_left(self, row: u16, first: Popped, right: u16) {
        if self.0.is_in_accumulator(first) {
            self.0.produce(row + FORM_AS, &[right], I32)
        } else {
            let a = self.0.slot(first);
            self.0.produce(row, &[a, right], I32)
        }
    }

    fn i32_eqz(self) {
        let operand = self.0.pop(Some(I32));
        if self.0.negate(operand) {
            return self.0.push_back(operand, Some(I32));
        }
        if self.0.is_in_accumulator(operand) {
            self.0.produce_truth(isa::I32_EQ_AZ, &[])
        } else {
            let slot = self.0.slot(operand);
            self.0.produce_truth(isa::I32_EQ_SZ, &[slot])
        }
    }

    fn i32_comparison(self, comparison: u16) {
        let second = self.0.pop(Some(I32));
        let first = self.0.pop(Some(I32));
        let (mut a, mut b, mut comparison) = (first, second, comparison);
        let left_constant = matches!(self.0.source(a), Source::Constant(_));
        let right_accumulator = self.0.source(b) == Source::Accumulator;
        if left_constant || (right_accumulator && self.0.source(a) != Source::Accumulator) {
            (a, b, comparison) = (b, a, EXCHANGED[comparison as usize]);
        }
        if let Source::Constant(value) = self.0.source(b)
            && let Some((comparison, value)) = with_immediate(comparison, value)
        {
            return match (self.0.is_in_accumulator(a), value) {
                (true, 0) if comparison < 2 => {
                    self.0.produce_truth(isa::I32_EQ_AZ + comparison, &[])
                }
                (true, _) => self.0.produce_truth(isa::I32_EQ_AI + comparison, &[value as u16]),
                (false, 0) if comparison < 2 => {
                    let a = self.0.slot(a);
                    self.0.produce_truth(isa::I32_EQ_SZ + comparison, &[a])
                }
                (false, _) => {
                    let a = self.0.slot(a);
                    self.0.produce_truth(isa::I32_EQ_SI + comparison, &[a, value as u16])
                }
            };
        }
        let right = self.0.slot(b);
        if self.0.is_in_accumulator(a) {
            return self.0.produce_truth(isa::I32_EQ_AS + comparison, &[right]);
        }
        let left = self.0.slot(a);
        self.produce_slots_truth(isa::I32_EQ_SS, comparison, left, right)
    }

    /// Of two slots there are only six comparisons; the others exchange their operands.
    fn produce_slots_truth(self, row: u16, comparison: u16, a: u16, b: u16) {
        if comparison < 6 {
            self.0.produce_truth(row + comparison, &[a, b])
        } else {
            self.0.produce_truth(row + EXCHANGED[comparison as usize], &[b, a])
        }
    }

    fn i64_comparison(self, comparison: u16) {
        let second = self.0.pop(Some(I64));
        let first = self.0.pop(Some(I64));
        if let Source::Constant(value) = self.0.source(second)
            && let Some((comparison, value)) = with_immediate(comparison, value)
        {
            let a = self.0.slot(first);
            return if value == 0 && comparison < 2 {
                self.0.produce_truth(isa::I64_EQ_SZ + comparison, &[a])
            } else {
                self.0.produce_truth(isa::I64_EQ_SI + comparison, &[a, value as u16])
            };
        }
        let (a, b) = (self.0.slot(first), self.0.slot(second));
        self.produce_slots_truth(isa::I64_EQ_SS, comparison, a, b)
    }

    fn i64_binary(self, opcode: u8) {
        let second = self.0.pop(Some(I64));
        let first = self.0.pop(Some(I64));
        let hot = match opcode {
            0x7C..=0x7E => opcode as u16 - 0x7C,
            0x83..=0x89 => opcode as u16 - 0x83 + 3,
            _ => {
                let cold = if opcode == 0x8A { 0 } else { 1 + (opcode as u16 - 0x7F) };
                let (a, b) = (self.0.slot(first), self.0.slot(second));
                return self.0.produce_slot(isa::I64_ROTR_SS_S + cold, &[a, b], I64);
            }
        };
        let row = isa::I64_ADD_SS_S + hot * 2;
        let commutative = matches!(hot, 0 | 2..=5);
        let (mut a, mut b) = (first, second);
        if commutative && matches!(self.0.source(a), Source::Constant(_)) {
            (a, b) = (b, a);
        }
        if let Source::Constant(value) = self.0.source(b)
            && let Ok(value) = i16::try_from(value)
        {
            let a = self.0.slot(a);
            return self.0.produce_slot(row + 1, &[a, value as u16], I64);
        }
        let (a, b) = (self.0.slot(a), self.0.slot(b));
        self.0.produce_slot(row, &[a, b], I64)
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
