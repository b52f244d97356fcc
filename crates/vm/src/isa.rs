//! The image's instruction set: opcodes, operand layouts and mnemonics, generated from `build/isa.rs`.

use alloc::{format, string::String};

/// The generated part. Opcodes are a row: most are reached by counting from the first of their family.
#[allow(dead_code)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/isa.rs"));
}
pub(crate) use generated::*;

/// An opcode unit holds the opcode times this: an offset into a table of 32-bit handlers.
pub(crate) const OPCODE_SCALE: u16 = 4;

/// Units of a fixed stretch of code without a fuel check, at most: see `interpreter`.
pub(crate) const WINDOW_UNITS: usize = 128;

const fn relative(opcode: u16, first: u16, last: u16) -> Option<u16> {
    if opcode >= first && opcode <= last { Some(opcode - first) } else { None }
}

/// The branch on the comparison `opcode`, or on its opposite.
pub(crate) fn branch_on(opcode: u16, negate: bool) -> Option<u16> {
    let index = relative(opcode, I32_EQ_SS, I64_NE_SZ)?;
    Some(BR_I32_EQ_SS + (index ^ negate as u16))
}

/// The opposite of the comparison `opcode`.
pub(crate) fn opposite(opcode: u16) -> Option<u16> {
    let index = relative(opcode, I32_EQ_SS, I64_NE_SZ)?;
    Some(I32_EQ_SS + (index ^ 1))
}

/// Whether an instruction looks at the fuel whichever way it goes.
pub(crate) fn looks_at_fuel(opcode: u16) -> bool {
    relative(opcode, BR, RETURN64_S).is_some()
}

/// Whether an instruction is a branch that may not be taken; its last unit is the displacement.
pub(crate) fn is_branch_on_condition(opcode: u16) -> bool {
    relative(opcode, BR_I32_EQ_SS, BR_I64_NE_SZ).is_some()
}

/// Reads the unit at `at`, if there is one.
pub(crate) fn unit_at(code: &[u8], at: usize) -> Option<u16> {
    let bytes = code.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// Units of each displacement that follows the operands of a table; zero for other instructions.
pub(crate) fn table_units(opcode: u16) -> usize {
    match opcode {
        BR_TABLE_S | BR_TABLE_A => 1,
        BR_TABLE_FAR_S => 2,
        _ => 0,
    }
}

/// Opcode and length in bytes of the instruction at `at`, if it is whole and known.
pub(crate) fn instruction_at(code: &[u8], at: usize) -> Option<(u16, usize)> {
    let unit = unit_at(code, at)?;
    let opcode = unit / OPCODE_SCALE;
    if unit % OPCODE_SCALE != 0 || opcode as usize >= COUNT {
        return None;
    }
    let mut units = units(opcode);
    units += table_units(opcode) * unit_at(code, at + (units - 1) * 2)? as usize;
    let end = at.checked_add(units * 2)?;
    (end <= code.len()).then_some((opcode, units * 2))
}

/// Every instruction in the order of its opcode: mnemonic, letters of its operands (see the head of
/// `docs/vm-instructions.md`), units, and units of fuel beside them.
pub fn instruction_set() -> impl Iterator<Item = (&'static str, &'static str, usize, u32)> {
    MNEMONICS.iter().zip(0..).map(|(mnemonic, opcode)| {
        let layout = core::str::from_utf8(layout(opcode)).unwrap_or_default();
        (*mnemonic, layout, units(opcode), surcharge_bytes(opcode) / 2)
    })
}

/// The instruction at `at` as text, with its length in bytes; `None` at the end or in damaged code.
pub fn disassemble(code: &[u8], at: usize) -> Option<(String, usize)> {
    let (opcode, length) = instruction_at(code, at)?;
    let mut text = String::from(MNEMONICS[opcode as usize]);
    let mut operand = at + 2;
    for letter in layout(opcode) {
        let low = unit_at(code, operand)?;
        operand += 2;
        let mut wide = || -> Option<u32> {
            let high = unit_at(code, operand)?;
            operand += 2;
            Some(low as u32 | (high as u32) << 16)
        };
        text += &match letter {
            b's' | b'd' | b'l' => format!(" [{}]", low / 8),
            b'i' => format!(" {}", low as i16),
            b'j' => format!(" {}", wide()? as i32),
            b'k' => {
                let first = wide()? as u64;
                let second =
                    unit_at(code, operand)? as u64 | (unit_at(code, operand + 2)? as u64) << 16;
                operand += 4;
                format!(" {}", (first | second << 32) as i64)
            }
            b't' => format!(" -> {}", operand as isize + low as i16 as isize),
            b'T' => {
                let displacement = wide()? as i32 as isize;
                format!(" -> {}", operand as isize + displacement)
            }
            b'r' => format!(" +{low}"),
            b'f' => format!(" frame+{}", low / 8),
            _ => format!(" #{low}"),
        };
    }
    let entry_units = table_units(opcode);
    while operand < at + length {
        let mut displacement = unit_at(code, operand)? as i16 as isize;
        if entry_units == 2 {
            let high = unit_at(code, operand + 2)? as i16 as isize;
            displacement = (displacement & 0xFFFF) | high << 16;
        }
        operand += entry_units * 2;
        text += &format!(" -> {}", operand as isize + displacement);
    }
    Some((text, length))
}
