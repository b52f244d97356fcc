//! The canonical text form of ids and keys: lower-case base 32 with a check, in groups of five.
//!
//! The alphabet is Crockford's (no `i`, `l`, `o`, `u`). The bits that the last character has to
//! spare (four, for the 12 and 32 bytes in use here) carry a checksum, so that 15 of 16 typing
//! mistakes are found before anything is looked up. One value has exactly one text.

use core::fmt;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const GROUP: usize = 5;

/// How many base-32 characters `bytes` bytes take, the dashes not counted.
const fn characters(bytes: usize) -> usize {
    (bytes * 8).div_ceil(5)
}

/// Writes `bytes` as text.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for position in 0..characters(bytes.len()) {
        if position > 0 && position % GROUP == 0 {
            f.write_str("-")?;
        }
        let digit = digit_at(bytes, position);
        write!(f, "{}", char::from(ALPHABET[usize::from(digit)]))?;
    }
    Ok(())
}

/// Reads exactly `N` bytes from `text`.
pub(crate) fn parse<const N: usize>(text: &str) -> Result<[u8; N], TextError> {
    let mut bytes = [0_u8; N];
    let mut position = 0;
    let mut spare = 0;
    for (at, character) in text.bytes().enumerate() {
        if at % (GROUP + 1) == GROUP {
            if character != b'-' {
                return Err(TextError::Grouping { at });
            }
            continue;
        }
        let digit = ALPHABET
            .iter()
            .position(|letter| *letter == character)
            .ok_or(TextError::Character { at })?;
        if position >= characters(N) {
            return Err(TextError::Length);
        }
        place_digit(&mut bytes, &mut spare, position, digit as u8);
        position += 1;
    }
    if position != characters(N) || text.ends_with('-') {
        return Err(TextError::Length);
    }
    if spare != check_bits(&bytes) {
        return Err(TextError::Check);
    }
    Ok(bytes)
}

/// The five bits at `position`, the check filling up the last ones.
fn digit_at(bytes: &[u8], position: usize) -> u8 {
    (0..5).fold(0, |digit, offset| {
        let bit = position * 5 + offset;
        let value = if bit < bytes.len() * 8 {
            bytes[bit / 8] >> (7 - bit % 8) & 1
        } else {
            let spare_bits = characters(bytes.len()) * 5 - bytes.len() * 8;
            check_bits(bytes) >> (spare_bits - 1 - (bit - bytes.len() * 8)) & 1
        };
        digit << 1 | value
    })
}

fn place_digit(bytes: &mut [u8], spare: &mut u8, position: usize, digit: u8) {
    for offset in 0..5 {
        let bit = position * 5 + offset;
        let value = digit >> (4 - offset) & 1;
        if bit < bytes.len() * 8 {
            bytes[bit / 8] |= value << (7 - bit % 8);
        } else {
            *spare = *spare << 1 | value;
        }
    }
}

/// A checksum as wide as the spare bits: Fletcher-like, so that swapped characters are found too.
fn check_bits(bytes: &[u8]) -> u8 {
    let spare_bits = characters(bytes.len()) * 5 - bytes.len() * 8;
    let (sum, weighted) = bytes.iter().fold((0_u32, 7_u32), |(sum, weighted), byte| {
        let sum = (sum + u32::from(*byte)) % 251;
        (sum, (weighted * 3 + sum) % 251)
    });
    ((sum ^ weighted ^ (weighted >> 4)) & ((1 << spare_bits) - 1)) as u8
}

/// Why a text isn't an id or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// It is too short or too long.
    Length,
    /// The character at byte `at` is not in the alphabet.
    Character {
        /// Where, in bytes from the start.
        at: usize,
    },
    /// A dash was expected at byte `at`.
    Grouping {
        /// Where, in bytes from the start.
        at: usize,
    },
    /// The check at its end does not fit: a character was mistyped.
    Check,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("too short or too long"),
            Self::Character { at } => {
                write!(f, "character {} is none of 0-9 a-z without i, l, o, u", at + 1)
            }
            Self::Grouping { at } => write!(f, "expected a dash as character {}", at + 1),
            Self::Check => f.write_str("mistyped: its check does not fit"),
        }
    }
}

impl core::error::Error for TextError {}

#[cfg(test)]
mod tests;
