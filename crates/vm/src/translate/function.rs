//! One function body: checked and translated in one pass (wasm 2.0 §3.3, appendix A.3).

use alloc::vec::Vec;

use super::{
    emitter::{Emitter, Label, TooFar},
    operands::{Operand, Popped, SLOT_BYTES},
};
use crate::{
    error::{Invalid, Limit, Malformed},
    isa,
    limits::Limits,
    value::{FunctionType, ValueType},
    wasm::{Checked, Module, Reader, Refused, TypeEntry, value_type},
};

/// Why a translation did not end.
pub(super) enum Stop {
    Refused,
    /// A short branch cannot reach its target: translate again with far ones.
    TooFar,
}

impl From<Refused> for Stop {
    fn from(_: Refused) -> Stop {
        Stop::Refused
    }
}

impl From<TooFar> for Stop {
    fn from(_: TooFar) -> Stop {
        Stop::TooFar
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Block,
    Loop,
    If,
    Else,
}

/// A block that is open.
pub(super) struct Control {
    pub(super) kind: Kind,
    pub(super) signature: TypeEntry,
    /// Operands below the block's parameters.
    pub(super) height: usize,
    /// Branches to the end of the block.
    pub(super) label: Label,
    /// Where a loop begins.
    pub(super) start: usize,
    /// The branch around the first arm of an `if`.
    pub(super) otherwise: Label,
    /// The rest of the block is never reached: operands may be popped that nobody pushed.
    pub(super) unreachable: bool,
    /// The block was reached.
    pub(super) entered: bool,
}

/// Where a body's code and the module's offsets meet: called for each instruction.
pub(super) type Observer<'o> = &'o mut dyn FnMut(usize, usize);

/// Buffers that are kept from one function to the next.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) code: Vec<u8>,
    locals: Vec<ValueType>,
    operands: Vec<Operand>,
    controls: Vec<Control>,
    scratch: Vec<Popped>,
}

/// The image's record of a function besides its code.
pub(super) struct Frame {
    pub(super) frame_bytes: u16,
    pub(super) link: u16,
    /// Slots after the link that start as zero.
    pub(super) zeros: u16,
}

pub(super) struct Body<'m, 'w> {
    pub(super) module: &'m Module<'w>,
    pub(super) reader: Reader<'w>,
    pub(super) emitter: Emitter,
    pub(super) locals: Vec<ValueType>,
    params: usize,
    /// Index of the slot that holds the return link.
    link: usize,
    pub(super) temporaries_from: usize,
    pub(super) operands: Vec<Operand>,
    pub(super) operands_max: usize,
    /// No operand below this depth waits in a local's slot.
    pub(super) settled: usize,
    pub(super) frame_bytes_max: usize,
    pub(super) controls: Vec<Control>,
    nesting_max: usize,
    /// Code is emitted only where it can be reached.
    pub(super) reachable: bool,
    /// Depth of the operand that is in the accumulator alone.
    pub(super) accumulator_depth: Option<usize>,
    /// Slot that holds the same 32 bits as the accumulator.
    pub(super) mirror: Option<u16>,
    /// Destination of the last instruction, if it went to a slot.
    pub(super) last_slot: u16,
    pub(super) scratch: Vec<Popped>,
}

/// Translates one body; its code is left in `buffers.code`.
pub(super) fn translate_body(
    module: &Module<'_>,
    function: TypeEntry,
    reader: Reader<'_>,
    limits: &Limits,
    buffers: &mut Buffers,
    wide: bool,
    observe: Observer<'_>,
) -> Result<Frame, Stop> {
    let mut taken = core::mem::take(buffers);
    taken.code.clear();
    taken.locals.clear();
    taken.operands.clear();
    taken.controls.clear();
    let mut body = Body {
        module,
        reader,
        emitter: Emitter::new(taken.code, wide),
        locals: taken.locals,
        params: function.params as usize,
        link: function.params.max(function.results) as usize,
        temporaries_from: 0,
        operands: taken.operands,
        operands_max: 0,
        settled: 0,
        frame_bytes_max: limits.frame_bytes.min(65_528) as usize,
        controls: taken.controls,
        nesting_max: limits.nesting as usize,
        reachable: true,
        accumulator_depth: None,
        mirror: None,
        last_slot: 0,
        scratch: taken.scratch,
    };
    let outcome = body.translate(function, limits, observe);
    *buffers = Buffers {
        code: body.emitter.code,
        locals: body.locals,
        operands: body.operands,
        controls: body.controls,
        scratch: body.scratch,
    };
    outcome
}

impl<'w> Body<'_, 'w> {
    fn translate(
        &mut self,
        function: TypeEntry,
        limits: &Limits,
        observe: Observer<'_>,
    ) -> Result<Frame, Stop> {
        self.read_locals(function, limits)?;
        self.temporaries_from = self.link + 1 + self.locals.len() - self.params;
        if (self.temporaries_from + 1) * SLOT_BYTES > self.frame_bytes_max {
            return Ok(self.reader.error(Limit::FrameBytes)?);
        }
        self.open(Kind::Block, TypeEntry { params: 0, ..function })?;
        while !self.controls.is_empty() {
            observe(self.emitter.position(), self.reader.offset());
            self.instruction()?;
            // A refusal that didn't end the instruction.
            self.reader.unless_refused()?;
        }
        if !self.reader.is_empty() {
            return Ok(self.reader.error(Malformed::BodySize)?);
        }
        Ok(Frame {
            frame_bytes: ((self.temporaries_from + self.operands_max) * SLOT_BYTES) as u16,
            link: (self.link * SLOT_BYTES) as u16,
            zeros: (self.locals.len() - self.params) as u16,
        })
    }

    fn read_locals(&mut self, function: TypeEntry, limits: &Limits) -> Checked<()> {
        self.locals.extend(self.module.function_type(function).params());
        let groups = self.reader.u32()?;
        let mut total = self.locals.len() as u64;
        for _ in 0..groups {
            let count = self.reader.u32()?;
            total += count as u64;
            if total > u32::MAX as u64 {
                return self.reader.error(Malformed::TooManyLocals);
            }
            let value_type = value_type(&mut self.reader)?;
            if total > limits.locals as u64 {
                return self.reader.error(Limit::Locals);
            }
            self.locals.extend(core::iter::repeat_n(value_type, count as usize));
        }
        Ok(())
    }

    /// Type and slot of a local variable.
    pub(super) fn local(&mut self) -> Checked<(ValueType, u16)> {
        let start = self.reader;
        let index = self.reader.u32()? as usize;
        let Some(&value_type) = self.locals.get(index) else {
            return start.error(Invalid::UnknownLocal);
        };
        let slot = if index < self.params { index } else { self.link + 1 + index - self.params };
        Ok((value_type, (slot * SLOT_BYTES) as u16))
    }

    pub(super) fn open(&mut self, kind: Kind, signature: TypeEntry) -> Checked<()> {
        if self.controls.len() >= self.nesting_max {
            return self.reader.error(Limit::Nesting);
        }
        let height = self.operands.len();
        self.controls.push(Control {
            kind,
            signature,
            height,
            label: Label::default(),
            start: self.emitter.position(),
            otherwise: Label::default(),
            unreachable: false,
            entered: self.reachable,
        });
        let module = self.module;
        for value_type in module.function_type(signature).params() {
            self.push_temporary(Some(value_type));
        }
        Ok(())
    }

    /// The rest of the block is not reached.
    pub(super) fn leave(&mut self) {
        let control = self.controls.last_mut().expect("a body has an outermost block");
        control.unreachable = true;
        self.operands.truncate(control.height);
        self.settled = self.settled.min(self.operands.len());
        self.accumulator_depth = None;
        self.mirror = None;
        if self.reachable {
            self.emitter.interrupt();
        }
        self.reachable = false;
    }

    /// `block`, `loop`.
    pub(super) fn block(&mut self, kind: Kind, signature: TypeEntry) -> Checked<()> {
        let module = self.module;
        let params = module.function_type(signature).params();
        self.expect_top(params.clone(), false);
        self.settle_for_block(params.len());
        self.pop_all(params);
        if kind == Kind::Loop {
            self.emitter.seal();
            self.mirror = None;
        }
        self.open(kind, signature)
    }

    pub(super) fn if_block(&mut self, signature: TypeEntry) -> Result<(), Stop> {
        let module = self.module;
        let params = module.function_type(signature).params();
        let condition = self.pop(Some(ValueType::I32));
        self.expect_top(params.clone(), false);
        let branch = self.condition(condition, true);
        self.settle_for_block(params.len());
        self.pop_all(params);
        self.open(Kind::If, signature)?;
        if self.reachable {
            let mut otherwise = Label::default();
            self.branch_forward(&branch, &mut otherwise)?;
            self.controls.last_mut().expect("just opened").otherwise = otherwise;
        }
        Ok(())
    }

    pub(super) fn else_arm(&mut self) -> Result<(), Stop> {
        let module = self.module;
        let control = self.controls.last().expect("a body has an outermost block");
        let (signature, height, entered) = (control.signature, control.height, control.entered);
        if control.kind != Kind::If {
            return Ok(self.reader.error(Malformed::Opcode)?);
        }
        self.end_arm(signature, height)?;
        if self.reachable {
            let mut label = self.controls.last().expect("still open").label;
            self.jump_forward(&mut label)?;
            self.controls.last_mut().expect("still open").label = label;
            self.emitter.interrupt();
        }
        let control = self.controls.last_mut().expect("still open");
        control.kind = Kind::Else;
        control.unreachable = false;
        let otherwise = core::mem::take(&mut control.otherwise);
        self.operands.truncate(height);
        self.settled = self.settled.min(height);
        self.accumulator_depth = None;
        self.reachable = entered;
        self.bind(otherwise)?;
        for value_type in module.function_type(signature).params() {
            self.push_temporary(Some(value_type));
        }
        Ok(())
    }

    /// Checks that exactly the block's results are left, and settles them.
    fn end_arm(&mut self, signature: TypeEntry, height: usize) -> Checked<()> {
        let module = self.module;
        let results = module.function_type(signature).results();
        self.expect_top(results.clone(), false);
        if self.operands.len() != height + results.len() {
            return self.reader.error(Invalid::TypeMismatch);
        }
        if self.controls.len() > 1 {
            self.settle_top(results.len());
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Stop> {
        let module = self.module;
        let control = self.controls.last().expect("a body has an outermost block");
        let (signature, height) = (control.signature, control.height);
        let types = module.function_type(signature);
        if control.kind == Kind::If && !types.params().eq(types.results()) {
            return Ok(self.reader.error(Invalid::ElseRequired)?);
        }
        self.end_arm(signature, height)?;
        if self.controls.len() == 1 {
            if self.reachable {
                self.emit_return(types)?;
            }
            self.controls.clear();
            return Ok(());
        }
        let control = self.controls.pop().expect("just looked at");
        self.reachable |= control.label.is_used() || (control.kind == Kind::If && control.entered);
        self.bind(control.otherwise)?;
        self.bind(control.label)?;
        self.operands.truncate(height);
        self.settled = self.settled.min(height);
        self.accumulator_depth = None;
        for value_type in types.results() {
            self.push_temporary(Some(value_type));
        }
        Ok(())
    }

    fn bind(&mut self, label: Label) -> Result<(), TooFar> {
        if label.is_used() {
            self.mirror = None;
            if self.emitter.wide {
                self.emitter.bind_far(label);
            } else {
                self.emitter.bind(label)?;
            }
        }
        Ok(())
    }

    /// Types that a branch to a block takes with it.
    pub(super) fn label_types(&self, control: &Control) -> (FunctionType<'w>, bool) {
        (self.module.function_type(control.signature), control.kind == Kind::Loop)
    }

    /// Reads a label: the index of the block it names.
    pub(super) fn label(&mut self) -> Checked<usize> {
        let start = self.reader;
        let depth = self.reader.u32()? as usize;
        match self.controls.len().checked_sub(depth.saturating_add(1)) {
            Some(index) => Ok(index),
            None => start.error(Invalid::UnknownLabel),
        }
    }

    /// Checks the operands of a branch; how many there are.
    pub(super) fn expect_label(&mut self, target: usize, keep: bool) -> Checked<usize> {
        let (types, is_loop) = self.label_types(&self.controls[target]);
        if is_loop {
            self.expect_top(types.params(), keep);
            Ok(types.params().len())
        } else {
            self.expect_top(types.results(), keep);
            Ok(types.results().len())
        }
    }

    /// Byte offset of the return link.
    pub(super) fn link_slot(&self) -> u16 {
        (self.link * SLOT_BYTES) as u16
    }

    pub(super) fn set_unreachable(&mut self) {
        self.perform(isa::UNREACHABLE, &[]);
        self.leave();
    }
}
