//! Making an instance from an image: parses nothing, copies data segments.

use alloc::{collections::TryReserveError, vec::Vec};

use super::{Instance, InstanceConfig, StartError, Status};
use crate::{
    image::{DataSegment, Image, Section, TABLE_MAX},
    memory::{Lined, Memory, Unavailable, zeroed},
    suspend::ResumeError,
};

impl Instance {
    /// Makes an instance and commits its memory: all that is declared, or all that the budget allows.
    ///
    /// If the module names a start function, a call of it is prepared: `run` executes it first, and
    /// `prepare` says `Busy` until it is done.
    pub fn new(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::bare(image, config);
        match instance.set_up(image, config, true) {
            Ok(()) => Ok(instance),
            Err(error) => Err(error),
        }
    }

    /// As [`Instance::new`], but commits memory as the program reaches it, growing the allocation.
    pub fn new_lazy(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::bare(image, config);
        match instance.set_up(image, config, false) {
            Ok(()) => Ok(instance),
            Err(error) => Err(error),
        }
    }

    fn set_up(
        &mut self,
        image: &Image<'_>,
        config: &InstanceConfig,
        commit: bool,
    ) -> Result<(), StartError> {
        self.allocate(image, config)?;
        for (index, slot) in (0..self.globals as u32).zip(&mut *self.slots) {
            *slot = image.global(index).map_or(0, |global| global.initial);
        }
        self.fill_tables(image)?;
        self.fill_memory(image)?;
        if let Some(function) = image.start_function() {
            self.prepare(image, function, &[]).map_err(|_| StartError::StackBudget)?;
        }
        if commit {
            let usable = self.memory.usable() as u64;
            self.memory.commit(usable).map_err(|_| StartError::OutOfMemory)?;
        }
        Ok(())
    }

    /// An instance for which nothing is allocated yet.
    pub(crate) fn bare(image: &Image<'_>, config: &InstanceConfig) -> Instance {
        let (pages, page_shift) = image.pages();
        Instance {
            token: image.token,
            status: Status::Idle,
            entry: 0,
            pc: 0,
            frame: 0,
            accumulator: 0,
            debt: 0,
            slots: Lined::new(),
            globals: image.count(Section::Globals) as usize,
            memory: Memory::new(pages, page_shift, config.memory_bytes_max),
            tables: Vec::new(),
            dropped_data: Vec::new(),
            dropped_elements: Vec::new(),
        }
    }

    /// Allocates globals, stack, tables and what says which segments were dropped: all of them zero.
    pub(crate) fn allocate(
        &mut self,
        image: &Image<'_>,
        config: &InstanceConfig,
    ) -> Result<(), Shortage> {
        let tables = image.count(Section::Tables);
        let fixed_bytes = usize::try_from(image.fixed_bytes()).unwrap_or(usize::MAX);
        let frames_bytes = config.stack_bytes.checked_sub(fixed_bytes).ok_or(Shortage::Stack)?;
        self.slots = Lined::zeroed(self.globals + frames_bytes / 8)?;
        self.dropped_data = zeroed(image.count(Section::Data).div_ceil(32) as usize)?;
        self.dropped_elements = zeroed(image.count(Section::Elements).div_ceil(32) as usize)?;
        self.tables.try_reserve_exact(tables as usize)?;
        for index in 0..tables {
            let size = image.table(index).map_or(0, |table| table.min);
            self.tables.push(Lined::zeroed(size as usize)?);
        }
        Ok(())
    }

    fn fill_tables(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for index in 0..image.count(Section::Elements) {
            let Some(segment) = image.elements(index) else { continue };
            let Some((table, offset)) = segment.place else {
                if segment.declared {
                    drop_segment(&mut self.dropped_elements, index);
                }
                continue;
            };
            drop_segment(&mut self.dropped_elements, index);
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
            drop_segment(&mut self.dropped_data, index);
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

    /// Elements that a table may have.
    pub(crate) fn table_maximum(image: &Image<'_>, table: u32) -> u32 {
        image.table(table).map_or(0, |table| table.max.min(TABLE_MAX))
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

impl From<Shortage> for ResumeError {
    fn from(shortage: Shortage) -> ResumeError {
        match shortage {
            Shortage::Stack => ResumeError::StackBudget,
            Shortage::Memory => ResumeError::OutOfMemory,
        }
    }
}

pub(super) fn drop_segment(dropped: &mut [u32], index: u32) {
    if let Some(word) = dropped.get_mut(index as usize / 32) {
        *word |= 1 << (index % 32);
    }
}

pub(super) fn is_dropped(dropped: &[u32], index: u32) -> bool {
    dropped.get(index as usize / 32).is_none_or(|word| word >> (index % 32) & 1 != 0)
}
