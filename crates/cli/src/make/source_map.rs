//! Source maps, by which compilers without DWARF say which byte of a module comes of which line ("Source Map Revision 3").
//!
//! In a module's map the column is the byte's offset in the file, and there is one line. A section of NAME.debug.wasm that
//! no device gets holds the map without the sources' text.

use serde::{Deserialize, Serialize};
use wasmparser::{BinaryReaderError, FunctionBody, Parser, Payload};

use crate::make::module::append_section;

/// A source map as far as lines go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineMap {
    sources: Vec<String>,
    mappings: String,
}

/// The id of sections that mean nothing to who runs a module (wasm spec §5.5.3).
const CUSTOM_SECTION: u8 = 0;

impl LineMap {
    /// The section's name.
    pub(crate) const SECTION: &str = "tenure.source_map";

    /// Reads one.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// The map of a module in which the same bytes come so much further on.
    pub(crate) fn further(mut self, bytes: u32) -> Self {
        self.mappings = format!("{},{}", of_number(bytes), self.mappings);
        self
    }

    /// Appends it to a module.
    pub(crate) fn append_to(&self, module: &mut Vec<u8>) {
        let mut content = vec![Self::SECTION.len() as u8];
        content.extend(Self::SECTION.bytes());
        content.extend(serde_json::to_vec(self).unwrap_or_default());
        append_section(module, CUSTOM_SECTION, &content);
    }

    /// The file and the line, from 1 on, that the byte at `offset` of the module comes of.
    pub(crate) fn line_at(&self, offset: u32) -> Option<(&str, u32)> {
        let (mut at, mut source, mut line) = (0_i64, 0_i64, 0_i64);
        let mut found = None;
        for segment in self.mappings.split([',', ';']).filter(|segment| !segment.is_empty()) {
            let numbers = numbers(segment)?;
            at += numbers.first()?;
            if at > i64::from(offset) {
                break;
            }
            found = None;
            if let [_, source_step, line_step, ..] = numbers.as_slice() {
                (source, line) = (source + source_step, line + line_step);
                found = Some((source, line));
            }
        }
        let (source, line) = found?;
        let file = self.sources.get(usize::try_from(source).ok()?)?;
        Some((file, u32::try_from(line + 1).ok()?))
    }
}

/// A segment of one number that isn't negative, as [`numbers`] reads it.
fn of_number(number: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut rest, mut text) = (u64::from(number) << 1, String::new());
    loop {
        let more = if rest >= 32 { 32 } else { 0 };
        let digit = (rest & 31) as usize | more;
        text.push(char::from(DIGITS.get(digit).copied().unwrap_or_default()));
        rest >>= 5;
        if more == 0 {
            return text;
        }
    }
}

/// The numbers of a segment, in Base64 with five bits and one of continuation a character, the sign last.
fn numbers(segment: &str) -> Option<Vec<i64>> {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0_i64, 0);
    for character in segment.bytes() {
        let digit = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        number |= i64::from(digit & 31).checked_shl(shift).filter(|_| shift < 35)?;
        shift += 5;
        if digit & 32 == 0 {
            numbers.push(if number & 1 == 1 { -(number >> 1) } else { number >> 1 });
            (number, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(numbers)
}

/// Where the instruction at `offset` of a package's code is in the module that it was made of. Both have the same functions
/// with as many instructions, but calls of one of them may be longer in one of both.
pub(crate) fn original(code: &[u8], module: &[u8], offset: u32) -> Option<u32> {
    let (now, before) = (bodies(code).ok()?, bodies(module).ok()?);
    let (now, before) =
        now.iter().zip(&before).find(|(body, _)| body.range().contains(&(offset as usize)))?;
    let (mut now, mut before) =
        (now.get_operators_reader().ok()?, before.get_operators_reader().ok()?);
    let mut at = None;
    while !now.eof() && now.original_position() <= offset as usize {
        at = Some(before.original_position());
        now.read().ok()?;
        before.read().ok()?;
    }
    at.and_then(|at| u32::try_from(at).ok())
}

fn bodies(module: &[u8]) -> Result<Vec<FunctionBody<'_>>, BinaryReaderError> {
    let mut bodies = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CodeSectionEntry(body) = payload? {
            bodies.push(body);
        }
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_the_line_of_the_last_segment_before_it() {
        let sources = vec!["a.ts".to_owned(), "b.ts".to_owned()];
        // 10: a.ts, 3; 14: b.ts, 40; 20: nothing; 24: b.ts, 39.
        let map = LineMap { sources, mappings: "UAEA,ICqCA,M,IADA".to_owned() };
        for (offset, line) in [
            (9, None),
            (10, Some(("a.ts", 3))),
            (13, Some(("a.ts", 3))),
            (14, Some(("b.ts", 40))),
            (21, None),
            (24, Some(("b.ts", 39))),
            (4_000, Some(("b.ts", 39))),
        ] {
            assert_eq!(map.line_at(offset), line, "{offset}");
        }
        for further in [0, 3, 1_000] {
            let moved = map.clone().further(further);
            for (offset, line) in [(10, Some(("a.ts", 3))), (9, None), (24, Some(("b.ts", 39)))] {
                assert_eq!(moved.line_at(offset + further), line, "{offset} and {further}");
            }
        }
        for damaged in ["U*", "UAEg", "gggggggggggB"] {
            let map = LineMap { mappings: damaged.to_owned(), ..map.clone() };
            assert_eq!(map.line_at(50), None, "{damaged}");
        }
    }

    #[test]
    fn an_instruction_is_found_again_behind_a_call_that_became_longer() {
        let module = |callee: u32, functions: usize| {
            let others = "(func)".repeat(functions);
            wat::parse_str(format!("(module (func (call {callee}) (unreachable)) {others})"))
                .unwrap()
        };
        let (now, before) = (module(200, 250), module(1, 250));
        let at = |module: &[u8]| {
            let body = bodies(module).unwrap().remove(0);
            let mut operators = body.get_operators_reader().unwrap();
            operators.read().unwrap();
            operators.original_position() as u32
        };
        assert_ne!(at(&now), at(&before));
        assert_eq!(original(&now, &before, at(&now)), Some(at(&before)));
        assert_eq!(original(&now, &before, 3), None);
    }
}
