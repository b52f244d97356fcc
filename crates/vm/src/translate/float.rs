//! Floating-point arithmetic of a body.

use super::arithmetic::Arithmetic;
use crate::{
    error::Malformed,
    isa,
    value::ValueType::{self, F32, F64, I32, I64},
};

/// Instructions of one float type in the image: from `add` to the last comparison.
const ROW: u16 = isa::F64_ADD - isa::F32_ADD;

impl Arithmetic<'_, '_> {
    pub(super) fn float(self, opcode: u8) {
        match opcode {
            0x5B..=0x60 => self.float_comparison(F32, opcode - 0x5B),
            0x61..=0x66 => self.float_comparison(F64, opcode - 0x61),
            0x8B..=0x91 => self.unary(isa::F32_ABS + opcode as u16 - 0x8B, F32, F32),
            0x92..=0x98 => self.binary(isa::F32_ADD + opcode as u16 - 0x92, F32, F32),
            0x99..=0x9F => self.unary(isa::F32_ABS + ROW + opcode as u16 - 0x99, F64, F64),
            0xA0..=0xA6 => self.binary(isa::F32_ADD + ROW + opcode as u16 - 0xA0, F64, F64),
            0xA8..=0xAB => self.truncation(I32, opcode - 0xA8, false),
            0xAE..=0xB1 => self.truncation(I64, opcode - 0xAE, false),
            0xB2..=0xB5 => self.conversion(isa::F32_CONVERT_I32_S, opcode - 0xB2, F32),
            0xB6 => self.unary(isa::F32_DEMOTE_F64, F64, F32),
            0xB7..=0xBA => self.conversion(isa::F64_CONVERT_I32_S, opcode - 0xB7, F64),
            0xBB => self.unary(isa::F64_PROMOTE_F32, F32, F64),
            0xBC => self.retype(F32, I32),
            0xBD => self.retype(F64, I64),
            0xBE => self.retype(I32, F32),
            0xBF => self.retype(I64, F64),
            _ => self.0.refuse(Malformed::Opcode),
        }
    }

    /// Float to integer; `variant`: from f32 signed, unsigned, from f64 signed, unsigned.
    pub(super) fn truncation(self, to: ValueType, variant: u8, saturating: bool) {
        let first = if to == I32 { isa::I32_TRUNC_F32_S } else { isa::I64_TRUNC_F32_S };
        let from = if variant < 2 { F32 } else { F64 };
        self.unary(first + variant as u16 * 2 + saturating as u16, from, to)
    }

    /// Integer to float; `variant`: from i32 signed, unsigned, from i64 signed, unsigned.
    fn conversion(self, first: u16, variant: u8, to: ValueType) {
        self.unary(first + variant as u16, if variant < 2 { I32 } else { I64 }, to)
    }

    /// eq ne lt gt le ge; gt and le exchange their operands.
    fn float_comparison(self, value_type: ValueType, comparison: u8) {
        let second = self.0.pop(Some(value_type));
        let first = self.0.pop(Some(value_type));
        let (a, b) = (self.0.slot(first), self.0.slot(second));
        let row = isa::F32_EQ + if value_type == F64 { ROW } else { 0 };
        let (index, a, b) = match comparison {
            0 => (0, a, b),
            1 => (1, a, b),
            2 => (2, a, b),
            3 => (2, b, a),
            4 => (3, b, a),
            _ => (3, a, b),
        };
        self.0.produce_sealed(row + index, &[a, b], I32);
    }
}
