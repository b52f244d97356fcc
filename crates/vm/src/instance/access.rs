//! Memory accesses that the interpreter does not finish: beyond the committed part, or across words.

use super::{Instance, TrapKind};
use crate::{image::Image, isa};

/// What a load or store does: found by the place of its opcode among its kind (`build/isa.rs`).
struct Access {
    bytes: u8,
    signed: bool,
    store: bool,
    /// The value takes a whole slot.
    wide: bool,
    address: Place,
    value: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Accumulator,
    /// Operand of the instruction that names a slot.
    Slot(u8),
    /// Address in the instruction.
    Immediate,
    /// Operand of the instruction that is the value.
    Constant(u8),
}

/// Bytes and sign of loads in their order.
const LOADS: [(u8, bool); 5] = [(4, false), (1, true), (1, false), (2, true), (2, false)];
const LOADS64: [(u8, bool); 7] =
    [(8, false), (1, true), (1, false), (2, true), (2, false), (4, true), (4, false)];
const STORES: [u8; 3] = [4, 1, 2];

fn access(opcode: u16) -> Option<Access> {
    const LAST_LOAD: u16 = isa::LOAD16_U_A_S;
    const LAST_LOAD64: u16 = isa::LOAD64_32_U;
    const LAST_STORE: u16 = isa::STORE16_AI;
    Some(match opcode {
        isa::LOAD32_S_A..=LAST_LOAD => {
            let index = opcode - isa::LOAD32_S_A;
            let (bytes, signed) = LOADS[index as usize / 4];
            let address = if index & 2 == 0 { Place::Slot(1) } else { Place::Accumulator };
            let after = if index & 2 == 0 { 3 } else { 2 };
            let value = if index & 1 == 0 { Place::Accumulator } else { Place::Slot(after) };
            Access { bytes, signed, store: false, wide: false, address, value }
        }
        isa::LOAD64..=LAST_LOAD64 => {
            let (bytes, signed) = LOADS64[(opcode - isa::LOAD64) as usize];
            let (address, value) = (Place::Slot(1), Place::Slot(3));
            Access { bytes, signed, store: false, wide: true, address, value }
        }
        isa::LOAD32_I_A | isa::LOAD32_I_S => {
            let value = if opcode == isa::LOAD32_I_A { Place::Accumulator } else { Place::Slot(3) };
            let address = Place::Immediate;
            Access { bytes: 4, signed: false, store: false, wide: false, address, value }
        }
        isa::STORE32_SS..=LAST_STORE => {
            let index = opcode - isa::STORE32_SS;
            let (address, value) = match index % 5 {
                0 => (Place::Slot(1), Place::Slot(2)),
                1 => (Place::Slot(1), Place::Accumulator),
                2 => (Place::Accumulator, Place::Slot(1)),
                3 => (Place::Slot(1), Place::Constant(2)),
                _ => (Place::Accumulator, Place::Constant(1)),
            };
            let bytes = STORES[index as usize / 5];
            Access { bytes, signed: false, store: true, wide: false, address, value }
        }
        isa::STORE64_SS | isa::STORE64_AS => {
            let (address, value) = if opcode == isa::STORE64_SS {
                (Place::Slot(1), Place::Slot(2))
            } else {
                (Place::Accumulator, Place::Slot(1))
            };
            Access { bytes: 8, signed: false, store: true, wide: true, address, value }
        }
        _ => return None,
    })
}

impl Instance {
    /// The access at `pc`, and the address behind the last byte that it touches.
    fn access(&self, image: &Image<'_>) -> Option<(Access, u64)> {
        let (opcode, length) = isa::instruction_at(image.bytes(), self.pc as usize)?;
        let access = access(opcode)?;
        let address = match access.address {
            Place::Accumulator => self.accumulator,
            Place::Slot(operand) => self.read(image, operand as usize),
            Place::Constant(_) => return None,
            Place::Immediate => {
                let low = self.unit(image, 1) as u64;
                return Some((access, (low | (self.unit(image, 2) as u64) << 16) + 4));
            }
        };
        // The reach follows the sources: it is the last operand, but for a destination.
        let after = matches!((access.store, access.value), (false, Place::Slot(_))) as usize;
        let reach = self.unit(image, length / 2 - 1 - after);
        Some((access, address as u64 + reach as u64 + 1))
    }

    /// Commits the bytes that the load or store at `pc` reaches for, after which it is executed again; if
    /// they are, it lies across words, and is executed here, byte by byte.
    pub(super) fn finish_access(
        &mut self,
        image: &Image<'_>,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        // An address that overflowed is no access.
        let end = self.access(image).map_or(u64::MAX, |(_, end)| end);
        if end > self.memory.bytes().len() as u64 {
            return self.commit(end);
        }
        self.execute_access(image, left).ok_or(TrapKind::OutOfBounds)
    }

    fn execute_access(&mut self, image: &Image<'_>, left: &mut i32) -> Option<()> {
        let (_, length) = isa::instruction_at(image.bytes(), self.pc as usize)?;
        let (access, end) = self.access(image)?;
        let start = (end as usize).checked_sub(access.bytes as usize)?;
        let slot = match access.value {
            Place::Slot(operand) => Some(self.slot_index(image, operand as usize)),
            _ => None,
        };
        let bytes = access.bytes as usize;
        let mut buffer = [0; 8];
        if access.store {
            let value = match (access.value, slot) {
                (Place::Constant(operand), _) => self.unit(image, operand as usize) as i16 as u64,
                (_, Some(index)) => *self.slots.get(index)?,
                _ => self.accumulator as u64,
            };
            let memory = self.memory.bytes_mut().get_mut(start..start + bytes)?;
            memory.iter_mut().zip(value.to_le_bytes()).for_each(|(byte, new)| *byte = new);
        } else {
            let memory = self.memory.bytes().get(start..start + bytes)?;
            buffer.iter_mut().zip(memory).for_each(|(byte, found)| *byte = *found);
            let shift = 64 - 8 * bytes as u32;
            let value = u64::from_le_bytes(buffer) << shift;
            let value = if access.signed { (value as i64 >> shift) as u64 } else { value >> shift };
            if !access.wide {
                self.accumulator = value as u32;
            }
            if let Some(index) = slot {
                let slot = self.slots.get_mut(index)?;
                *slot = if access.wide { value } else { *slot >> 32 << 32 | value & 0xFFFF_FFFF };
            }
        }
        *left -= length as i32;
        self.pc += length as u32;
        Some(())
    }
}
