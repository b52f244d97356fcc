//! The parts of an instance that a program's instructions change, and what takes several of them at once.
//!
//! Instructions outside the interpreter (`outer`, `access`) are lent them together, with the fuel that is left.

use alloc::collections::TryReserveError;

use super::{InstanceConfig, StartError, segments::Segments, stack::Stack, tables::Tables};
use crate::{
    image::{DataSegment, Image, Section},
    interpreter::{Entry, Exit},
    memory::{Memory, Unavailable},
};

#[cfg_attr(feature = "profile", derive(Clone))]
pub(crate) struct Parts {
    pub(crate) position: Position,
    pub(crate) stack: Stack,
    pub(crate) memory: Memory,
    pub(crate) tables: Tables,
    pub(crate) segments: Segments,
}

/// Where execution is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    /// Offset in the image of the next instruction.
    pub(crate) pc: u32,
    /// Offset in the stack of the current frame, in bytes.
    pub(crate) frame: u32,
    pub(crate) accumulator: u32,
}

impl Parts {
    /// Parts for which nothing is allocated yet.
    pub(super) fn new(image: &Image<'_>, config: &InstanceConfig) -> Parts {
        let (pages, page_shift) = image.pages();
        Parts {
            position: Position::default(),
            stack: Stack::new(image.count(Section::Globals) as usize),
            memory: Memory::new(pages, page_shift, config.memory_bytes_max),
            tables: Tables::new(),
            segments: Segments::default(),
        }
    }

    /// Allocates globals, stack, tables and what says which segments were dropped: all of them zero.
    pub(crate) fn allocate(
        &mut self,
        image: &Image<'_>,
        config: &InstanceConfig,
    ) -> Result<(), Shortage> {
        let fixed_bytes = usize::try_from(image.fixed_bytes()).unwrap_or(usize::MAX);
        let frames_bytes = config.stack_bytes.checked_sub(fixed_bytes).ok_or(Shortage::Stack)?;
        self.stack.allocate(frames_bytes)?;
        self.segments.allocate(image)?;
        self.tables.allocate(image)?;
        Ok(())
    }

    /// Gives globals, tables and memory what the image says they start with.
    pub(super) fn fill(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for (index, slot) in (0..).zip(self.stack.globals_mut()) {
            *slot = image.global(index).map_or(0, |global| global.initial);
        }
        self.fill_tables(image)?;
        self.fill_memory(image)
    }

    fn fill_tables(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for index in 0..image.count(Section::Elements) {
            let Some(segment) = image.elements(index) else { continue };
            let Some((table, offset)) = segment.place else {
                if segment.declared {
                    self.segments.drop_elements(index);
                }
                continue;
            };
            self.segments.drop_elements(index);
            let end = (offset as usize).checked_add(segment.len());
            let range = end
                .and_then(|end| self.tables.get_mut(table as usize)?.get_mut(offset as usize..end));
            let Some(range) = range else { return Err(StartError::ElementsOutOfBounds) };
            segment.copy_to(0, range);
        }
        Ok(())
    }

    fn fill_memory(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for index in 0..image.count(Section::Data) {
            let Some(DataSegment { address: Some(address), bytes }) = image.data(index) else {
                continue;
            };
            self.segments.drop_data(index);
            let end = address as u64 + bytes.len() as u64;
            self.memory.commit(end).map_err(|unavailable| match unavailable {
                Unavailable::OutOfBounds => StartError::DataOutOfBounds,
                Unavailable::OverBudget => StartError::MemoryBudget,
                Unavailable::Exhausted => StartError::OutOfMemory,
            })?;
            if let Some(range) = self.memory.bytes_mut().get_mut(address as usize..end as usize) {
                range.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// The parts that the interpreter borrows; nothing before it is allocated.
    #[inline(always)]
    pub(super) fn entry<'e>(&'e mut self, image: &'e Image<'e>) -> Option<Entry<'e>> {
        let (globals, stack) = self.stack.split()?;
        Some(Entry {
            image,
            globals,
            stack,
            memory: self.memory.bytes_mut(),
            table: self.tables.first(),
            pc: self.position.pc,
            frame: self.position.frame,
            accumulator: self.position.accumulator,
        })
    }

    /// Notes where the interpreter left off.
    #[inline(always)]
    pub(super) fn note(&mut self, exit: &Exit) {
        self.position = Position {
            pc: exit.pc,
            frame: self.stack.frame_at(exit.frame),
            accumulator: exit.accumulator,
        };
    }
}

/// The resource that there is too little of.
#[derive(Clone, Copy)]
pub(crate) enum Shortage {
    /// The stack's bytes: globals and tables come out of them.
    Stack,
    /// The allocator's.
    Memory,
}

impl From<TryReserveError> for Shortage {
    fn from(_: TryReserveError) -> Shortage {
        Shortage::Memory
    }
}

impl From<Shortage> for StartError {
    fn from(shortage: Shortage) -> StartError {
        match shortage {
            Shortage::Stack => StartError::StackBudget,
            Shortage::Memory => StartError::OutOfMemory,
        }
    }
}
