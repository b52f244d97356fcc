//! Types and values as they cross the engine's border.

/// Type of a value (wasm 2.0 §2.3, without vectors). The discriminant is the binary format's byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueType {
    /// 32-bit integer.
    I32 = 0x7F,
    /// 64-bit integer.
    I64 = 0x7E,
    /// 32-bit float.
    F32 = 0x7D,
    /// 64-bit float.
    F64 = 0x7C,
    /// Reference to a function.
    FuncRef = 0x70,
    /// Reference to something of the host's.
    ExternRef = 0x6F,
}

impl ValueType {
    /// The type that `byte` stands for in the binary format.
    pub fn from_byte(byte: u8) -> Option<ValueType> {
        Some(match byte {
            0x7F => ValueType::I32,
            0x7E => ValueType::I64,
            0x7D => ValueType::F32,
            0x7C => ValueType::F64,
            0x70 => ValueType::FuncRef,
            0x6F => ValueType::ExternRef,
            _ => return None,
        })
    }

    pub(crate) fn is_reference(self) -> bool {
        matches!(self, ValueType::FuncRef | ValueType::ExternRef)
    }

    pub(crate) fn is_wide(self) -> bool {
        matches!(self, ValueType::I64 | ValueType::F64)
    }
}

/// A value handed to or received from a machine. Floats travel as their bits, so that no NaN changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// 32-bit integer.
    I32(i32),
    /// 64-bit integer.
    I64(i64),
    /// Bits of a 32-bit float.
    F32(u32),
    /// Bits of a 64-bit float.
    F64(u64),
    /// Index of a function in its module, or null.
    FuncRef(Option<u32>),
    /// A number that only the host understands (below `u32::MAX`), or null.
    ExternRef(Option<u32>),
}

impl Value {
    /// The value's type.
    pub fn value_type(self) -> ValueType {
        match self {
            Value::I32(_) => ValueType::I32,
            Value::I64(_) => ValueType::I64,
            Value::F32(_) => ValueType::F32,
            Value::F64(_) => ValueType::F64,
            Value::FuncRef(_) => ValueType::FuncRef,
            Value::ExternRef(_) => ValueType::ExternRef,
        }
    }

    /// The zero of a type: what a local variable starts as.
    pub fn zero(value_type: ValueType) -> Value {
        Value::from_slot(0, value_type)
    }

    /// As a frame slot holds it; a reference is its number plus one, null is zero.
    pub(crate) fn to_slot(self) -> u64 {
        match self {
            Value::I32(value) => value as u32 as u64,
            Value::I64(value) => value as u64,
            Value::F32(bits) => bits as u64,
            Value::F64(bits) => bits,
            Value::FuncRef(reference) | Value::ExternRef(reference) => {
                reference.map_or(0, |index| index.wrapping_add(1) as u64)
            }
        }
    }

    /// Of a 32-bit type only the low half of a slot means anything.
    pub(crate) fn from_slot(slot: u64, value_type: ValueType) -> Value {
        let low = slot as u32;
        match value_type {
            ValueType::I32 => Value::I32(low as i32),
            ValueType::I64 => Value::I64(slot as i64),
            ValueType::F32 => Value::F32(low),
            ValueType::F64 => Value::F64(slot),
            ValueType::FuncRef => Value::FuncRef(low.checked_sub(1)),
            ValueType::ExternRef => Value::ExternRef(low.checked_sub(1)),
        }
    }
}

/// Parameters and results of a function: a view of the bytes that encode their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionType<'a> {
    params: &'a [u8],
    results: &'a [u8],
}

impl<'a> FunctionType<'a> {
    /// Every byte must be that of a value type.
    pub(crate) fn new(params: &'a [u8], results: &'a [u8]) -> FunctionType<'a> {
        FunctionType { params, results }
    }

    /// Types of the parameters.
    pub fn params(
        &self,
    ) -> impl ExactSizeIterator<Item = ValueType> + DoubleEndedIterator + Clone + use<'a> {
        types(self.params)
    }

    /// Types of the results.
    pub fn results(
        &self,
    ) -> impl ExactSizeIterator<Item = ValueType> + DoubleEndedIterator + Clone + use<'a> {
        types(self.results)
    }

    /// Whether the type is exactly `params -> results`.
    pub fn is(&self, params: &[ValueType], results: &[ValueType]) -> bool {
        self.params().eq(params.iter().copied()) && self.results().eq(results.iter().copied())
    }
}

fn types(
    bytes: &[u8],
) -> impl ExactSizeIterator<Item = ValueType> + DoubleEndedIterator + Clone + '_ {
    bytes.iter().map(|&byte| ValueType::from_byte(byte).unwrap_or(ValueType::I32))
}
