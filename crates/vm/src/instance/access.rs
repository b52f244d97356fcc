//! Memory accesses that the interpreter does not finish: beyond the committed part.

use super::{TrapKind, parts::Parts};
use crate::{image::Image, isa};

/// Where a load or store finds its address: by the place of its opcode among its kind (`build/isa.rs`).
#[derive(Clone, Copy)]
enum Address {
    Accumulator,
    /// The slot that the first operand names.
    Slot,
    /// The first operand, of four bytes.
    Immediate,
}

/// Where the address is, and how many operands follow the reach.
fn address(opcode: u16) -> Option<(Address, usize)> {
    const LAST_LOAD: u16 = isa::LOAD16_U_A_S;
    const LAST_LOAD64: u16 = isa::LOAD64_32_U;
    const LAST_STORE: u16 = isa::STORE16_AI;
    Some(match opcode {
        isa::LOAD32_S_A..=LAST_LOAD => {
            let index = opcode - isa::LOAD32_S_A;
            let address = if index & 2 == 0 { Address::Slot } else { Address::Accumulator };
            (address, (index & 1) as usize)
        }
        isa::LOAD64..=LAST_LOAD64 => (Address::Slot, 1),
        isa::LOAD32_I_A | isa::LOAD32_I_S => (Address::Immediate, 0),
        isa::STORE32_SS..=LAST_STORE => match (opcode - isa::STORE32_SS) % 5 {
            2 | 4 => (Address::Accumulator, 0),
            _ => (Address::Slot, 0),
        },
        isa::STORE64_SS => (Address::Slot, 0),
        isa::STORE64_AS => (Address::Accumulator, 0),
        _ => return None,
    })
}

impl Parts {
    /// The address behind the last byte that the access at `pc` touches.
    fn access_end(&self, image: &Image<'_>) -> Option<u64> {
        let (opcode, length) = isa::instruction_at(image.bytes(), self.position.pc as usize)?;
        let (address, after) = address(opcode)?;
        let address = match address {
            Address::Accumulator => self.position.accumulator,
            Address::Slot => self.read(image, 1),
            Address::Immediate => {
                let low = self.unit(image, 1) as u64;
                return Some((low | (self.unit(image, 2) as u64) << 16) + 4);
            }
        };
        // The reach follows the sources: it is the last operand, but for a destination.
        let reach = self.unit(image, length / 2 - 1 - after);
        Some(address as u64 + reach as u64 + 1)
    }

    /// Commits the bytes that the load or store at `pc` reaches for, after which it is executed again.
    pub(super) fn finish_access(
        &mut self,
        image: &Image<'_>,
        left: &mut i32,
    ) -> Result<(), TrapKind> {
        // An address that overflowed is no access.
        let end = self.access_end(image).unwrap_or(u64::MAX);
        if end <= self.memory.bytes().len() as u64 {
            return Err(TrapKind::OutOfBounds);
        }
        self.commit(end, left)
    }
}
