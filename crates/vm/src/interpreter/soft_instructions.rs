//! The floating-point instructions where they are software: one function for all of them.
//!
//! They stand in rows in the order of `build/float.rs`, which gives each its number.

use super::{
    soft::{self, Integer},
    state::{Flow, State},
};
use crate::isa;

/// Instructions of one float type: from `add` to the last comparison.
const ROW: u16 = isa::F64_ADD - isa::F32_ADD;
const COPYSIGN: u16 = isa::F32_COPYSIGN - isa::F32_ADD;
const ABS: u16 = isa::F32_ABS - isa::F32_ADD;
const NEG: u16 = isa::F32_NEG - isa::F32_ADD;
const CEIL: u16 = isa::F32_CEIL - isa::F32_ADD;
const EQ: u16 = isa::F32_EQ - isa::F32_ADD;

/// Executes the instruction at `pc`, one of floats.
///
/// # Safety
/// As for all instructions: see the head of `interpreter`.
#[inline(always)]
pub(super) unsafe fn execute(s: &mut State) -> Flow {
    // SAFETY: the caller's promise; each reads and writes what its layout says.
    unsafe {
        let opcode = s.opcode();
        if opcode < isa::I32_TRUNC_F32_S {
            let nth = opcode - isa::F32_ADD;
            return if nth < ROW {
                arithmetic(s, nth, false)
            } else {
                arithmetic(s, nth - ROW, true)
            };
        }
        let outcome = if opcode < isa::F32_CONVERT_I32_S {
            truncate(s, opcode - isa::I32_TRUNC_F32_S)
        } else {
            Ok(convert(s, opcode - isa::F32_CONVERT_I32_S))
        };
        match outcome {
            Ok((bits, wide)) => end(s, 2, bits, wide),
            Err(flow) => flow,
        }
    }
}

/// The bits in the slot that unit `n` names.
#[inline(always)]
unsafe fn bits(s: &State, n: usize, wide: bool) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { if wide { s.read64(n) } else { s.read32(n) as u64 } }
}

fn widened(bits: u64, wide: bool) -> u64 {
    if wide { bits } else { soft::widen(bits as u32) }
}

/// Ends an instruction whose last unit, `n`, names the slot of its result.
#[inline(always)]
unsafe fn end(s: &mut State, n: usize, bits: u64, wide: bool) -> Flow {
    // SAFETY: the caller's promise.
    unsafe {
        s.write32(n, bits as u32);
        if wide {
            s.write64(n, bits);
        }
        s.advance(n + 1)
    }
}

/// `nth` in its row.
#[inline(always)]
unsafe fn arithmetic(s: &mut State, nth: u16, wide: bool) -> Flow {
    let sign = if wide { 1 << 63 } else { 1 << 31 };
    // SAFETY: the caller's promise.
    unsafe {
        let a = bits(s, 1, wide);
        if (ABS..EQ).contains(&nth) {
            let result = match nth {
                // What looks at the sign alone keeps a NaN's bits.
                ABS => a & !sign,
                NEG => a ^ sign,
                _ => narrowed(soft::unary(nth - CEIL, widened(a, wide)), wide),
            };
            return end(s, 2, result, wide);
        }
        let b = bits(s, 2, wide);
        let result = if nth == COPYSIGN {
            (a & !sign) | (b & sign)
        } else {
            let (a, b) = (widened(a, wide), widened(b, wide));
            if nth >= EQ {
                s.accumulator = soft::compare(nth - EQ, a, b) as u32;
                return s.advance(3);
            }
            narrowed(soft::binary(nth, a, b), wide)
        };
        end(s, 3, result, wide)
    }
}

fn narrowed(bits: u64, wide: bool) -> u64 {
    if wide { bits } else { soft::narrow(bits) as u64 }
}

/// Of one shape there are four: signed, signed and saturating, unsigned, unsigned and saturating.
#[inline(always)]
unsafe fn truncate(s: &State, nth: u16) -> Result<(u64, bool), Flow> {
    let (from_wide, wide) = (nth & 4 != 0, nth >= 8);
    let to = Integer { wide, signed: nth & 2 == 0, saturating: nth & 1 != 0 };
    // SAFETY: the caller's promise.
    let bits = unsafe { bits(s, 1, from_wide) };
    Ok((soft::truncate(widened(bits, from_wide), to)?, wide))
}

/// Of one shape there are two, signed and unsigned; the last two change the width of a float.
#[inline(always)]
unsafe fn convert(s: &State, nth: u16) -> (u64, bool) {
    // SAFETY: the caller's promise.
    let bits = unsafe { bits(s, 1, nth & 2 != 0 || nth == DEMOTE) };
    match nth {
        DEMOTE => (soft::narrow(bits) as u64, false),
        PROMOTE => (soft::widen(bits as u32), true),
        _ => {
            let (wide, signed) = (nth >= 4, nth & 1 == 0);
            let integer = if signed && nth & 2 == 0 { bits as i32 as u64 } else { bits };
            (soft::convert(integer, signed, wide), wide)
        }
    }
}

const DEMOTE: u16 = isa::F32_DEMOTE_F64 - isa::F32_CONVERT_I32_S;
const PROMOTE: u16 = isa::F64_PROMOTE_F32 - isa::F32_CONVERT_I32_S;
