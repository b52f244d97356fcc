//! The code of a body as it is emitted, and what a run of it has left in the accumulator.
//!
//! Invariants:
//! - Code is emitted only where it can be reached; elsewhere nothing changes here.
//! - `mirror` names a slot only while the slot holds the same 32 bits as the accumulator.

use super::emitter::{Emitter, Label, Produced, TooFar};
use crate::isa;

pub(super) struct Code {
    pub(super) emitter: Emitter,
    reachable: bool,
    /// Slot that holds the same 32 bits as the accumulator.
    mirror: Option<u16>,
    /// Destination of the last instruction, if it went to a slot.
    last_slot: u16,
}

/// The slot that is known to equal the accumulator: to be remembered over code that is only run if the code
/// after it isn't.
#[derive(Clone, Copy)]
pub(super) struct Mirror(Option<u16>);

impl Code {
    /// No code yet, to be emitted by `emitter`; its beginning is reached.
    pub(super) fn new(emitter: Emitter) -> Code {
        Code { emitter, reachable: true, mirror: None, last_slot: 0 }
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.reachable
    }

    /// Whether what follows is reached; branches to it are bound apart.
    pub(super) fn set_reachable(&mut self, reachable: bool) {
        self.reachable = reachable;
    }

    /// The next instruction may be reached from further on as well.
    pub(super) fn begin_loop(&mut self) {
        self.emitter.seal();
        self.mirror = None;
    }

    /// Nothing runs on into what follows.
    pub(super) fn leave(&mut self) {
        self.mirror = None;
        if self.reachable {
            self.emitter.interrupt();
        }
        self.reachable = false;
    }

    /// Emits an instruction that writes no slot.
    pub(super) fn perform(&mut self, opcode: u16, operands: &[u16]) {
        if self.reachable {
            self.emitter.emit(opcode, operands);
        }
    }

    /// Emits an instruction whose 32-bit result is in the accumulator, and may go to a slot as well.
    pub(super) fn produce(&mut self, opcode: u16, operands: &[u16], produced: Produced) {
        if self.reachable {
            self.emitter.emit(opcode, operands);
            self.emitter.produced = produced;
        }
        self.mirror = None;
    }

    /// Emits an instruction whose result goes to `slot`, its last operand.
    pub(super) fn produce_slot(&mut self, opcode: u16, operands: &[u16], slot: u16) {
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

    /// Whether a slot holds what the accumulator holds.
    pub(super) fn mirrors(&self, slot: u16) -> bool {
        self.mirror == Some(slot)
    }

    pub(super) fn mirror(&self) -> Mirror {
        Mirror(self.mirror)
    }

    pub(super) fn restore_mirror(&mut self, mirror: Mirror) {
        self.mirror = mirror.0;
    }

    /// The accumulator may hold anything.
    pub(super) fn forget_accumulator(&mut self) {
        self.mirror = None;
    }

    /// A slot was written: it no longer equals the accumulator.
    pub(super) fn wrote(&mut self, slot: u16) {
        if self.mirror == Some(slot) {
            self.mirror = None;
        }
    }

    /// Whether the accumulator holds the truth of the comparison that was emitted last.
    pub(super) fn has_fresh_truth(&self) -> bool {
        self.reachable && self.emitter.produced == Produced::Truth
    }

    /// Brings the accumulator's value to a slot; it stays in the accumulator.
    pub(super) fn store_accumulator(&mut self, slot: u16) {
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

    /// Loads a constant into a slot.
    pub(super) fn constant(&mut self, wide: bool, value: i32, slot: u16) {
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
        if !self.reachable {
            return;
        }
        match i16::try_from(value) {
            Ok(value) => self.emitter.emit(isa::CONST16_A, &[value as u16]),
            Err(_) => self.emitter.emit(isa::CONST32_A, &[value as u16, (value >> 16) as u16]),
        }
        self.mirror = None;
    }

    /// Copies a slot to another.
    pub(super) fn copy(&mut self, wide: bool, from: u16, to: u16) {
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

    /// Has the last instruction write `to` instead of `from`, if it wrote that; else copies.
    pub(super) fn redirect(&mut self, wide: bool, from: u16, to: u16) {
        let last = self.emitter.produced == Produced::Slot && self.last_slot == from;
        if !last || !self.reachable {
            return self.copy(wide, from, to);
        }
        self.emitter.redirect(to);
        self.last_slot = to;
        self.wrote(to);
        if self.mirror == Some(from) {
            self.mirror = Some(to);
        }
    }

    /// Lets the branches to `label` lead here.
    pub(super) fn bind(&mut self, label: Label) -> Result<(), TooFar> {
        if label.is_used() {
            self.mirror = None;
            self.emitter.bind(label)?;
        }
        Ok(())
    }
}
