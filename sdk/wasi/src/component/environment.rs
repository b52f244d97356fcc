//! `wasi:cli/environment`: arguments and variables as lists of strings.

use super::lower::{allocate, behind, must, put_bytes, put_list, put_word};
use crate::process::{Piece, each_argument};
use crate::settings;
use crate::user::{Range, item, word};

/// Bytes of a `string`, and of a pair of them.
const STRING_BYTES: u32 = 8;
const PAIR_BYTES: u32 = 16;

/// `get-arguments`: `list<string>`. Each string is an allocation of its own, so that the arguments are gone through once to
/// count them, once for their lengths, and once for their bytes.
pub(crate) fn arguments(into: u32) {
    let mut count = 0;
    each_argument(|piece| count += u32::from(matches!(piece, Piece::End)));
    let list = allocate(count.saturating_mul(STRING_BYTES), 4);
    let string = |index| must(item(list, index, STRING_BYTES));
    let (mut index, mut length) = (0, 0);
    each_argument(|piece| match piece {
        Piece::Byte(_) => length += 1,
        Piece::End => {
            put_word(behind(string(index), 4), length);
            (index, length) = (index + 1, 0);
        }
    });
    for index in 0..count {
        let length = must(word(behind(string(index), 4)));
        put_word(string(index), allocate(length, 1));
    }
    let (mut index, mut offset) = (0, 0);
    each_argument(|piece| match piece {
        Piece::Byte(byte) => {
            let start = must(word(string(index)));
            must(Range::new(behind(start, offset), 1)).write(&[byte]);
            offset += 1;
        }
        Piece::End => {
            check_text(string(index));
            (index, offset) = (index + 1, 0);
        }
    });
    put_list(into, list, count);
}

/// A parameter may be any bytes, and a string is UTF-8: of one that isn't, the bytes beyond ASCII become question marks.
fn check_text(string: u32) {
    let (start, length) = (must(word(string)), must(word(behind(string, 4))));
    let range = must(Range::new(start, length));
    if is_text(range.bytes()) {
        return;
    }
    for offset in 0..length {
        let place = range.part(offset, 1);
        if place.bytes().iter().any(|byte| !byte.is_ascii()) {
            place.write(b"?");
        }
    }
}

/// Whether bytes are UTF-8 (Unicode 3.9, table 3-7). The standard library's look takes a table of 256 bytes.
fn is_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        let (behind, second) = match rest {
            [] => return true,
            [0..=0x7f, ..] => (0, 0x80..=0xbf),
            [0xc2..=0xdf, ..] => (1, 0x80..=0xbf),
            [0xe0, ..] => (2, 0xa0..=0xbf),
            [0xed, ..] => (2, 0x80..=0x9f),
            [0xe1..=0xef, ..] => (2, 0x80..=0xbf),
            [0xf0, ..] => (3, 0x90..=0xbf),
            [0xf1..=0xf3, ..] => (3, 0x80..=0xbf),
            [0xf4, ..] => (3, 0x80..=0x8f),
            _ => return false,
        };
        let Some((character, others)) = rest.split_at_checked(1 + behind) else { return false };
        let mut inner = character.iter().skip(1);
        if behind > 0 && !inner.next().is_some_and(|byte| second.contains(byte)) {
            return false;
        }
        if !inner.all(|byte| (0x80..=0xbf).contains(byte)) {
            return false;
        }
        rest = others;
    }
}

/// `get-environment`: `list<tuple<string, string>>`.
pub(crate) fn variables(into: u32) {
    let variables = settings::variables();
    let list = allocate(variables.count.saturating_mul(PAIR_BYTES), 4);
    for (index, text) in (0..).zip(variables) {
        let pair = must(item(list, index, PAIR_BYTES));
        let length = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
        put_bytes(pair, text.get(..length).unwrap_or_default());
        put_bytes(behind(pair, STRING_BYTES), text.get(length + 1..).unwrap_or_default());
    }
    put_list(into, list, variables.count);
}
