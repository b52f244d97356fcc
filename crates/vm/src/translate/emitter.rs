//! The code of one function while it grows: instructions, and branches whose targets are still unknown.
//!
//! A branch to a later place holds, until that place is reached, the position of the previous branch to
//! it: a label is the head of such a chain and costs no memory of its own.

use alloc::vec::Vec;

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

pub(super) struct Emitter {
    pub(super) code: Vec<u8>,
    last: usize,
    pub(super) produced: Produced,
    /// Where the straight line began that leads here: after the last check, or where none leads.
    straight_from: usize,
    /// Branches take the 32-bit form.
    pub(super) wide: bool,
}

impl Emitter {
    pub(super) fn new(code: Vec<u8>, wide: bool) -> Emitter {
        Emitter { code, last: 0, produced: Produced::Nothing, straight_from: 0, wide }
    }

    pub(super) fn position(&self) -> usize {
        self.code.len()
    }

    fn unit(&mut self, unit: u16) {
        self.code.extend_from_slice(&unit.to_le_bytes());
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
        self.produced == Produced::Slot
            && isa::unit_at(&self.code, self.last) == Some(opcode * OPCODE_SCALE)
    }

    /// Makes the last instruction another one with more operands.
    pub(super) fn extend(&mut self, opcode: u16, operands: &[u16]) {
        self.code[self.last..self.last + 2].copy_from_slice(&(opcode * OPCODE_SCALE).to_le_bytes());
        for &operand in operands {
            self.unit(operand);
        }
    }

    /// The last instruction's result goes to `slot`, in addition to the accumulator.
    pub(super) fn direct_to_slot(&mut self, slot: u16) {
        let opcode =
            u16::from_le_bytes([self.code[self.last], self.code[self.last + 1]]) + OPCODE_SCALE;
        self.code[self.last..self.last + 2].copy_from_slice(&opcode.to_le_bytes());
        self.unit(slot);
        self.produced = Produced::Slot;
    }

    /// Moves the last instruction's destination from the slot it named to another.
    pub(super) fn redirect(&mut self, slot: u16) {
        let at = self.code.len() - 2;
        self.code[at..].copy_from_slice(&slot.to_le_bytes());
    }

    /// Takes the last instruction, a comparison, back: its opcode and operands.
    pub(super) fn take_comparison(&mut self) -> (u16, [u16; 2], usize) {
        let unit = |at: usize| isa::unit_at(&self.code, at).unwrap_or(0);
        let opcode = unit(self.last) / OPCODE_SCALE;
        let count = (self.code.len() - self.last) / 2 - 1;
        let operands = [unit(self.last + 2), unit(self.last + 4)];
        self.code.truncate(self.last);
        self.produced = Produced::Nothing;
        (opcode, operands, count)
    }

    /// Turns the last instruction, a comparison, into its opposite.
    pub(super) fn negate_comparison(&mut self) {
        let opcode = isa::unit_at(&self.code, self.last).unwrap_or(0) / OPCODE_SCALE;
        if let Some(opposite) = isa::opposite(opcode) {
            let unit = (opposite * OPCODE_SCALE).to_le_bytes();
            self.code[self.last..self.last + 2].copy_from_slice(&unit);
        }
    }

    /// A branch to a place behind: `opcode` and its operands before the target.
    pub(super) fn branch_back(
        &mut self,
        opcode: u16,
        operands: &[u16],
        to: usize,
    ) -> Result<(), TooFar> {
        self.emit(opcode, operands);
        self.target_back(to)
    }

    /// A branch field for a place behind.
    pub(super) fn target_back(&mut self, to: usize) -> Result<(), TooFar> {
        let displacement = to as isize - (self.position() as isize + 2);
        self.unit(i16::try_from(displacement).map_err(|_| TooFar)? as u16);
        Ok(())
    }

    /// A branch to a place ahead.
    pub(super) fn branch(
        &mut self,
        opcode: u16,
        operands: &[u16],
        label: &mut Label,
    ) -> Result<(), TooFar> {
        self.emit(opcode, operands);
        self.target(label)
    }

    /// A branch field for a place ahead.
    pub(super) fn target(&mut self, label: &mut Label) -> Result<(), TooFar> {
        let at = self.position();
        let link = label.0.map_or(0, |earlier| earlier / 2 + 1);
        self.unit(u16::try_from(link).map_err(|_| TooFar)?);
        label.0 = Some(at as u32);
        Ok(())
    }

    /// An unconditional branch of 32 bits to a place ahead.
    pub(super) fn branch_far(&mut self, label: &mut Label) {
        self.emit(isa::BR_FAR, &[]);
        self.target_far(label);
    }

    /// A branch field of 32 bits for a place ahead.
    pub(super) fn target_far(&mut self, label: &mut Label) {
        let link = label.0.map_or(0, |earlier| earlier + 1);
        label.0 = Some(self.position() as u32);
        self.unit(link as u16);
        self.unit((link >> 16) as u16);
    }

    /// An unconditional branch of 32 bits to a place behind.
    pub(super) fn branch_far_back(&mut self, to: usize) {
        self.emit(isa::BR_FAR, &[]);
        self.target_far_back(to);
    }

    /// A branch field of 32 bits for a place behind.
    pub(super) fn target_far_back(&mut self, to: usize) {
        let displacement = to as i64 - (self.position() as i64 + 4);
        self.unit(displacement as u16);
        self.unit((displacement >> 16) as u16);
    }

    /// Lets the branches to `label` lead here.
    pub(super) fn bind(&mut self, label: Label) -> Result<(), TooFar> {
        let here = self.position();
        let mut next = label.0;
        while let Some(at) = next {
            let at = at as usize;
            let link = isa::unit_at(&self.code, at).unwrap_or(0);
            let displacement = i16::try_from(here - (at + 2)).map_err(|_| TooFar)?;
            self.code[at..at + 2].copy_from_slice(&displacement.to_le_bytes());
            next = (link != 0).then(|| (link as u32 - 1) * 2);
        }
        self.seal();
        Ok(())
    }

    /// As `bind`, for branches of 32 bits.
    pub(super) fn bind_far(&mut self, label: Label) {
        let here = self.position();
        let mut next = label.0;
        while let Some(at) = next {
            let at = at as usize;
            let low = isa::unit_at(&self.code, at).unwrap_or(0) as u32;
            let high = isa::unit_at(&self.code, at + 2).unwrap_or(0) as u32;
            let displacement = (here - (at + 4)) as u32;
            self.code[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
            let link = low | high << 16;
            next = (link != 0).then(|| link - 1);
        }
        self.seal();
    }
}
