//! Types of values in the binary format (wasm 2.0 §5.3.1 to §5.3.4).

use super::reader::{Checked, Reader};
use crate::{
    error::{Feature, Malformed, TranslateErrorKind},
    value::ValueType,
};

/// Reads a value type; names the proposal if it is one of a type that this engine does not have.
pub(crate) fn value_type(reader: &mut Reader<'_>) -> Checked<ValueType> {
    let start = *reader;
    let byte = reader.byte()?;
    match ValueType::from_byte(byte) {
        Some(ValueType::F32 | ValueType::F64) if !cfg!(feature = "float") => {
            start.error(Feature::Floats)
        }
        Some(value_type) => Ok(value_type),
        None => start.error(match byte {
            0x7B => TranslateErrorKind::Unsupported(Feature::Simd),
            0x63 | 0x64 => TranslateErrorKind::Unsupported(Feature::FunctionReferences),
            0x69 | 0x74 => TranslateErrorKind::Unsupported(Feature::Exceptions),
            0x68 | 0x75 => TranslateErrorKind::Unsupported(Feature::StackSwitching),
            0x6A..=0x6E | 0x71..=0x73 => {
                TranslateErrorKind::Unsupported(Feature::GarbageCollection)
            }
            _ => Malformed::ValueType.into(),
        }),
    }
}

/// As [`value_type`], of a reference.
pub(crate) fn reference_type(reader: &mut Reader<'_>) -> Checked<ValueType> {
    let start = *reader;
    match value_type(reader)? {
        reference if reference.is_reference() => Ok(reference),
        _ => start.error(Malformed::ReferenceType),
    }
}

/// Reads the type of a null reference (wasm 2.0 §5.3.3); one that the module defines is another proposal's.
pub(crate) fn null_type(reader: &mut Reader<'_>) -> Checked<ValueType> {
    match reader.peek() {
        Some(0x40..=0x7F) | None => reference_type(reader),
        Some(_) => reader.error(Feature::FunctionReferences),
    }
}
