//! The interpreter's assumptions, checked once for a whole image.
//!
//! For every function: its code is a row of whole, known instructions that control cannot leave at the
//! end; branches lead to the beginning of one of them; slots lie in the frame and none is the link;
//! indices name what exists. The checksum finds damage, this finds forgery.

use alloc::vec::Vec;

use super::view::{FunctionEntry, Image, ImageError};
use super::writer::Footer;
use crate::isa;

pub(super) fn verify(image: &Image<'_>) -> Result<(), ImageError> {
    let forged = |at: u32| Err(ImageError::Forged(at));
    let footer = image.footer();
    if !sections_hold(image, &footer) {
        return forged(footer.functions.at);
    }
    let mut end = super::HEADER_BYTES as u32;
    let mut starts = Vec::new();
    for function in 0..image.functions() {
        let Some(entry) = image.function_entry(function) else { return forged(end) };
        let Some((from, to)) = image.code_range(function) else { return forged(end) };
        let in_order = from as u32 == end && from % 2 == 0 && to > from;
        if !in_order || to > footer.code_end as usize || !entry_holds(&entry) {
            return forged(end);
        }
        end = to as u32;
        let Some(code) = image.bytes().get(from..to) else { return forged(from as u32) };
        starts.clear();
        let words = code.len() / 2 / 32 + 1;
        starts.try_reserve_exact(words).map_err(|_| ImageError::OutOfMemory)?;
        starts.resize(words, 0);
        let check = Check { footer: &footer, entry, code };
        check.code(&mut starts).map_err(|at| ImageError::Forged((from + at) as u32))?;
    }
    if end != footer.code_end { forged(end) } else { Ok(()) }
}

/// Tables lie inside the image, and what they refer to does as well.
fn sections_hold(image: &Image<'_>, footer: &Footer) -> bool {
    let length = image.bytes().len() - super::FOOTER_BYTES;
    let inside = |range: super::Range, bytes: usize| {
        let end = (range.count as u64) * bytes as u64 + range.at as u64;
        end <= length as u64 && range.at.is_multiple_of(4)
    };
    inside(footer.types, super::TYPE_BYTES)
        && inside(footer.exports, super::EXPORT_BYTES)
        && inside(footer.globals, super::GLOBAL_BYTES)
        && inside(footer.tables, super::TABLE_BYTES)
        && inside(footer.elements, super::SEGMENT_BYTES)
        && inside(footer.data, super::SEGMENT_BYTES)
        && footer.code_end as usize <= length
        && footer.functions.count <= u16::MAX as u32
        && footer.globals.count < 8192
        && footer.page_shift <= 16
        && (footer.pages_min as u64) << footer.page_shift <= 1 << 32
        && (footer.start == super::NONE || footer.start < footer.functions.count)
        && (0..footer.functions.count).all(|index| {
            image.function_entry(index).is_some_and(|entry| {
                (entry.canonical as u32) < footer.types.count
                    && image.arity_of_type(entry.canonical) == (entry.params, entry.results)
                    && image.signature_of(&entry).is_some()
            })
        })
        && (0..footer.globals.count).all(|index| image.global(index).is_some())
        && (0..footer.tables.count)
            .all(|index| image.table(index).is_some_and(|table| table.min <= super::TABLE_MAX))
        && (0..footer.data.count).all(|index| image.data(index).is_some())
        && (0..footer.elements.count).all(|index| image.elements(index).is_some())
}

/// Parameters, link, zeroed locals and operands follow each other in the frame.
fn entry_holds(entry: &FunctionEntry) -> bool {
    let link = entry.params.max(entry.results) as u32 * 8;
    entry.link as u32 == link
        && link + 8 + entry.zeros as u32 * 8 <= entry.frame_bytes as u32
        && entry.frame_bytes.is_multiple_of(8)
}

struct Check<'i> {
    footer: &'i Footer,
    entry: FunctionEntry,
    code: &'i [u8],
}

impl Check<'_> {
    /// Checks all instructions; the error is the offset of a bad one. `starts` has a bit for each unit, all unset: it
    /// becomes the set of the places where instructions begin.
    fn code(&self, starts: &mut [u32]) -> Result<(), usize> {
        let mut at = 0;
        let mut ends = false;
        while at < self.code.len() {
            let (opcode, length) = isa::instruction_at(self.code, at).ok_or(at)?;
            if let Some(word) = starts.get_mut(at / 64) {
                *word |= 1 << (at / 2 % 32);
            }
            ends = is_end(opcode);
            at += length;
        }
        if !ends {
            return Err(at);
        }
        let mut at = 0;
        while at < self.code.len() {
            let (opcode, length) = isa::instruction_at(self.code, at).ok_or(at)?;
            if !self.instruction(opcode, at, at + length, starts) {
                return Err(at);
            }
            at += length;
        }
        Ok(())
    }

    fn unit(&self, at: usize) -> u16 {
        isa::unit_at(self.code, at).unwrap_or(0)
    }

    fn instruction(&self, opcode: u16, at: usize, end: usize, starts: &[u32]) -> bool {
        let mut operand = at + 2;
        let mut index = 0;
        for letter in isa::layout(opcode) {
            let unit = self.unit(operand);
            let mut bytes = 2;
            let good = match letter {
                b's' | b'd' => self.is_slot(unit),
                b'l' => unit == self.entry.link,
                // Frames must not overlap the caller's link.
                b'f' => {
                    unit.is_multiple_of(8)
                        && unit > self.entry.link
                        && unit <= self.entry.frame_bytes
                }
                b't' => self.leads_to_start(operand + 2, unit as i16 as i64, starts),
                b'T' => {
                    bytes = 4;
                    let displacement = unit as u32 | (self.unit(operand + 2) as u32) << 16;
                    self.leads_to_start(operand + 4, displacement as i32 as i64, starts)
                }
                b'j' => {
                    bytes = 4;
                    true
                }
                b'k' => {
                    bytes = 8;
                    true
                }
                b'x' => {
                    index += 1;
                    self.is_index(opcode, index, unit)
                }
                b'n' => unit > 0,
                _ => true,
            };
            if !good {
                return false;
            }
            operand += bytes;
        }
        // The displacements of a table.
        let entry_bytes = isa::table_units(opcode) * 2;
        while operand < end {
            let mut displacement = self.unit(operand) as i16 as i64;
            if entry_bytes == 4 {
                let high = self.unit(operand + 2) as i16 as i64;
                displacement = (displacement & 0xFFFF) | high << 16;
            }
            operand += entry_bytes;
            if !self.leads_to_start(operand, displacement, starts) {
                return false;
            }
        }
        self.results_fit(opcode)
    }

    fn is_slot(&self, offset: u16) -> bool {
        offset.is_multiple_of(8) && offset < self.entry.frame_bytes && offset != self.entry.link
    }

    fn leads_to_start(&self, from: usize, displacement: i64, starts: &[u32]) -> bool {
        let Ok(to) = usize::try_from(from as i64 + displacement) else { return false };
        let word = starts.get(to / 64).copied().unwrap_or(0);
        to.is_multiple_of(2) && to < self.code.len() && word >> (to / 2 % 32) & 1 != 0
    }

    /// Whether the `nth` index operand of an instruction names something.
    fn is_index(&self, opcode: u16, nth: u32, index: u16) -> bool {
        let footer = self.footer;
        let index = index as u32;
        match (opcode, nth) {
            (isa::GLOBAL_GET32_A..=isa::GLOBAL_SET64_S, _) => {
                index.is_multiple_of(8) && index / 8 < footer.globals.count
            }
            (isa::CALL | isa::RETURN_CALL, _) => index < footer.functions.count,
            (isa::CALL_INDIRECT, _) => index < footer.types.count && footer.tables.count > 0,
            (isa::CALL_INDIRECT_TABLE | isa::RETURN_CALL_INDIRECT, 2) => index < footer.types.count,
            (isa::CALL_INDIRECT_TABLE | isa::RETURN_CALL_INDIRECT, _) => {
                index < footer.tables.count
            }
            (isa::MEMORY_INIT | isa::DATA_DROP, _) => index < footer.data.count,
            (isa::TABLE_INIT, 1) | (isa::ELEM_DROP, _) => index < footer.elements.count,
            (isa::HOST, _) => true,
            _ => index < footer.tables.count,
        }
    }

    /// Returns write their result to the first slot: there must be one result, or none.
    fn results_fit(&self, opcode: u16) -> bool {
        match opcode {
            isa::RETURN32_S | isa::RETURN32_A | isa::RETURN64_S => self.entry.results == 1,
            _ => true,
        }
    }
}

fn is_end(opcode: u16) -> bool {
    matches!(
        opcode,
        isa::UNREACHABLE
            | isa::BR
            | isa::BR_FAR
            | isa::BR_TABLE_S
            | isa::BR_TABLE_A
            | isa::BR_TABLE_FAR_S
            | isa::RETURN
            | isa::RETURN32_S
            | isa::RETURN32_A
            | isa::RETURN64_S
            | isa::RETURN_CALL
            | isa::RETURN_CALL_INDIRECT
    )
}
