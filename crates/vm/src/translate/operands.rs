//! The operand stack while translating: where each value is, and the moves that bring it elsewhere.
//!
//! A value is moved as late as possible: constants and unchanged locals stay where they are until an
//! instruction names them. One 32-bit value may be in the accumulator alone.
//!
//! Invariants:
//! - Nothing below the floor of the innermost block is popped.
//! - `accumulator_depth` is the depth of the only operand in the accumulator, if there is one.
//! - No operand below the depth `settled` waits in a local's slot.

use alloc::vec::Vec;

use super::{
    code::Code,
    emitter::{Branch, Produced},
};
use crate::{
    error::{Invalid, Limit, TranslateErrorKind},
    value::ValueType,
    wasm::{Refused, Verdict},
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
/// The most operands that an instruction pushes whose number no type says: bulk operations put three back.
const PUSHED_MAX: usize = 3;
/// The steps in which the stack grows.
const STACK_STEP: usize = 16;

/// Lists that are kept from one function to the next.
#[derive(Default)]
pub(super) struct OperandLists {
    stack: Vec<Operand>,
    scratch: Vec<Popped>,
}

pub(super) struct Operands<'w> {
    pub(super) code: Code,
    verdict: &'w Verdict,
    stack: Vec<Operand>,
    depth_max: usize,
    /// Slots of the frame below the first operand's.
    slots_below: usize,
    frame_bytes_max: usize,
    /// Operands below the innermost block's.
    floor: usize,
    /// The rest of the innermost block is never reached: operands may be popped that nobody pushed.
    unreachable: bool,
    settled: usize,
    accumulator_depth: Option<usize>,
    scratch: Vec<Popped>,
}

impl<'w> Operands<'w> {
    /// An empty stack whose slots lie behind so many others.
    pub(super) fn new(
        code: Code,
        verdict: &'w Verdict,
        lists: OperandLists,
        slots_below: usize,
        frame_bytes_max: usize,
    ) -> Operands<'w> {
        let OperandLists { mut stack, scratch } = lists;
        stack.clear();
        Operands {
            code,
            verdict,
            stack,
            depth_max: 0,
            slots_below,
            frame_bytes_max,
            floor: 0,
            unreachable: false,
            settled: 0,
            accumulator_depth: None,
            scratch,
        }
    }

    /// The code that was emitted, and the lists to go on with.
    pub(super) fn into_parts(self) -> (Code, OperandLists) {
        (self.code, OperandLists { stack: self.stack, scratch: self.scratch })
    }

    /// Bytes of the frame: what lies below the operands, and the deepest stack.
    pub(super) fn frame_bytes(&self) -> usize {
        (self.slots_below + self.depth_max) * SLOT_BYTES
    }

    /// Number of operands.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Byte offset of the slot at a depth of the operand stack.
    pub(super) fn temporary(&self, depth: usize) -> u16 {
        ((self.slots_below + depth) * SLOT_BYTES) as u16
    }

    /// Makes room for what one instruction pushes, of a module none of whose types has more than `arity_max` parameters
    /// or results. `false` if the heap has none.
    pub(super) fn make_room(&mut self, arity_max: usize) -> bool {
        let pushed = arity_max.max(PUSHED_MAX);
        let spare = self.stack.capacity() - self.stack.len();
        (spare >= pushed || self.stack.try_reserve_exact(pushed + STACK_STEP).is_ok())
            && self.scratch.try_reserve_exact(pushed).is_ok()
    }

    /// Pushes an operand, for which [there is room](Self::make_room).
    fn push(&mut self, value_type: Option<ValueType>, place: Place) {
        self.stack.push(Operand { value_type, place });
        self.depth_max = self.depth_max.max(self.stack.len());
        if self.frame_bytes() > self.frame_bytes_max {
            self.refuse(Limit::FrameBytes);
        }
    }

    /// Refuses the module: the translation ends with the instruction at hand, which may go on until then.
    pub(super) fn refuse(&self, kind: impl Into<TranslateErrorKind>) {
        let Refused = self.refused(kind);
    }

    /// As `refuse`, for who ends the instruction at once.
    pub(super) fn refused(&self, kind: impl Into<TranslateErrorKind>) -> Refused {
        self.verdict.refuse_unplaced(kind.into())
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

    /// Pushes operands that are in their slots.
    pub(super) fn push_all(&mut self, types: impl Iterator<Item = ValueType>) {
        for value_type in types {
            self.push_temporary(Some(value_type));
        }
    }

    /// Pops an operand of the given type, or of any.
    pub(super) fn pop(&mut self, expected: Option<ValueType>) -> Popped {
        let depth = self.stack.len();
        let operand = if depth > self.floor { self.stack.pop() } else { None };
        let Some(operand) = operand else {
            if !self.unreachable {
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
            self.accumulator_depth = Some(self.stack.len());
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
        for value_type in types.clone().rev() {
            popped.push(self.pop(Some(value_type)));
        }
        for (&operand, value_type) in popped.iter().rev().zip(types) {
            self.push_back(operand, if keep { operand.value_type } else { Some(value_type) });
        }
        popped.clear();
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
        Popped::new(self.stack[depth], depth)
    }

    /// How an instruction best reads a popped operand.
    pub(super) fn source(&self, popped: Popped) -> Source {
        let slot = match popped.place() {
            Place::Constant(value) => return Source::Constant(value),
            Place::Accumulator => return Source::Accumulator,
            Place::Local(slot) => slot,
            Place::Temporary => self.temporary(popped.depth()),
        };
        if self.code.mirrors(slot) && !popped.is_wide() {
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
            Place::Constant(value) => self.code.constant(popped.is_wide(), value, own),
            Place::Accumulator => self.code.store_accumulator(own),
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
        self.code.constant(false, value, own);
        own
    }

    /// Turns the truth of the comparison that was emitted last, which `popped` is, into its opposite; whether
    /// that is possible.
    pub(super) fn negate(&mut self, popped: Popped) -> bool {
        let fresh = self.is_fresh_truth(popped);
        if fresh {
            self.code.emitter.negate_comparison();
        }
        fresh
    }

    /// The branch that is taken if `condition` holds, or with `negate` if it does not. A comparison
    /// that has just been emitted becomes part of it.
    pub(super) fn condition(&mut self, condition: Popped, negate: bool) -> Branch {
        if self.is_fresh_truth(condition)
            && let Some(branch) = self.code.emitter.take_comparison(negate)
        {
            return branch;
        }
        let in_accumulator = self.is_in_accumulator(condition);
        let slot = if in_accumulator { None } else { Some(self.slot(condition)) };
        Branch::on_value(slot, negate)
    }

    /// Whether a popped operand is the truth of the comparison that was emitted last.
    fn is_fresh_truth(&self, popped: Popped) -> bool {
        popped.place() == Place::Accumulator && self.code.has_fresh_truth()
    }

    /// Makes the accumulator free for the next instruction: its value goes to its slot, if still needed.
    pub(super) fn free_accumulator(&mut self) {
        if let Some(depth) = self.accumulator_depth.take() {
            self.stack[depth].place = Place::Temporary;
            self.code.store_accumulator(self.temporary(depth));
        }
    }

    /// Loads a constant into the accumulator.
    pub(super) fn constant_to_accumulator(&mut self, value: i32) {
        self.free_accumulator();
        self.code.constant_to_accumulator(value);
    }

    /// Whether the topmost `count` operands are in their own slots.
    pub(super) fn are_settled(&self, count: usize) -> bool {
        let top = &self.stack[self.stack.len() - count..];
        top.iter().all(|operand| operand.place == Place::Temporary)
    }

    /// Emits what brings the operand at `depth` to `slot`; the operand stack stays as it is.
    pub(super) fn copy_operand(&mut self, depth: usize, slot: u16) {
        let operand = self.stack[depth];
        match operand.place {
            Place::Constant(value) => self.code.constant(operand.is_wide(), value, slot),
            Place::Local(from) => self.code.copy(operand.is_wide(), from, slot),
            Place::Temporary => self.code.copy(operand.is_wide(), self.temporary(depth), slot),
            Place::Accumulator => self.code.store_accumulator(slot),
        }
    }

    /// Moves the operand at `depth` to its own slot.
    pub(super) fn settle(&mut self, depth: usize) {
        match self.stack[depth].place {
            Place::Temporary => {}
            Place::Accumulator => self.free_accumulator(),
            Place::Constant(_) | Place::Local(_) => {
                self.copy_operand(depth, self.temporary(depth));
                self.stack[depth].place = Place::Temporary;
            }
        }
    }

    /// Settles the topmost `count` operands.
    pub(super) fn settle_top(&mut self, count: usize) {
        self.free_accumulator();
        let from = self.stack.len().saturating_sub(count);
        for depth in from..self.stack.len() {
            self.settle(depth);
        }
    }

    /// Before control flow splits: locals that wait on the stack settle, and the topmost `count`
    /// operands whatever they are; other constants may wait on.
    pub(super) fn settle_for_block(&mut self, count: usize) {
        self.free_accumulator();
        let top = self.stack.len().saturating_sub(count);
        for depth in self.settled..self.stack.len() {
            if depth >= top || matches!(self.stack[depth].place, Place::Local(_)) {
                self.settle(depth);
            }
        }
        self.settled = self.stack.len();
    }

    /// Before a local changes: copies of its old value that wait on the stack settle.
    fn preserve_local(&mut self, slot: u16) {
        for depth in self.settled..self.stack.len() {
            if self.stack[depth].place == Place::Local(slot) {
                self.settle(depth);
            }
        }
    }

    /// Stores a popped operand to a local variable.
    pub(super) fn set_local(&mut self, popped: Popped, slot: u16) {
        let waiting = (self.settled..self.stack.len())
            .any(|depth| self.stack[depth].place == Place::Local(slot));
        if waiting {
            self.preserve_local(slot);
        }
        match popped.place() {
            Place::Accumulator => {
                self.code.wrote(slot);
                self.code.store_accumulator(slot);
            }
            Place::Constant(value) => self.code.constant(popped.is_wide(), value, slot),
            Place::Local(from) => self.code.copy(popped.is_wide(), from, slot),
            Place::Temporary => {
                let own = self.temporary(popped.depth());
                if waiting {
                    self.code.copy(popped.is_wide(), own, slot);
                } else {
                    self.code.redirect(popped.is_wide(), own, slot);
                }
            }
        }
    }

    /// Emits an instruction whose 32-bit result is in the accumulator, and pushes the result.
    pub(super) fn produce(&mut self, opcode: u16, operands: &[u16], value_type: ValueType) {
        self.produce_in_accumulator(opcode, operands, Produced::Accumulator, value_type)
    }

    /// As `produce`, for a comparison.
    pub(super) fn produce_truth(&mut self, opcode: u16, operands: &[u16]) {
        self.produce_in_accumulator(opcode, operands, Produced::Truth, ValueType::I32)
    }

    /// As `produce`, for an instruction of which there is no form with a slot as its result.
    pub(super) fn produce_sealed(&mut self, opcode: u16, operands: &[u16], value_type: ValueType) {
        self.produce_in_accumulator(opcode, operands, Produced::Nothing, value_type)
    }

    fn produce_in_accumulator(
        &mut self,
        opcode: u16,
        operands: &[u16],
        produced: Produced,
        value_type: ValueType,
    ) {
        self.free_accumulator();
        self.code.produce(opcode, operands, produced);
        self.push(Some(value_type), Place::Accumulator);
        self.accumulator_depth = Some(self.stack.len() - 1);
    }

    /// Emits an instruction whose result goes to a slot, the last operand, and pushes the result.
    pub(super) fn produce_slot(&mut self, opcode: u16, operands: &[u16], value_type: ValueType) {
        let slot = self.temporary(self.stack.len());
        self.push_temporary(Some(value_type));
        self.code.produce_slot(opcode, operands, slot);
    }

    /// Emits an instruction without a result.
    pub(super) fn perform(&mut self, opcode: u16, operands: &[u16]) {
        self.code.perform(opcode, operands);
    }

    /// A block begins on top of what is there; whether the rest of the one around it is never reached.
    pub(super) fn enter(&mut self) -> bool {
        self.floor = self.stack.len();
        core::mem::replace(&mut self.unreachable, false)
    }

    /// The rest of the innermost block is not reached.
    pub(super) fn leave(&mut self) {
        self.unreachable = true;
        self.clear_block();
        self.code.leave();
    }

    /// Another arm of the innermost block begins, in place of the one before.
    pub(super) fn restart(&mut self, reachable: bool) {
        self.unreachable = false;
        self.clear_block();
        self.code.set_reachable(reachable);
    }

    /// The innermost block ends, and takes its operands along; the one around it begins at `floor`, and its
    /// rest may be `unreachable`.
    pub(super) fn exit(&mut self, floor: usize, unreachable: bool) {
        self.clear_block();
        (self.floor, self.unreachable) = (floor, unreachable);
    }

    fn clear_block(&mut self) {
        self.stack.truncate(self.floor);
        self.settled = self.settled.min(self.stack.len());
        self.accumulator_depth = None;
    }
}
