//! The open blocks of a body (wasm 2.0 §3.3.8): what they take and leave, where branches to them lead, and
//! the moves of what branches take along.
//!
//! Invariants:
//! - The outermost block is the body itself; when that ends, none is open.
//! - A block's operands lie above its `height`, and the floor of the operand stack is that of the innermost.

use alloc::vec::Vec;

use super::{
    emitter::{Branch, Label},
    function::Stop,
    operands::{Operands, SLOT_BYTES, Source},
};
use crate::{
    error::{Invalid, Limit, Malformed, TranslateErrorKind},
    isa,
    value::{FunctionType, ValueType},
    wasm::{Checked, Module, TypeEntry},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Block,
    Loop,
    If,
    Else,
}

/// A block that is open.
pub(super) struct Control {
    kind: Kind,
    signature: TypeEntry,
    /// Operands below the block's parameters.
    height: usize,
    /// Branches to the end of the block.
    label: Label,
    /// Where a loop begins.
    start: usize,
    /// The branch around the first arm of an `if`.
    otherwise: Label,
    /// The block was reached.
    entered: bool,
    /// The rest of the block around it is never reached.
    outer_unreachable: bool,
}

/// An open block, counted from the outermost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Target(usize);

impl Target {
    /// The body: a branch there returns.
    pub(super) const BODY: Target = Target(0);
}

pub(super) struct Blocks<'m, 'w> {
    module: &'m Module<'w>,
    open: Vec<Control>,
    nesting_max: usize,
    /// Byte offset of the return link in the frame.
    link: u16,
}

impl<'m, 'w> Blocks<'m, 'w> {
    /// No block yet; `open` is an empty list to keep them in.
    pub(super) fn new(
        module: &'m Module<'w>,
        open: Vec<Control>,
        nesting_max: usize,
        link: u16,
    ) -> Blocks<'m, 'w> {
        Blocks { module, open, nesting_max, link }
    }

    /// The list, to be used again.
    pub(super) fn into_list(self) -> Vec<Control> {
        self.open
    }

    /// Whether the body's own block has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The block that a label of this depth names.
    pub(super) fn target(&self, depth: u32) -> Option<Target> {
        self.open.len().checked_sub((depth as usize).saturating_add(1)).map(Target)
    }

    /// Types of the body's results.
    pub(super) fn body_results(&self) -> impl DoubleEndedIterator<Item = ValueType> + Clone + 'w {
        self.module.function_type(self.open[0].signature).results()
    }

    /// A block whose parameters were popped.
    pub(super) fn open(
        &mut self,
        operands: &mut Operands<'_>,
        kind: Kind,
        signature: TypeEntry,
    ) -> Checked<()> {
        if self.open.len() >= self.nesting_max {
            return Err(operands.refused(Limit::Nesting));
        }
        if self.open.try_reserve(1).is_err() {
            return Err(operands.refused(TranslateErrorKind::OutOfMemory));
        }
        self.open.push(Control {
            kind,
            signature,
            height: operands.depth(),
            label: Label::default(),
            start: operands.code.emitter.position(),
            otherwise: Label::default(),
            entered: operands.code.is_reachable(),
            outer_unreachable: operands.enter(),
        });
        operands.push_all(self.module.function_type(signature).params());
        Ok(())
    }

    /// `block`, `loop`.
    pub(super) fn block(
        &mut self,
        operands: &mut Operands<'_>,
        kind: Kind,
        signature: TypeEntry,
    ) -> Checked<()> {
        let params = self.module.function_type(signature).params();
        operands.expect_top(params.clone(), false);
        operands.settle_for_block(params.len());
        operands.pop_all(params);
        if kind == Kind::Loop {
            operands.code.begin_loop();
        }
        self.open(operands, kind, signature)
    }

    pub(super) fn if_block(
        &mut self,
        operands: &mut Operands<'_>,
        signature: TypeEntry,
    ) -> Result<(), Stop> {
        let params = self.module.function_type(signature).params();
        let condition = operands.pop(Some(ValueType::I32));
        operands.expect_top(params.clone(), false);
        let branch = operands.condition(condition, true);
        operands.settle_for_block(params.len());
        operands.pop_all(params);
        self.open(operands, Kind::If, signature)?;
        if operands.code.is_reachable() {
            let control = self.open.last_mut().expect("just opened");
            operands.code.emitter.branch(&branch, &mut control.otherwise)?;
        }
        Ok(())
    }

    pub(super) fn else_arm(&mut self, operands: &mut Operands<'_>) -> Result<(), Stop> {
        let module = self.module;
        if self.innermost().kind != Kind::If {
            return Err(operands.refused(Malformed::Opcode).into());
        }
        self.end_arm(operands)?;
        let control = self.innermost();
        if operands.code.is_reachable() {
            let emitter = &mut operands.code.emitter;
            emitter.jump(&mut control.label)?;
            emitter.interrupt();
        }
        control.kind = Kind::Else;
        operands.restart(control.entered);
        operands.code.bind(core::mem::take(&mut control.otherwise))?;
        operands.push_all(module.function_type(control.signature).params());
        Ok(())
    }

    pub(super) fn end(&mut self, operands: &mut Operands<'_>) -> Result<(), Stop> {
        let control = self.innermost();
        let (kind, signature) = (control.kind, control.signature);
        let types = self.module.function_type(signature);
        if kind == Kind::If && !types.params().eq(types.results()) {
            return Err(operands.refused(Invalid::ElseRequired).into());
        }
        self.end_arm(operands)?;
        if self.open.len() == 1 {
            if operands.code.is_reachable() {
                self.emit_return(operands, types);
            }
            self.open.clear();
            return Ok(());
        }
        let control = self.open.pop().expect("just looked at");
        operands.exit(self.innermost().height, control.outer_unreachable);
        if control.label.is_used() || (kind == Kind::If && control.entered) {
            operands.code.set_reachable(true);
        }
        operands.code.bind(control.otherwise)?;
        operands.code.bind(control.label)?;
        operands.push_all(types.results());
        Ok(())
    }

    /// Checks that exactly the innermost block's results are left, and settles them.
    fn end_arm(&mut self, operands: &mut Operands<'_>) -> Checked<()> {
        let control = self.innermost();
        let (signature, height) = (control.signature, control.height);
        let results = self.module.function_type(signature).results();
        operands.expect_top(results.clone(), false);
        if operands.depth() != height + results.len() {
            return Err(operands.refused(Invalid::TypeMismatch));
        }
        if self.open.len() > 1 {
            operands.settle_top(results.len());
        }
        Ok(())
    }

    fn innermost(&mut self) -> &mut Control {
        self.open.last_mut().expect("a body has an outermost block")
    }

    /// How many operands a branch to a block takes with it.
    pub(super) fn arity(&self, target: Target) -> usize {
        let (types, is_loop) = self.label_types(target);
        if is_loop { types.params().len() } else { types.results().len() }
    }

    /// Checks the operands of a branch; how many there are.
    pub(super) fn expect(&self, operands: &mut Operands<'_>, target: Target, keep: bool) -> usize {
        let (types, is_loop) = self.label_types(target);
        if is_loop {
            operands.expect_top(types.params(), keep);
            types.params().len()
        } else {
            operands.expect_top(types.results(), keep);
            types.results().len()
        }
    }

    /// The type of a block, and whether it is a loop, whose parameters a branch takes along.
    fn label_types(&self, target: Target) -> (FunctionType<'w>, bool) {
        let control = &self.open[target.0];
        (self.module.function_type(control.signature), control.kind == Kind::Loop)
    }

    /// Whether a branch to a block with the topmost `count` operands is nothing but a branch: no operand must
    /// move first.
    pub(super) fn is_direct(&self, operands: &Operands<'_>, target: Target, count: usize) -> bool {
        let in_place = || {
            self.open[target.0].height == operands.depth() - count && operands.are_settled(count)
        };
        target != Target::BODY && (count == 0 || in_place())
    }

    /// Goes to the block with the topmost `count` operands, or returns with them.
    pub(super) fn go(
        &mut self,
        operands: &mut Operands<'_>,
        target: Target,
        count: usize,
    ) -> Result<(), Stop> {
        if target == Target::BODY {
            self.emit_return(operands, self.label_types(target).0);
        } else {
            self.move_operands(operands, target, count);
            let control = &mut self.open[target.0];
            let emitter = &mut operands.code.emitter;
            match control.kind {
                Kind::Loop => emitter.jump_back(control.start)?,
                _ => emitter.jump(&mut control.label)?,
            }
        }
        operands.code.emitter.interrupt();
        Ok(())
    }

    /// A conditional branch to a block whose operands are in place.
    pub(super) fn branch(
        &mut self,
        operands: &mut Operands<'_>,
        branch: &Branch,
        target: Target,
    ) -> Result<(), Stop> {
        let control = &mut self.open[target.0];
        let emitter = &mut operands.code.emitter;
        match control.kind {
            Kind::Loop => emitter.branch_back(branch, control.start)?,
            _ => emitter.branch(branch, &mut control.label)?,
        }
        Ok(())
    }

    /// An entry of a table that leads to a block at once.
    pub(super) fn table_entry(
        &mut self,
        operands: &mut Operands<'_>,
        target: Target,
    ) -> Result<(), Stop> {
        let control = &mut self.open[target.0];
        let emitter = &mut operands.code.emitter;
        match control.kind {
            Kind::Loop => emitter.target_back(control.start)?,
            _ => emitter.target(&mut control.label)?,
        }
        Ok(())
    }

    /// Moves the topmost `count` operands to where the block expects them. Ascending order is safe: no
    /// operand moves up.
    fn move_operands(&self, operands: &mut Operands<'_>, target: Target, count: usize) {
        let (from, to) = (operands.depth() - count, self.open[target.0].height);
        for index in 0..count {
            operands.copy_operand(from + index, operands.temporary(to + index));
        }
    }

    /// Returns with the topmost operands.
    fn emit_return(&self, operands: &mut Operands<'_>, types: FunctionType<'_>) {
        let link = self.link;
        let depth = operands.depth().wrapping_sub(1);
        let mut results = types.results();
        match (results.next(), results.next()) {
            (None, _) => operands.perform(isa::RETURN, &[link]),
            (Some(result), None) => match operands.source(operands.peek(depth)) {
                Source::Accumulator => operands.perform(isa::RETURN32_A, &[link]),
                Source::Slot(slot) if result.is_wide() => {
                    operands.perform(isa::RETURN64_S, &[slot, link])
                }
                Source::Slot(slot) => operands.perform(isa::RETURN32_S, &[slot, link]),
                Source::Constant(value) if !result.is_wide() => {
                    operands.constant_to_accumulator(value);
                    operands.perform(isa::RETURN32_A, &[link]);
                }
                Source::Constant(_) => {
                    let own = operands.temporary(depth);
                    operands.copy_operand(depth, own);
                    operands.perform(isa::RETURN64_S, &[own, link]);
                }
            },
            _ => {
                let count = types.results().len();
                let from = operands.depth() - count;
                operands.settle_top(count);
                for index in 0..count {
                    operands.copy_operand(from + index, (index * SLOT_BYTES) as u16);
                }
                operands.perform(isa::RETURN, &[link]);
            }
        }
    }
}
