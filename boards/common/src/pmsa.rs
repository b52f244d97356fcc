//! The windows in which ARMv7-M's memory protection sees memory (PMSAv7; ARMv7-M manual, B3.5), and what
//! it leaves to be found out.
//!
//! A window is a power of two in length and lies at a multiple of that. From 256 bytes on it has eight
//! equal parts, each of which can be left out. A processor has eight windows.

use core::ops::Range;

/// The step in which windows can cover memory, in bytes.
pub const STEP_BYTES: usize = 32;
/// The least length of a window that has parts, as an exponent of two, and how many it has.
const BITS_MIN: u32 = 8;
const PARTS_BITS: u32 = 3;
const PARTS: u32 = 1 << PARTS_BITS;
/// The greatest length, which is more memory than any such processor has.
const BITS_MAX: u32 = 28;

/// Some parts of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    base: usize,
    /// Its length, as an exponent of two.
    bits: u32,
    /// The parts that it covers.
    first: u32,
    end: u32,
}

impl Window {
    /// The window that covers the most of `range` around `address`. Where `range` doesn't begin or end at
    /// a step, it means the whole step. `None` if `address` isn't in it, and of an empty one.
    pub fn around(address: usize, range: &Range<usize>) -> Option<Self> {
        let start = range.start & !(STEP_BYTES - 1);
        let end = range.end.checked_next_multiple_of(STEP_BYTES)?;
        if range.is_empty() || !(start..end).contains(&address) {
            return None;
        }
        let longest = ((end - start).ilog2() + PARTS_BITS).clamp(BITS_MIN, BITS_MAX);
        // Much smaller ones cover less.
        (BITS_MIN..=longest)
            .rev()
            .filter(|bits| holds(start, end, address, bits - PARTS_BITS))
            .take(PARTS_BITS as usize + 1)
            .map(|bits| Self::inside(start, end, address, bits))
            .max_by_key(|window| window.addresses().len())
    }

    /// The window of that length that has `address`, without what isn't between `start` and `end`.
    fn inside(start: usize, end: usize, address: usize, bits: u32) -> Self {
        let (base, part_bits) = (address >> bits << bits, bits - PARTS_BITS);
        let first = start.saturating_sub(base).div_ceil(1 << part_bits) as u32;
        let end = ((end - base) >> part_bits).min(PARTS as usize) as u32;
        Self { base, bits, first, end }
    }

    /// The windows that cover all of `range`, from its start on.
    pub fn covering(range: Range<usize>) -> impl Iterator<Item = Self> {
        let mut address = range.start;
        core::iter::from_fn(move || {
            let window = Self::around(address, &(address..range.end))?;
            address = window.addresses().end;
            Some(window)
        })
    }

    /// The addresses that it covers.
    pub fn addresses(&self) -> Range<usize> {
        let part_bits = self.bits - PARTS_BITS;
        self.base + ((self.first as usize) << part_bits)
            ..self.base + ((self.end as usize) << part_bits)
    }

    /// Its address, and the part of its rule (MPU_RASR) that says which memory it covers.
    pub fn registers(&self) -> (u32, u32) {
        let covered = (1 << self.end) - (1 << self.first);
        let left_out = !covered & 0xFF;
        (self.base as u32, left_out << 8 | (self.bits - 1) << 1)
    }
}

/// Whether the piece of memory of that length that has `address` lies between `start` and `end`.
fn holds(start: usize, end: usize, address: usize, bits: u32) -> bool {
    let base = address >> bits << bits;
    base >= start && base.checked_add(1 << bits).is_some_and(|piece_end| piece_end <= end)
}

/// Whether a Thumb instruction whose first half is `first`, and which reads or writes memory, writes it: a
/// fault doesn't say (ARMv7-M manual, A5.2 and A5.3).
pub fn is_store(first: u16) -> bool {
    match first >> 12 {
        // Of 32 bits: those of one, two and many registers.
        0xE | 0xF => first & 1 << 4 == 0,
        // By a register's offset.
        0x5 => first >> 9 & 7 < 3,
        // Pushes.
        0xB => first & 0xFE00 == 0xB400,
        _ => first & 1 << 11 == 0,
    }
}

#[cfg(test)]
mod tests;
