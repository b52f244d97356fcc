//! Branches of a body: to a block, through a table, out of the body.

use super::{
    blocks::Target,
    function::{Body, Stop},
};
use crate::{
    error::{Invalid, Limit},
    isa,
    value::ValueType,
    wasm::{Checked, Reader},
};

impl Body<'_, '_> {
    /// Reads a label: the block it names.
    fn label(&mut self) -> Checked<Target> {
        let start = self.reader;
        let depth = self.reader.u32()?;
        match self.blocks.target(depth) {
            Some(target) => Ok(target),
            None => start.error(Invalid::UnknownLabel),
        }
    }

    pub(super) fn br(&mut self) -> Result<(), Stop> {
        let target = self.label()?;
        self.leave_to(target)
    }

    pub(super) fn return_from_body(&mut self) -> Result<(), Stop> {
        self.leave_to(Target::BODY)
    }

    fn leave_to(&mut self, target: Target) -> Result<(), Stop> {
        let Body { blocks, operands, .. } = self;
        let count = blocks.expect(operands, target, false);
        if operands.code.is_reachable() {
            blocks.go(operands, target, count)?;
        }
        operands.leave();
        Ok(())
    }

    pub(super) fn br_if(&mut self) -> Result<(), Stop> {
        let target = self.label()?;
        let Body { blocks, operands, .. } = self;
        let condition = operands.pop(Some(ValueType::I32));
        let count = blocks.expect(operands, target, false);
        let branch = operands.condition(condition, false);
        if !operands.code.is_reachable() {
            return Ok(());
        }
        if blocks.is_direct(operands, target, count) {
            return blocks.branch(operands, &branch, target);
        }
        // Nothing that the operands need may happen on one of the two ways only.
        operands.free_accumulator();
        if target == Target::BODY && count > 1 {
            operands.settle_top(count);
        }
        let over = operands.code.emitter.skip(&branch.opposite())?;
        let mirror = operands.code.mirror();
        blocks.go(operands, target, count)?;
        operands.code.emitter.land(over)?;
        operands.code.restore_mirror(mirror);
        Ok(())
    }

    pub(super) fn br_table(&mut self) -> Result<(), Stop> {
        let index = self.operands.pop(Some(ValueType::I32));
        self.reader.unless_refused()?;
        let entries = self.reader.u32()?;
        let labels = self.reader;
        let count = self.check_table(entries)?;
        let operands = &mut self.operands;
        if !operands.code.is_reachable() {
            operands.leave();
            return Ok(());
        }
        let Some(displacements) = entries.checked_add(1).and_then(|all| u16::try_from(all).ok())
        else {
            return Ok(labels.error(Limit::FunctionBytes)?);
        };
        operands.free_accumulator();
        if count > 1 {
            operands.settle_top(count);
        }
        if operands.code.emitter.is_wide() {
            let slot = operands.slot(index);
            operands.perform(isa::BR_TABLE_FAR_S, &[slot, displacements]);
        } else if operands.is_in_accumulator(index) {
            operands.perform(isa::BR_TABLE_A, &[displacements]);
        } else {
            let slot = operands.slot(index);
            operands.perform(isa::BR_TABLE_S, &[slot, displacements]);
        }
        let table = operands.code.emitter.position();
        self.table_entries(labels, entries, count)?;
        self.operands.code.emitter.interrupt();
        self.table_stubs(labels, entries, count, table)?;
        self.operands.leave();
        Ok(())
    }

    /// Reads and checks the labels of a table: they all take the same number of operands.
    fn check_table(&mut self, entries: u32) -> Checked<usize> {
        let mut common = None;
        for _ in 0..=entries {
            let target = self.label()?;
            let arity = self.blocks.arity(target);
            if *common.get_or_insert(arity) != arity {
                return self.reader.error(Invalid::TypeMismatch);
            }
            self.blocks.expect(&mut self.operands, target, true);
            self.reader.unless_refused()?;
        }
        Ok(common.unwrap_or(0))
    }

    fn table_entries(
        &mut self,
        mut labels: Reader<'_>,
        entries: u32,
        count: usize,
    ) -> Result<(), Stop> {
        let Body { blocks, operands, .. } = self;
        for _ in 0..=entries {
            // Read before: there is such a block.
            let Some(target) = blocks.target(labels.u32()?) else { continue };
            if blocks.is_direct(operands, target, count) {
                blocks.table_entry(operands, target)?;
            } else {
                operands.code.emitter.blank_target();
            }
        }
        Ok(())
    }

    /// Entries whose operands must move lead to a stub behind the table.
    fn table_stubs(
        &mut self,
        mut labels: Reader<'_>,
        entries: u32,
        count: usize,
        table: usize,
    ) -> Result<(), Stop> {
        let Body { blocks, operands, .. } = self;
        let mut previous = None;
        for index in 0..=entries as usize {
            let Some(target) = blocks.target(labels.u32()?) else { continue };
            if blocks.is_direct(operands, target, count) {
                continue;
            }
            let stub = match previous {
                Some((same, stub)) if same == target => stub,
                _ => {
                    let stub = operands.code.emitter.position();
                    operands.code.forget_accumulator();
                    blocks.go(operands, target, count)?;
                    stub
                }
            };
            previous = Some((target, stub));
            operands.code.emitter.set_target(table, index, stub)?;
        }
        Ok(())
    }
}
