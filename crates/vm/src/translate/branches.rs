//! Branches: conditions, the moves of what they take along, tables and returns.

use super::{
    emitter::Label,
    function::{Body, Kind, Stop},
    operands::{Place, Popped, SLOT_BYTES, Source},
};
use crate::{
    error::{Invalid, Limit},
    isa,
    value::{FunctionType, ValueType},
    wasm::{Checked, Reader},
};

/// A conditional branch that still lacks its target.
pub(super) struct Branch {
    opcode: u16,
    operands: [u16; 2],
    count: usize,
}

impl Branch {
    fn operands(&self) -> &[u16] {
        &self.operands[..self.count]
    }

    fn opposite(&self) -> Branch {
        let opcode = isa::BR_I32_EQ_SS + ((self.opcode - isa::BR_I32_EQ_SS) ^ 1);
        Branch { opcode, ..*self }
    }
}

impl Body<'_, '_> {
    /// The branch that is taken if `condition` holds, or with `negate` if it does not. A comparison
    /// that has just been emitted becomes part of it.
    pub(super) fn condition(&mut self, condition: Popped, negate: bool) -> Branch {
        if self.is_fresh_truth(condition) {
            let (comparison, operands, count) = self.emitter.take_comparison();
            if let Some(opcode) = isa::branch_on(comparison, negate) {
                return Branch { opcode, operands, count };
            }
        }
        let (not_zero, zero, operand, count) = if self.is_in_accumulator(condition) {
            (isa::BR_I32_NE_AZ, isa::BR_I32_EQ_AZ, 0, 0)
        } else {
            (isa::BR_I32_NE_SZ, isa::BR_I32_EQ_SZ, self.slot(condition), 1)
        };
        Branch { opcode: if negate { zero } else { not_zero }, operands: [operand, 0], count }
    }

    /// A conditional branch to a place ahead.
    pub(super) fn branch_forward(
        &mut self,
        branch: &Branch,
        label: &mut Label,
    ) -> Result<(), Stop> {
        if self.emitter.wide {
            let over = self.skip(&branch.opposite())?;
            self.emitter.branch_far(label);
            self.emitter.interrupt();
            self.emitter.bind(over)?;
        } else {
            self.emitter.branch(branch.opcode, branch.operands(), label)?;
        }
        Ok(())
    }

    /// A short conditional branch over a few instructions that follow.
    fn skip(&mut self, branch: &Branch) -> Result<Label, Stop> {
        let mut over = Label::default();
        self.emitter.branch(branch.opcode, branch.operands(), &mut over)?;
        Ok(over)
    }

    pub(super) fn jump_forward(&mut self, label: &mut Label) -> Result<(), Stop> {
        if self.emitter.wide {
            self.emitter.branch_far(label);
        } else {
            self.emitter.branch(isa::BR, &[], label)?;
        }
        Ok(())
    }

    /// An unconditional branch to a block, whose operands are in place.
    fn jump(&mut self, target: usize) -> Result<(), Stop> {
        let control = &mut self.controls[target];
        if control.kind != Kind::Loop {
            let mut label = control.label;
            self.jump_forward(&mut label)?;
            self.controls[target].label = label;
        } else if self.emitter.wide {
            self.emitter.branch_far_back(control.start);
        } else {
            self.emitter.branch_back(isa::BR, &[], control.start)?;
        }
        Ok(())
    }

    /// Whether the topmost `count` operands are where a branch to the block expects them.
    fn in_place(&self, target: usize, count: usize) -> bool {
        let from = self.operands.len() - count;
        count == 0
            || (self.controls[target].height == from
                && self.operands[from..].iter().all(|operand| operand.place == Place::Temporary))
    }

    /// Moves the topmost `count` operands to where the block expects them. Ascending order is safe: no
    /// operand moves up.
    fn move_operands(&mut self, target: usize, count: usize) {
        let (from, to) = (self.operands.len() - count, self.controls[target].height);
        for index in 0..count {
            self.copy_operand(from + index, self.temporary(to + index));
        }
    }

    /// Goes to the block with the topmost `count` operands, or returns with them.
    fn go(&mut self, target: usize, count: usize) -> Result<(), Stop> {
        if target == 0 {
            let (types, _) = self.label_types(&self.controls[0]);
            self.emit_return(types)?;
        } else {
            self.move_operands(target, count);
            self.jump(target)?;
        }
        self.emitter.interrupt();
        Ok(())
    }

    pub(super) fn br(&mut self) -> Result<(), Stop> {
        let target = self.label()?;
        let count = self.expect_label(target, false)?;
        if self.reachable {
            self.go(target, count)?;
        }
        self.leave();
        Ok(())
    }

    pub(super) fn return_from_body(&mut self) -> Result<(), Stop> {
        let count = self.expect_label(0, false)?;
        if self.reachable {
            self.go(0, count)?;
        }
        self.leave();
        Ok(())
    }

    pub(super) fn br_if(&mut self) -> Result<(), Stop> {
        let target = self.label()?;
        let condition = self.pop(Some(ValueType::I32));
        let count = self.expect_label(target, false)?;
        let branch = self.condition(condition, false);
        if !self.reachable {
            return Ok(());
        }
        if target != 0 && self.in_place(target, count) {
            return self.branch_to(&branch, target);
        }
        // Nothing that the operands need may happen on one of the two ways only.
        self.free_accumulator();
        if target == 0 && count > 1 {
            self.settle_top(count);
        }
        let over = self.skip(&branch.opposite())?;
        let mirror = self.mirror;
        self.go(target, count)?;
        self.emitter.bind(over)?;
        self.mirror = mirror;
        Ok(())
    }

    /// A conditional branch to a block whose operands are in place.
    fn branch_to(&mut self, branch: &Branch, target: usize) -> Result<(), Stop> {
        let control = &self.controls[target];
        if control.kind != Kind::Loop {
            let mut label = control.label;
            self.branch_forward(branch, &mut label)?;
            self.controls[target].label = label;
        } else if self.emitter.wide {
            let start = control.start;
            let over = self.skip(&branch.opposite())?;
            self.emitter.branch_far_back(start);
            self.emitter.interrupt();
            self.emitter.bind(over)?;
        } else {
            self.emitter.branch_back(branch.opcode, branch.operands(), control.start)?;
        }
        Ok(())
    }

    pub(super) fn br_table(&mut self) -> Result<(), Stop> {
        let index = self.pop(Some(ValueType::I32));
        let entries = self.reader.u32()?;
        let labels = self.reader;
        let count = self.check_table(entries)?;
        if !self.reachable {
            self.leave();
            return Ok(());
        }
        let Some(displacements) = entries.checked_add(1).and_then(|all| u16::try_from(all).ok())
        else {
            return Ok(labels.error(Limit::FunctionBytes)?);
        };
        self.free_accumulator();
        if count > 1 {
            self.settle_top(count);
        }
        if self.emitter.wide {
            let slot = self.slot(index);
            self.emitter.emit(isa::BR_TABLE_FAR_S, &[slot, displacements]);
        } else if self.is_in_accumulator(index) {
            self.emitter.emit(isa::BR_TABLE_A, &[displacements]);
        } else {
            let slot = self.slot(index);
            self.emitter.emit(isa::BR_TABLE_S, &[slot, displacements]);
        }
        let table = self.emitter.position();
        let after = self.reader;
        self.table_entries(labels, entries, count)?;
        self.emitter.interrupt();
        self.table_stubs(labels, entries, count, table)?;
        self.reader = after;
        self.leave();
        Ok(())
    }

    /// Reads and checks the labels of a table: they all take the same number of operands.
    fn check_table(&mut self, entries: u32) -> Checked<usize> {
        let mut common = None;
        for _ in 0..=entries {
            let target = self.label()?;
            let (types, is_loop) = self.label_types(&self.controls[target]);
            let arity = if is_loop { types.params().len() } else { types.results().len() };
            if *common.get_or_insert(arity) != arity {
                return self.reader.error(Invalid::TypeMismatch);
            }
            self.expect_label(target, true)?;
        }
        Ok(common.unwrap_or(0))
    }

    /// Whether a table's entry can lead to the block at once: else operands must move first.
    fn is_direct(&self, target: usize, count: usize) -> bool {
        target != 0 && self.in_place(target, count)
    }

    fn table_entries(
        &mut self,
        labels: Reader<'_>,
        entries: u32,
        count: usize,
    ) -> Result<(), Stop> {
        let mut labels = labels;
        let wide = self.emitter.wide;
        for _ in 0..=entries {
            let target = self.controls.len() - 1 - labels.u32()? as usize;
            let control = &self.controls[target];
            let (is_loop, start, mut label) =
                (control.kind == Kind::Loop, control.start, control.label);
            if !self.is_direct(target, count) {
                self.emitter.code.extend_from_slice(if wide { &[0; 4] } else { &[0; 2] });
                continue;
            }
            match (is_loop, wide) {
                (true, true) => self.emitter.target_far_back(start),
                (true, false) => self.emitter.target_back(start)?,
                (false, true) => self.emitter.target_far(&mut label),
                (false, false) => self.emitter.target(&mut label)?,
            }
            self.controls[target].label = label;
        }
        Ok(())
    }

    /// Entries whose operands must move lead to a stub behind the table.
    fn table_stubs(
        &mut self,
        labels: Reader<'_>,
        entries: u32,
        count: usize,
        table: usize,
    ) -> Result<(), Stop> {
        let mut labels = labels;
        let mut previous = None;
        let entry_bytes = if self.emitter.wide { 4 } else { 2 };
        for index in 0..=entries as usize {
            let target = self.controls.len() - 1 - labels.u32()? as usize;
            if self.is_direct(target, count) {
                continue;
            }
            let stub = match previous {
                Some((same, stub)) if same == target => stub,
                _ => {
                    let stub = self.emitter.position();
                    self.mirror = None;
                    self.go(target, count)?;
                    stub
                }
            };
            previous = Some((target, stub));
            let entry = table + index * entry_bytes;
            let displacement = stub - (entry + entry_bytes);
            if entry_bytes == 2 && i16::try_from(displacement).is_err() {
                return Err(Stop::TooFar);
            }
            let bytes = (displacement as u32).to_le_bytes();
            self.emitter.code[entry..entry + entry_bytes].copy_from_slice(&bytes[..entry_bytes]);
        }
        Ok(())
    }

    /// Returns with the topmost operands.
    pub(super) fn emit_return(&mut self, types: FunctionType<'_>) -> Result<(), Stop> {
        let link = self.link_slot();
        let depth = self.operands.len().wrapping_sub(1);
        let mut results = types.results();
        match (results.next(), results.next()) {
            (None, _) => self.emitter.emit(isa::RETURN, &[link]),
            (Some(result), None) => {
                let top = self.peek(depth);
                match self.source(top) {
                    Source::Accumulator => self.emitter.emit(isa::RETURN32_A, &[link]),
                    Source::Slot(slot) if result.is_wide() => {
                        self.emitter.emit(isa::RETURN64_S, &[slot, link])
                    }
                    Source::Slot(slot) => self.emitter.emit(isa::RETURN32_S, &[slot, link]),
                    Source::Constant(value) if !result.is_wide() => {
                        self.constant_to_accumulator(value);
                        self.emitter.emit(isa::RETURN32_A, &[link]);
                    }
                    Source::Constant(_) => {
                        self.copy_operand(depth, self.temporary(depth));
                        self.emitter.emit(isa::RETURN64_S, &[self.temporary(depth), link]);
                    }
                }
            }
            _ => {
                let count = types.results().len();
                let from = self.operands.len() - count;
                self.settle_top(count);
                for index in 0..count {
                    self.copy_operand(from + index, (index * SLOT_BYTES) as u16);
                }
                self.emitter.emit(isa::RETURN, &[link]);
            }
        }
        Ok(())
    }
}
