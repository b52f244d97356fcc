//! Making an instance from an image: parses nothing, copies data segments.

use alloc::vec::Vec;

use super::{Instance, InstanceConfig, StartError, Status};
use crate::{
    image::{DataSegment, FunctionIndex, Image, TABLE_MAX},
    memory::{Memory, Unavailable},
};

impl Instance {
    /// Makes an instance and commits its memory: all that is declared, or all that the budget allows.
    ///
    /// If the module names a start function, a call of it is prepared: `run` executes it first, and
    /// `prepare` says `Busy` until it is done.
    pub fn new(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::new_lazy(image, config)?;
        let usable = instance.memory.usable() as u64;
        instance.memory.commit(usable).map_err(|_| StartError::OutOfMemory)?;
        Ok(instance)
    }

    /// As [`Instance::new`], but commits memory as the program reaches it, growing the allocation.
    pub fn new_lazy(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::bare(image, config)?;
        let globals = instance.globals;
        for (index, slot) in instance.slots[..globals].iter_mut().enumerate() {
            *slot = image.global(index as u32).map_or(0, |global| global.initial);
        }
        instance.fill_tables(image)?;
        instance.fill_memory(image)?;
        if let Some(FunctionIndex(start)) = image.start_function() {
            instance
                .prepare(image, FunctionIndex(start), &[])
                .map_err(|_| StartError::StackBudget)?;
        }
        Ok(instance)
    }

    /// An instance whose memory, tables and globals are still zero.
    pub(crate) fn bare(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let footer = &image.footer;
        let globals = footer.globals.count as usize;
        let mut tables = zeroed_list(footer.tables.count as usize)?;
        for (index, table) in tables.iter_mut().enumerate() {
            let size = image.table(index as u32).map_or(0, |table| table.min);
            *table = zeroed(size as usize)?;
        }
        Ok(Instance {
            token: image.token,
            status: Status::Idle,
            entry: 0,
            pc: 0,
            frame: 0,
            accumulator: 0,
            debt: 0,
            slots: zeroed(globals + config.stack_bytes / 8)?,
            globals,
            memory: Memory::new(footer.pages_min, footer.page_shift, config.memory_bytes_max),
            tables,
            dropped_data: zeroed(footer.data.count.div_ceil(32) as usize)?,
            dropped_elements: zeroed(footer.elements.count.div_ceil(32) as usize)?,
        })
    }

    fn fill_tables(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for index in 0..image.footer.elements.count {
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
            for (item, slot) in range.iter_mut().enumerate() {
                *slot = segment.item(item);
            }
        }
        Ok(())
    }

    fn fill_memory(&mut self, image: &Image<'_>) -> Result<(), StartError> {
        for index in 0..image.footer.data.count {
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

fn zeroed<T: Copy + Default>(count: usize) -> Result<Vec<T>, StartError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| StartError::OutOfMemory)?;
    list.resize(count, T::default());
    Ok(list)
}

fn zeroed_list<T: Clone>(count: usize) -> Result<Vec<Vec<T>>, StartError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| StartError::OutOfMemory)?;
    list.resize(count, Vec::new());
    Ok(list)
}

pub(super) fn drop_segment(dropped: &mut [u32], index: u32) {
    if let Some(word) = dropped.get_mut(index as usize / 32) {
        *word |= 1 << (index % 32);
    }
}

pub(super) fn is_dropped(dropped: &[u32], index: u32) -> bool {
    dropped.get(index as usize / 32).is_none_or(|word| word >> (index % 32) & 1 != 0)
}
