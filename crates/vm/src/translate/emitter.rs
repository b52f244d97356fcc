//! The code of one function while it grows: instructions, and branches whose targets are still unknown.
//!
//! A branch to a later place holds, until that place is reached, the position of the previous branch to
//! it: a label is the head of such a chain and costs no memory of its own.

use super::pieces::Pieces;
use crate::{
    interpreter::METERED,
    isa::{self, OPCODE_SCALE, WINDOW_UNITS},
};

/// The result of the most recent instruction, and how it may still be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Produced {
    /// Nothing that may be changed.
    Nothing,
    /// A result in the accumulator; opcode + 1 writes it to a slot as well.
    Accumulator,
    /// The truth of a comparison, in the accumulator.
    Truth,
    /// A result in the slot named by the last unit.
    Slot,
}

/// A branch field cannot hold its displacement: the function must be translated in the wide form.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooFar;

/// The most recent branch to a place that is not yet known.
#[derive(Clone, Copy, Default)]
pub(super) struct Label(Option<u32>);

impl Label {
    pub(super) fn is_used(self) -> bool {
        self.0.is_some()
    }
}

/// A conditional branch that still lacks its target.
pub(super) struct Branch {
    opcode: u16,
    operands: [u16; 2],
    count: usize,
}

impl Branch {
    /// The branch that is taken if a value is not zero, or with `negate` if it is: the value in `slot`, or
    /// without one that in the accumulator.
    pub(super) fn on_value(slot: Option<u16>, negate: bool) -> Branch {
        let (not_zero, zero) = match slot {
            Some(_) => (isa::BR_I32_NE_SZ, isa::BR_I32_EQ_SZ),
            None => (isa::BR_I32_NE_AZ, isa::BR_I32_EQ_AZ),
        };
        let opcode = if negate { zero } else { not_zero };
        Branch { opcode, operands: [slot.unwrap_or(0), 0], count: slot.is_some() as usize }
    }

    pub(super) fn opposite(&self) -> Branch {
        let opcode = isa::BR_I32_EQ_SS + ((self.opcode - isa::BR_I32_EQ_SS) ^ 1);
        Branch { opcode, ..*self }
    }

    fn operands(&self) -> &[u16] {
        &self.operands[..self.count]
    }
}

/// A short branch over a few instructions, which still lacks its target.
pub(super) struct Skip(Label);

pub(super) struct Emitter {
    code: Pieces,
    last: usize,
    pub(super) produced: Produced,
    /// Where the straight line began that leads here: after the last check, or where none leads.
    straight_from: usize,
    /// Branches take the 32-bit form.
    wide: bool,
}

impl Emitter {
    pub(super) fn new(code: Pieces, wide: bool) -> Emitter {
        Emitter { code, last: 0, produced: Produced::Nothing, straight_from: 0, wide }
    }

    /// The finished code.
    pub(super) fn into_code(self) -> Pieces {
        self.code
    }

    pub(super) fn position(&self) -> usize {
        self.code.len()
    }

    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// Whether the heap had no room for a part of the code, which is useless then.
    pub(super) fn is_cut(&self) -> bool {
        self.code.is_cut()
    }

    fn unit(&mut self, unit: u16) {
        self.code.push(unit);
    }

    pub(super) fn emit(&mut self, opcode: u16, operands: &[u16]) {
        self.check_stretch();
        self.last = self.code.len();
        self.produced = Produced::Nothing;
        self.unit(opcode * OPCODE_SCALE);
        for &operand in operands {
            self.unit(operand);
        }
    }

    /// Keeps every straight line of code below the window after which fuel must be looked at.
    fn check_stretch(&mut self) {
        const MARGIN: usize = 16;
        let long = self.code.len() - self.straight_from >= (WINDOW_UNITS - MARGIN) * 2;
        if METERED && long {
            self.unit(isa::CHECK * OPCODE_SCALE);
            self.straight_from = self.code.len();
        }
    }

    /// Nothing runs on from here into what follows.
    pub(super) fn interrupt(&mut self) {
        self.straight_from = self.code.len();
        self.produced = Produced::Nothing;
    }

    /// Forbids changing the last instruction: something else may lead here.
    pub(super) fn seal(&mut self) {
        self.produced = Produced::Nothing;
    }

    /// Whether the last instruction is `opcode`, with a result that nothing else has used.
    pub(super) fn just_emitted(&self, opcode: u16) -> bool {
        self.produced == Produced::Slot && self.code.get(self.last) == opcode * OPCODE_SCALE
    }

    /// Makes the last instruction another one with more operands.
    pub(super) fn extend(&mut self, opcode: u16, operands: &[u16]) {
        self.code.set(self.last, opcode * OPCODE_SCALE);
        for &operand in operands {
            self.unit(operand);
        }
    }

    /// The last instruction's result goes to `slot`, in addition to the accumulator.
    pub(super) fn direct_to_slot(&mut self, slot: u16) {
        self.code.set(self.last, self.code.get(self.last) + OPCODE_SCALE);
        self.unit(slot);
        self.produced = Produced::Slot;
    }

    /// Moves the last instruction's destination from the slot it named to another.
    pub(super) fn redirect(&mut self, slot: u16) {
        self.code.set(self.code.len() - 2, slot);
    }

    /// Makes the last instruction, a comparison, the branch that is taken if it holds, or with `negate` if it
    /// does not.
    pub(super) fn take_comparison(&mut self, negate: bool) -> Option<Branch> {
        let opcode = self.code.get(self.last) / OPCODE_SCALE;
        let count = (self.code.len() - self.last) / 2 - 1;
        let operands = [self.code.get(self.last + 2), self.code.get(self.last + 4)];
        self.code.truncate(self.last);
        self.produced = Produced::Nothing;
        let opcode = isa::branch_on(opcode, negate)?;
        Some(Branch { opcode, operands, count })
    }

    /// Turns the last instruction, a comparison, into its opposite.
    pub(super) fn negate_comparison(&mut self) {
        if let Some(opposite) = isa::opposite(self.code.get(self.last) / OPCODE_SCALE) {
            self.code.set(self.last, opposite * OPCODE_SCALE);
        }
    }

    /// A conditional branch to a place ahead.
    pub(super) fn branch(&mut self, branch: &Branch, label: &mut Label) -> Result<(), TooFar> {
        if !self.wide {
            return self.short_branch(branch, label);
        }
        let over = self.skip(&branch.opposite())?;
        self.jump(label)?;
        self.interrupt();
        self.land(over)
    }

    /// A conditional branch to a place behind.
    pub(super) fn branch_back(&mut self, branch: &Branch, to: usize) -> Result<(), TooFar> {
        if !self.wide {
            self.emit(branch.opcode, branch.operands());
            return self.target_back(to);
        }
        let over = self.skip(&branch.opposite())?;
        self.jump_back(to)?;
        self.interrupt();
        self.land(over)
    }

    /// An unconditional branch to a place ahead.
    pub(super) fn jump(&mut self, label: &mut Label) -> Result<(), TooFar> {
        self.emit(if self.wide { isa::BR_FAR } else { isa::BR }, &[]);
        self.target(label)
    }

    /// An unconditional branch to a place behind.
    pub(super) fn jump_back(&mut self, to: usize) -> Result<(), TooFar> {
        self.emit(if self.wide { isa::BR_FAR } else { isa::BR }, &[]);
        self.target_back(to)
    }

    /// A short conditional branch over a few instructions that follow.
    pub(super) fn skip(&mut self, branch: &Branch) -> Result<Skip, TooFar> {
        let mut over = Label::default();
        self.short_branch(branch, &mut over)?;
        Ok(Skip(over))
    }

    /// Lets a short branch lead here.
    pub(super) fn land(&mut self, skip: Skip) -> Result<(), TooFar> {
        self.bind_short(skip.0)
    }

    /// Lets the branches to `label` lead here.
    pub(super) fn bind(&mut self, label: Label) -> Result<(), TooFar> {
        if !self.wide {
            return self.bind_short(label);
        }
        self.bind_far(label);
        Ok(())
    }

    /// A branch field for a place ahead.
    pub(super) fn target(&mut self, label: &mut Label) -> Result<(), TooFar> {
        if self.wide {
            self.target_far(label);
            return Ok(());
        }
        self.short_target(label)
    }

    /// A branch field for a place behind.
    pub(super) fn target_back(&mut self, to: usize) -> Result<(), TooFar> {
        let displacement = to as i64 - (self.position() + self.field_bytes()) as i64;
        if !self.wide {
            self.unit(i16::try_from(displacement).map_err(|_| TooFar)? as u16);
            return Ok(());
        }
        self.unit(displacement as u16);
        self.unit((displacement >> 16) as u16);
        Ok(())
    }

    /// A branch field whose place `set_target` tells.
    pub(super) fn blank_target(&mut self) {
        (0..self.field_bytes() / 2).for_each(|_| self.unit(0));
    }

    /// Has the branch field of this number in the table at `table` lead to the place `to` behind it.
    pub(super) fn set_target(
        &mut self,
        table: usize,
        index: usize,
        to: usize,
    ) -> Result<(), TooFar> {
        let bytes = self.field_bytes();
        let at = table + index * bytes;
        let displacement = to - (at + bytes);
        if !self.wide && i16::try_from(displacement).is_err() {
            return Err(TooFar);
        }
        self.set_field(at, displacement);
        Ok(())
    }

    /// Writes a displacement, which fits, to the branch field at `at`.
    fn set_field(&mut self, at: usize, displacement: usize) {
        self.code.set(at, displacement as u16);
        if self.wide {
            self.code.set(at + 2, (displacement >> 16) as u16);
        }
    }

    /// Bytes of a branch field.
    fn field_bytes(&self) -> usize {
        if self.wide { 4 } else { 2 }
    }

    fn short_branch(&mut self, branch: &Branch, label: &mut Label) -> Result<(), TooFar> {
        self.emit(branch.opcode, branch.operands());
        self.short_target(label)
    }

    fn short_target(&mut self, label: &mut Label) -> Result<(), TooFar> {
        let at = self.position();
        let link = label.0.map_or(0, |earlier| earlier / 2 + 1);
        self.unit(u16::try_from(link).map_err(|_| TooFar)?);
        label.0 = Some(at as u32);
        Ok(())
    }

    fn target_far(&mut self, label: &mut Label) {
        let link = label.0.map_or(0, |earlier| earlier + 1);
        label.0 = Some(self.position() as u32);
        self.unit(link as u16);
        self.unit((link >> 16) as u16);
    }

    fn bind_short(&mut self, label: Label) -> Result<(), TooFar> {
        let here = self.position();
        let mut next = label.0;
        while let Some(at) = next {
            let at = at as usize;
            let link = self.code.get(at);
            let displacement = i16::try_from(here - (at + 2)).map_err(|_| TooFar)?;
            self.code.set(at, displacement as u16);
            next = (link != 0).then(|| (link as u32 - 1) * 2);
        }
        self.seal();
        Ok(())
    }

    fn bind_far(&mut self, label: Label) {
        let here = self.position();
        let mut next = label.0;
        while let Some(at) = next {
            let at = at as usize;
            let link = self.code.get(at) as u32 | (self.code.get(at + 2) as u32) << 16;
            self.set_field(at, here - (at + 4));
            next = (link != 0).then(|| link - 1);
        }
        self.seal();
    }
}
