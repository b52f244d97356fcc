//! The operand stack while translating: where each value is, and the moves that bring it elsewhere.
//!
//! A value is moved as late as possible: constants and unchanged locals stay where they are until an
//! instruction names them. One 32-bit value may be in the accumulator alone.

use super::{emitter::Produced, function::Body};
use crate::{
    error::{Invalid, Limit, TranslateErrorKind},
    isa,
    value::ValueType,
    wasm::Checked,
};

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the slot of its depth.
    Temporary,
    /// In the slot of a local variable (byte offset in the frame).
    Local(u16),
    /// Nowhere yet; of a 64-bit type, sign-extended.
    Constant(i32),
    /// In the accumulator.
    Accumulator,
}

/// An entry of the operand stack; without a type after code that is never reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) value_type: Option<ValueType>,
    pub(super) place: Place,
}

/// An operand taken from the stack, with the depth that it had.
#[derive(Clone, Copy)]
pub(super) struct Popped {
    pub(super) value_type: Option<ValueType>,
    kind: PlaceKind,
    depth: u16,
    /// A constant, or a local's slot.
    bits: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PlaceKind {
    Temporary,
    Local,
    Constant,
    Accumulator,
}

impl Popped {
    fn new(Operand { value_type, place }: Operand, depth: usize) -> Popped {
        let (kind, bits) = match place {
            Place::Temporary => (PlaceKind::Temporary, 0),
            Place::Local(slot) => (PlaceKind::Local, slot as i32),
            Place::Constant(value) => (PlaceKind::Constant, value),
            Place::Accumulator => (PlaceKind::Accumulator, 0),
        };
        Popped { value_type, kind, depth: depth as u16, bits }
    }

    fn is_wide(self) -> bool {
        self.value_type.is_some_and(ValueType::is_wide)
    }

    fn depth(self) -> usize {
        self.depth as usize
    }

    fn place(self) -> Place {
        match self.kind {
            PlaceKind::Temporary => Place::Temporary,
            PlaceKind::Local => Place::Local(self.bits as u16),
            PlaceKind::Constant => Place::Constant(self.bits),
            PlaceKind::Accumulator => Place::Accumulator,
        }
    }
}

impl Operand {
    fn is_wide(self) -> bool {
        self.value_type.is_some_and(ValueType::is_wide)
    }
}

/// The operands that an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Slot(u16),
    Accumulator,
    Constant(i32),
}

pub(super) const SLOT_BYTES: usize = 8;

impl Body<'_, '_> {
    /// Byte offset of the slot at a depth of the operand stack.
    pub(super) fn temporary(&self, depth: usize) -> u16 {
        ((self.temporaries_from + depth) * SLOT_BYTES) as u16
    }

    fn push(&mut self, value_type: Option<ValueType>, place: Place) {
        self.operands.push(Operand { value_type, place });
        self.operands_max = self.operands_max.max(self.operands.len());
        let frame_bytes = (self.temporaries_from + self.operands_max) * SLOT_BYTES;
        if frame_bytes > self.frame_bytes_max {
            self.refuse(Limit::FrameBytes);
        }
    }

    /// Refuses the module: the translation ends with the instruction at hand, which may go on until then.
    pub(super) fn refuse(&self, kind: impl Into<TranslateErrorKind>) {
        let _: Checked<()> = self.reader.error(kind);
    }

    pub(super) fn push_constant(&mut self, value_type: ValueType, value: i32) {
        self.push(Some(value_type), Place::Constant(value))
    }

    pub(super) fn push_local(&mut self, value_type: ValueType, slot: u16) {
        self.push(Some(value_type), Place::Local(slot))
    }

    pub(super) fn push_temporary(&mut self, value_type: Option<ValueType>) {
        self.push(value_type, Place::Temporary)
    }

    /// Pops an operand of the given type, or of any.
    pub(super) fn pop(&mut self, expected: Option<ValueType>) -> Popped {
        let depth = self.operands.len();
        let (height, unreachable) = match self.controls.last() {
            Some(block) => (block.height, block.unreachable),
            None => (0, false),
        };
        let operand = if depth > height { self.operands.pop() } else { None };
        let Some(operand) = operand else {
            if !unreachable {
                self.refuse(Invalid::TypeMismatch);
            }
            return Popped::new(Operand { value_type: None, place: Place::Temporary }, depth);
        };
        if let (Some(found), Some(expected)) = (operand.value_type, expected)
            && found != expected
        {
            self.refuse(Invalid::TypeMismatch);
        }
        if operand.place == Place::Accumulator {
            self.accumulator_depth = None;
        }
        self.settled = self.settled.min(depth - 1);
        Popped::new(operand, depth - 1)
    }

    /// Pushes an operand that was just popped, perhaps under another type of the same width.
    pub(super) fn push_back(&mut self, popped: Popped, value_type: Option<ValueType>) {
        if popped.place() == Place::Accumulator {
            self.accumulator_depth = Some(self.operands.len());
        }
        self.push(value_type, popped.place())
    }

    /// Checks that operands of these types lie on top, and leaves them there. In code that is never
    /// reached, operands without a type take the expected one, or with `keep` stay without.
    pub(super) fn expect_top(
        &mut self,
        types: impl DoubleEndedIterator<Item = ValueType> + Clone,
        keep: bool,
    ) {
        let mut popped = core::mem::take(&mut self.scratch);
        popped.clear();
        for value_type in types.clone().rev() {
            popped.push(self.pop(Some(value_type)));
        }
        for (&operand, value_type) in popped.iter().rev().zip(types) {
            self.push_back(operand, if keep { operand.value_type } else { Some(value_type) });
        }
        self.scratch = popped;
    }

    /// Pops operands of these types.
    pub(super) fn pop_all(&mut self, types: impl DoubleEndedIterator<Item = ValueType>) {
        for value_type in types.rev() {
            self.pop(Some(value_type));
        }
    }

    /// The operand at a depth, as if popped.
    pub(super) fn peek(&self, depth: usize) -> Popped {
        Popped::new(self.operands[depth], depth)
    }

    /// How an instruction best reads a popped operand.
    pub(super) fn source(&self, popped: Popped) -> Source {
        let slot = match popped.place() {
            Place::Constant(value) => return Source::Constant(value),
            Place::Accumulator => return Source::Accumulator,
            Place::Local(slot) => slot,
            Place::Temporary => self.temporary(popped.depth()),
        };
        if self.mirror == Some(slot) && !popped.is_wide() {
            Source::Accumulator
        } else {
            Source::Slot(slot)
        }
    }

    /// The slot of a popped operand, which is moved to its own if it is in none.
    pub(super) fn slot(&mut self, popped: Popped) -> u16 {
        let own = self.temporary(popped.depth());
        match popped.place() {
            Place::Temporary => return own,
            Place::Local(slot) => return slot,
            Place::Constant(value) => self.emit_constant(popped.is_wide(), value, own),
            Place::Accumulator => self.store_accumulator(own),
        }
        own
    }

    /// The slot of a popped operand of which the accumulator may hold a copy.
    pub(super) fn is_in_accumulator(&self, popped: Popped) -> bool {
        self.source(popped) == Source::Accumulator
    }

    /// The slot of a popped constant's depth, into which another value goes that stands for it.
    pub(super) fn slot_for_constant(&mut self, popped: Popped, value: i32) -> u16 {
        let own = self.temporary(popped.depth());
        self.emit_constant(false, value, own);
        own
    }

    /// Whether a popped operand is the truth of the comparison that was emitted last.
    pub(super) fn is_fresh_truth(&self, popped: Popped) -> bool {
        self.reachable
            && popped.place() == Place::Accumulator
            && self.emitter.produced == Produced::Truth
    }

    /// A slot was written: it no longer equals the accumulator.
    pub(super) fn wrote(&mut self, slot: u16) {
        if self.mirror == Some(slot) {
            self.mirror = None;
        }
    }

    /// Brings the accumulator's value to a slot; it stays in the accumulator.
    fn store_accumulator(&mut self, slot: u16) {
        if !self.reachable {
            return;
        }
        if self.emitter.produced == Produced::Accumulator {
            self.emitter.direct_to_slot(slot);
            self.last_slot = slot;
        } else {
            self.emitter.emit(isa::COPY_A, &[slot]);
        }
        self.mirror = Some(slot);
    }

    /// Makes the accumulator free for the next instruction: its value goes to its slot, if still needed.
    pub(super) fn free_accumulator(&mut self) {
        if let Some(depth) = self.accumulator_depth.take() {
            self.operands[depth].place = Place::Temporary;
            self.store_accumulator(self.temporary(depth));
        }
    }

    fn emit_constant(&mut self, wide: bool, value: i32, slot: u16) {
        if !self.reachable {
            return;
        }
        self.wrote(slot);
        match i16::try_from(value) {
            Ok(value) if wide => self.emitter.emit(isa::CONST64_16, &[value as u16, slot]),
            Ok(value) => self.emitter.emit(isa::CONST16_S, &[value as u16, slot]),
            Err(_) if wide => {
                let value = value as i64;
                let unit = |index: u32| (value >> (16 * index)) as u16;
                self.emitter.emit(isa::CONST64, &[unit(0), unit(1), unit(2), unit(3), slot]);
            }
            Err(_) => {
                self.emitter.emit(isa::CONST32_S, &[value as u16, (value >> 16) as u16, slot])
            }
        }
        self.emitter.produced = Produced::Slot;
        self.last_slot = slot;
    }

    /// Loads a constant into the accumulator.
    pub(super) fn constant_to_accumulator(&mut self, value: i32) {
        self.free_accumulator();
        if !self.reachable {
            return;
        }
        match i16::try_from(value) {
            Ok(value) => self.emitter.emit(isa::CONST16_A, &[value as u16]),
            Err(_) => self.emitter.emit(isa::CONST32_A, &[value as u16, (value >> 16) as u16]),
        }
        self.mirror = None;
    }

    fn copy(&mut self, wide: bool, from: u16, to: u16) {
        if !self.reachable || from == to {
            return;
        }
        self.wrote(to);
        if wide {
            self.emitter.emit(isa::COPY64, &[from, to]);
        } else if self.mirror == Some(from) {
            self.emitter.emit(isa::COPY_A, &[to]);
        } else if self.emitter.just_emitted(isa::COPY32) {
            self.emitter.extend(isa::COPY32_PAIR, &[from, to]);
        } else {
            self.emitter.emit(isa::COPY32, &[from, to]);
        }
        self.emitter.produced = Produced::Slot;
        self.last_slot = to;
    }

    /// Emits what brings the operand at `depth` to `slot`; the operand stack stays as it is.
    pub(super) fn copy_operand(&mut self, depth: usize, slot: u16) {
        let operand = self.operands[depth];
        match operand.place {
            Place::Constant(value) => self.emit_constant(operand.is_wide(), value, slot),
            Place::Local(from) => self.copy(operand.is_wide(), from, slot),
            Place::Temporary => self.copy(operand.is_wide(), self.temporary(depth), slot),
            Place::Accumulator => self.store_accumulator(slot),
        }
    }

    /// Moves the operand at `depth` to its own slot.
    pub(super) fn settle(&mut self, depth: usize) {
        match self.operands[depth].place {
            Place::Temporary => {}
            Place::Accumulator => self.free_accumulator(),
            Place::Constant(_) | Place::Local(_) => {
                self.copy_operand(depth, self.temporary(depth));
                self.operands[depth].place = Place::Temporary;
            }
        }
    }

    /// Settles the topmost `count` operands.
    pub(super) fn settle_top(&mut self, count: usize) {
        self.free_accumulator();
        let from = self.operands.len().saturating_sub(count);
        for depth in from..self.operands.len() {
            self.settle(depth);
        }
    }

    /// Before control flow splits: locals that wait on the stack settle, and the topmost `count`
    /// operands whatever they are; other constants may wait on.
    pub(super) fn settle_for_block(&mut self, count: usize) {
        self.free_accumulator();
        let top = self.operands.len().saturating_sub(count);
        for depth in self.settled..self.operands.len() {
            if depth >= top || matches!(self.operands[depth].place, Place::Local(_)) {
                self.settle(depth);
            }
        }
        self.settled = self.operands.len();
    }

    /// Before a local changes: copies of its old value that wait on the stack settle.
    fn preserve_local(&mut self, slot: u16) {
        for depth in self.settled..self.operands.len() {
            if self.operands[depth].place == Place::Local(slot) {
                self.settle(depth);
            }
        }
    }

    /// Stores a popped operand to a local variable.
    pub(super) fn set_local(&mut self, popped: Popped, slot: u16) {
        let waiting = (self.settled..self.operands.len())
            .any(|depth| self.operands[depth].place == Place::Local(slot));
        if waiting {
            self.preserve_local(slot);
        }
        match popped.place() {
            Place::Accumulator => {
                self.wrote(slot);
                self.store_accumulator(slot);
            }
            Place::Constant(value) => self.emit_constant(popped.is_wide(), value, slot),
            Place::Local(from) => self.copy(popped.is_wide(), from, slot),
            Place::Temporary => {
                let own = self.temporary(popped.depth());
                let last = self.emitter.produced == Produced::Slot && self.last_slot == own;
                if last && !waiting && self.reachable {
                    self.emitter.redirect(slot);
                    self.last_slot = slot;
                    self.wrote(slot);
                    if self.mirror == Some(own) {
                        self.mirror = Some(slot);
                    }
                } else {
                    self.copy(popped.is_wide(), own, slot);
                }
            }
        }
    }

    /// Emits an instruction whose 32-bit result is in the accumulator, and pushes the result.
    pub(super) fn produce(&mut self, opcode: u16, operands: &[u16], value_type: ValueType) {
        self.free_accumulator();
        if self.reachable {
            self.emitter.emit(opcode, operands);
            self.emitter.produced = Produced::Accumulator;
        }
        self.push_accumulator(value_type)
    }

    /// As `produce`, for a comparison.
    pub(super) fn produce_truth(&mut self, opcode: u16, operands: &[u16]) {
        self.free_accumulator();
        if self.reachable {
            self.emitter.emit(opcode, operands);
            self.emitter.produced = Produced::Truth;
        }
        self.push_accumulator(ValueType::I32)
    }

    fn push_accumulator(&mut self, value_type: ValueType) {
        self.mirror = None;
        self.push(Some(value_type), Place::Accumulator);
        self.accumulator_depth = Some(self.operands.len() - 1);
    }

    /// Emits an instruction whose result goes to a slot, the last operand, and pushes the result. With
    /// `mirrored` the instruction leaves the result in the accumulator too.
    pub(super) fn produce_slot(&mut self, opcode: u16, operands: &[u16], value_type: ValueType) {
        let slot = self.temporary(self.operands.len());
        self.push_temporary(Some(value_type));
        if self.reachable {
            let mut units = [0; 6];
            units[..operands.len()].copy_from_slice(operands);
            units[operands.len()] = slot;
            self.emitter.emit(opcode, &units[..=operands.len()]);
            self.emitter.produced = Produced::Slot;
            self.last_slot = slot;
            self.wrote(slot);
        }
    }

    /// Emits an instruction without a result.
    pub(super) fn perform(&mut self, opcode: u16, operands: &[u16]) {
        if self.reachable {
            self.emitter.emit(opcode, operands);
        }
    }
}
