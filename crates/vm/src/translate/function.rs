//! One function body: checked and translated in one pass (wasm 2.0 §3.3, appendix A.3).

use alloc::vec::Vec;

use super::{
    blocks::{Blocks, Control, Kind},
    code::Code,
    emitter::{Emitter, TooFar},
    locals::Locals,
    operands::{OperandLists, Operands, SLOT_BYTES},
    pieces::Pieces,
};
use crate::{
    error::{Invalid, Limit, Malformed, TranslateErrorKind},
    limits::Limits,
    value::ValueType,
    wasm::{Checked, Module, Reader, Refused, TypeEntry},
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

/// Where a body's code and the module's offsets meet: called for each instruction.
pub(super) type Observer<'o> = &'o mut dyn FnMut(usize, usize);

/// Buffers that are kept from one function to the next.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) code: Pieces,
    locals: Vec<ValueType>,
    operands: OperandLists,
    blocks: Vec<Control>,
}

/// The image's record of a function, besides its code and what its type says.
pub(super) struct Frame {
    pub(super) frame_bytes: u16,
    /// Slots after the link that start as zero.
    pub(super) zeros: u16,
}

impl Frame {
    /// That of an imported function, whose link lies there.
    pub(super) fn of_import(link: u16) -> Frame {
        Frame { frame_bytes: link + SLOT_BYTES as u16, zeros: 0 }
    }
}

/// The longest frame, whatever the limits allow.
const FRAME_BYTES_MAX: u16 = 65_528;

/// The body at hand: what is read, and the parts that each own their side of the translation.
pub(super) struct Body<'m, 'w> {
    pub(super) module: &'m Module<'w>,
    pub(super) reader: Reader<'w>,
    pub(super) locals: Locals,
    pub(super) blocks: Blocks<'m, 'w>,
    pub(super) operands: Operands<'w>,
}

/// Translates one body; its code is left in `buffers.code`.
pub(super) fn translate_body(
    module: &Module<'_>,
    function: TypeEntry,
    mut reader: Reader<'_>,
    limits: &Limits,
    buffers: &mut Buffers,
    wide: bool,
    observe: Observer<'_>,
) -> Result<Frame, Stop> {
    let mut taken = core::mem::take(buffers);
    taken.code.clear();
    taken.blocks.clear();
    let locals = Locals::read(module, function, &mut reader, limits, taken.locals)?;
    let frame_bytes_max = limits.frame_bytes.min(FRAME_BYTES_MAX as u32) as usize;
    if (locals.slots() + 1) * SLOT_BYTES > frame_bytes_max {
        return Ok(reader.error(Limit::FrameBytes)?);
    }
    let code = Code::new(Emitter::new(taken.code, wide));
    let verdict = reader.verdict();
    let mut body = Body {
        module,
        reader,
        operands: Operands::new(code, verdict, taken.operands, locals.slots(), frame_bytes_max),
        blocks: Blocks::new(module, taken.blocks, limits.nesting as usize, locals.link()),
        locals,
    };
    let outcome = body.translate(function, observe);
    let (code, operands) = body.operands.into_parts();
    *buffers = Buffers {
        code: code.emitter.into_code(),
        locals: body.locals.into_list(),
        operands,
        blocks: body.blocks.into_list(),
    };
    outcome
}

impl Body<'_, '_> {
    fn translate(&mut self, function: TypeEntry, observe: Observer<'_>) -> Result<Frame, Stop> {
        let body = TypeEntry { params: 0, ..function };
        let opened = self.blocks.open(&mut self.operands, Kind::Block, body);
        self.reader.unless_refused()?;
        opened?;
        while !self.blocks.is_empty() {
            observe(self.operands.code.emitter.position(), self.reader.offset());
            if !self.operands.make_room(self.module.arity_max) {
                return Ok(self.reader.error(TranslateErrorKind::OutOfMemory)?);
            }
            let outcome = self.instruction();
            if self.operands.code.emitter.is_cut() {
                self.operands.refuse(TranslateErrorKind::OutOfMemory);
            }
            // A refusal that didn't end the instruction, or one that has no place yet.
            self.reader.unless_refused()?;
            outcome?;
        }
        if !self.reader.is_empty() {
            return Ok(self.reader.error(Malformed::BodySize)?);
        }
        Ok(Frame { frame_bytes: self.operands.frame_bytes() as u16, zeros: self.locals.zeros() })
    }

    /// Reads the index of a local variable: its type and slot.
    pub(super) fn local(&mut self) -> Checked<(ValueType, u16)> {
        let start = self.reader;
        let index = self.reader.u32()?;
        match self.locals.find(index) {
            Some(local) => Ok(local),
            None => start.error(Invalid::UnknownLocal),
        }
    }
}
