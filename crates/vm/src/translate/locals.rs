//! Parameters and local variables of a body, and where they lie in its frame.
//!
//! ```text
//! parameters, or results if these are more | return link | other locals, zero at first | operands
//! ```

use alloc::vec::Vec;

use super::operands::SLOT_BYTES;
use crate::{
    error::{Limit, Malformed},
    limits::Limits,
    value::ValueType,
    wasm::{Checked, Module, Reader, TypeEntry, value_type},
};

pub(super) struct Locals {
    /// Parameters first.
    types: Vec<ValueType>,
    params: usize,
    /// Index of the slot that holds the return link.
    link: usize,
}

impl Locals {
    /// Reads the declarations at a body's beginning, into the list `types`.
    pub(super) fn read(
        module: &Module<'_>,
        function: TypeEntry,
        reader: &mut Reader<'_>,
        limits: &Limits,
        mut types: Vec<ValueType>,
    ) -> Checked<Locals> {
        types.clear();
        let params = module.function_type(function).params();
        reader.reserve(&mut types, params.len())?;
        types.extend(params);
        let groups = reader.u32()?;
        let mut total = types.len() as u64;
        for _ in 0..groups {
            let count = reader.u32()?;
            total += count as u64;
            if total > u32::MAX as u64 {
                return reader.error(Malformed::TooManyLocals);
            }
            let value_type = value_type(reader)?;
            if total > limits.locals as u64 {
                return reader.error(Limit::Locals);
            }
            reader.reserve(&mut types, count as usize)?;
            types.extend(core::iter::repeat_n(value_type, count as usize));
        }
        let link = function.params.max(function.results) as usize;
        Ok(Locals { types, params: function.params as usize, link })
    }

    /// The list, to be used again.
    pub(super) fn into_list(self) -> Vec<ValueType> {
        self.types
    }

    /// Type and slot of a local variable.
    pub(super) fn find(&self, index: u32) -> Option<(ValueType, u16)> {
        let index = index as usize;
        let &value_type = self.types.get(index)?;
        let slot = if index < self.params { index } else { self.link + 1 + index - self.params };
        Some((value_type, (slot * SLOT_BYTES) as u16))
    }

    /// Byte offset of the return link.
    pub(super) fn link(&self) -> u16 {
        (self.link * SLOT_BYTES) as u16
    }

    /// Locals behind the link, which start as zero.
    pub(super) fn zeros(&self) -> u16 {
        (self.types.len() - self.params) as u16
    }

    /// Slots of the frame up to the first operand's.
    pub(super) fn slots(&self) -> usize {
        self.link + 1 + self.types.len() - self.params
    }
}
