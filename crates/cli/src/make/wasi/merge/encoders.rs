//! What instructions become: those of the program, whose memory lies higher, and those of the adapter.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{Instruction, MemArg};
use wasmparser::Operator;

use super::{Program, WasiError};

/// The functions that do for the program what instructions about its memory did.
#[derive(Default)]
pub(super) struct MemoryCalls {
    pub(super) size: u32,
    pub(super) grow: u32,
    pub(super) copy: u32,
    pub(super) fill: u32,
    pub(super) init: BTreeMap<u32, u32>,
}

/// The instructions about its memory that a program has.
#[derive(Default)]
pub(super) struct MemoryUses {
    pub(super) size: bool,
    pub(super) grow: bool,
    pub(super) copy: bool,
    pub(super) fill: bool,
    pub(super) init: BTreeSet<u32>,
}

impl MemoryUses {
    pub(super) fn of(program: &Program<'_>) -> Result<Self, WasiError> {
        let mut uses = Self::default();
        for body in &program.bodies {
            let mut operators = body.get_operators_reader()?;
            while !operators.eof() {
                match operators.read()? {
                    Operator::MemorySize { .. } => uses.size = true,
                    Operator::MemoryGrow { .. } => uses.grow = true,
                    Operator::MemoryCopy { .. } => uses.copy = true,
                    Operator::MemoryFill { .. } => uses.fill = true,
                    Operator::MemoryInit { data_index, .. } => {
                        uses.init.insert(data_index);
                    }
                    _ => {}
                }
            }
        }
        Ok(uses)
    }
}

/// Encodes the program: its functions are elsewhere, and its memory lies higher.
pub(super) struct ProgramEncoder<'m> {
    pub(super) functions: &'m [u32],
    pub(super) base: u32,
    pub(super) calls: &'m MemoryCalls,
    /// Whether segments of data are needed again, for the next run.
    pub(super) keeps_data: bool,
}

pub(super) type Reencoded<T> = Result<T, reencode::Error<Infallible>>;

impl Reencode for ProgramEncoder<'_> {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Reencoded<u32> {
        Ok(self.functions.get(function as usize).copied().unwrap_or(function))
    }

    fn mem_arg(&mut self, argument: wasmparser::MemArg) -> Reencoded<MemArg> {
        let mut argument = reencode::utils::mem_arg(self, argument)?;
        // No access at or beyond the last address is in the memory, whose size is at most that.
        argument.offset = (argument.offset + u64::from(self.base)).min(u32::MAX.into());
        Ok(argument)
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Reencoded<Instruction<'a>> {
        Ok(match operator {
            Operator::MemorySize { .. } => Instruction::Call(self.calls.size),
            Operator::MemoryGrow { .. } => Instruction::Call(self.calls.grow),
            Operator::MemoryCopy { .. } => Instruction::Call(self.calls.copy),
            Operator::MemoryFill { .. } => Instruction::Call(self.calls.fill),
            Operator::MemoryInit { data_index, .. } => {
                Instruction::Call(self.calls.init.get(&data_index).copied().unwrap_or(0))
            }
            Operator::DataDrop { .. } if self.keeps_data => Instruction::Nop,
            operator => reencode::utils::instruction(self, operator)?,
        })
    }
}

/// Encodes the adapter: its functions, globals and types are elsewhere.
pub(super) struct AdapterEncoder<'m> {
    pub(super) functions: &'m BTreeMap<u32, u32>,
    pub(super) globals_at: u32,
    pub(super) types: BTreeMap<u32, u32>,
}

impl Reencode for AdapterEncoder<'_> {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Reencoded<u32> {
        Ok(self.functions.get(&function).copied().unwrap_or(function))
    }

    fn global_index(&mut self, global: u32) -> Reencoded<u32> {
        Ok(self.globals_at + global)
    }

    fn type_index(&mut self, index: u32) -> Reencoded<u32> {
        Ok(self.types.get(&index).copied().unwrap_or(index))
    }
}
