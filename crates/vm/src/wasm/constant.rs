//! Constant expressions (wasm 2.0 §3.3.10, with the arithmetic of the extended-const proposal).
//!
//! All of them are evaluated while translating: imported globals are constants here.

use super::{
    module::Module,
    reader::{Checked, Reader},
    types::null_type,
};
use crate::{
    error::{Feature, Invalid, Malformed},
    value::ValueType,
};

/// Operands that a constant expression may hold at a time.
const DEPTH_MAX: usize = 16;

/// Evaluates an expression of type `expected`, up to and with its `end`; the value comes as a slot.
pub(crate) fn constant(
    reader: &mut Reader<'_>,
    expected: ValueType,
    module: &Module<'_>,
) -> Checked<u64> {
    let mut stack = [(0u64, ValueType::I32); DEPTH_MAX];
    let mut depth = 0;
    loop {
        let opcode = reader.byte()?;
        let operand = match opcode {
            0x0B => break,
            0x41 => (reader.i32()? as u32 as u64, ValueType::I32),
            0x42 => (reader.i64()? as u64, ValueType::I64),
            0x43 => (float(reader, 4)?, ValueType::F32),
            0x44 => (float(reader, 8)?, ValueType::F64),
            0x23 => global(reader, module)?,
            0xD0 => (0, null_type(reader)?),
            0xD2 => {
                let function = reader.u32()?;
                if function as usize >= module.functions.len() {
                    return reader.error(Invalid::UnknownFunction);
                }
                (function as u64 + 1, ValueType::FuncRef)
            }
            0x6A..=0x6C | 0x7C..=0x7E if depth >= 2 => {
                depth -= 2;
                match arithmetic(opcode, stack[depth], stack[depth + 1]) {
                    Some(result) => result,
                    None => return reader.error(Invalid::TypeMismatch),
                }
            }
            0x6A..=0x6C | 0x7C..=0x7E => return reader.error(Invalid::TypeMismatch),
            _ => return reader.error(Invalid::ConstantRequired),
        };
        if depth == DEPTH_MAX {
            return reader.error(Malformed::ConstantExpression);
        }
        stack[depth] = operand;
        depth += 1;
    }
    if depth != 1 || stack[0].1 != expected {
        return reader.error(Invalid::TypeMismatch);
    }
    Ok(stack[0].0)
}

fn float(reader: &mut Reader<'_>, bytes: usize) -> Checked<u64> {
    if !cfg!(feature = "float") {
        return reader.error(Feature::Floats);
    }
    let mut buffer = [0; 8];
    buffer[..bytes].copy_from_slice(reader.take(bytes)?);
    Ok(u64::from_le_bytes(buffer))
}

fn global(reader: &mut Reader<'_>, module: &Module<'_>) -> Checked<(u64, ValueType)> {
    let index = reader.u32()?;
    match module.globals.get(index as usize) {
        Some(global) if global.mutable => reader.error(Invalid::ConstantRequired),
        // One of its own came with that proposal.
        Some(_) if index >= module.imported_globals => reader.error(Feature::GarbageCollection),
        Some(global) => Ok((global.initial, global.value_type)),
        None => reader.error(Invalid::UnknownGlobal),
    }
}

fn arithmetic(opcode: u8, a: (u64, ValueType), b: (u64, ValueType)) -> Option<(u64, ValueType)> {
    let value_type = if opcode < 0x7C { ValueType::I32 } else { ValueType::I64 };
    if a.1 != value_type || b.1 != value_type {
        return None;
    }
    let result = match opcode {
        0x6A | 0x7C => a.0.wrapping_add(b.0),
        0x6B | 0x7D => a.0.wrapping_sub(b.0),
        _ => a.0.wrapping_mul(b.0),
    };
    Some((if value_type == ValueType::I32 { result as u32 as u64 } else { result }, value_type))
}
