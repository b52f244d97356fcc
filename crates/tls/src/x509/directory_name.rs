//! The parts of directory names, compared as RFC 5280 §7.1 asks: whatever kind of string they are, without regard to case
//! and to the number of spaces. Of letters only those of ASCII have a case here, as with OpenSSL.

use super::CertificateError;
use super::der::{Der, OBJECT_IDENTIFIER};

type Result<T> = core::result::Result<T, CertificateError>;

/// The most attributes of one part: more are an attempt to make work.
const ATTRIBUTES_MAX: usize = 4;

const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const VISIBLE_STRING: u8 = 0x1a;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// Whether two relative distinguished names, which are sets of attributes, are the same.
///
/// # Errors
/// One isn't well formed, or has too many attributes to be compared.
pub(super) fn is_same_rdn(one: &[u8], other: &[u8]) -> Result<bool> {
    Ok(has_all_of(one, other)? && has_all_of(other, one)?)
}

/// Whether each attribute of `other` is one of `one`.
fn has_all_of(one: &[u8], other: &[u8]) -> Result<bool> {
    let mut attributes = Der::new(other);
    for _ in 0..ATTRIBUTES_MAX {
        if attributes.is_empty() {
            return Ok(true);
        }
        if !has(one, attributes.sequence()?)? {
            return Ok(false);
        }
    }
    if attributes.is_empty() { Ok(true) } else { Err(CertificateError::NameConstraint) }
}

fn has(set: &[u8], wanted: Der<'_>) -> Result<bool> {
    let mut attributes = Der::new(set);
    for _ in 0..ATTRIBUTES_MAX {
        if attributes.is_empty() {
            return Ok(false);
        }
        if is_same(attributes.sequence()?, wanted)? {
            return Ok(true);
        }
    }
    if attributes.is_empty() { Ok(false) } else { Err(CertificateError::NameConstraint) }
}

fn is_same(mut one: Der<'_>, mut other: Der<'_>) -> Result<bool> {
    if one.expect(OBJECT_IDENTIFIER)? != other.expect(OBJECT_IDENTIFIER)? {
        return Ok(false);
    }
    let ((tag, one, one_whole), (other_tag, other, other_whole)) = (one.any()?, other.any()?);
    let is_text = width(tag).is_some() && width(other_tag).is_some();
    Ok(one_whole == other_whole
        || is_text && Folded::new(tag, one).eq(Folded::new(other_tag, other)))
}

/// The bytes of a character in the kind of string with `tag`; 0 if there are more or fewer.
fn width(tag: u8) -> Option<usize> {
    match tag {
        UTF8_STRING => Some(0),
        NUMERIC_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING | VISIBLE_STRING => Some(1),
        BMP_STRING => Some(2),
        UNIVERSAL_STRING => Some(4),
        _ => None,
    }
}

/// The characters of a string in lower case, with one space between words and none around them.
struct Folded<'a> {
    width: usize,
    rest: &'a [u8],
    has_begun: bool,
    /// The character behind a space that was given.
    held: Option<u32>,
}

impl<'a> Folded<'a> {
    fn new(tag: u8, content: &'a [u8]) -> Self {
        let width = width(tag).unwrap_or(1);
        Self { width, rest: content, has_begun: false, held: None }
    }

    /// The next character. One of several bytes in UTF-8 that isn't well formed is each of them, as in Latin-1.
    fn character(&mut self) -> Option<u32> {
        let first = *self.rest.first()?;
        let width = match self.width {
            0 => usize::max(first.leading_ones() as usize, 1),
            width => width,
        };
        let whole = self.rest.get(..width).unwrap_or(self.rest);
        let character = match (self.width, core::str::from_utf8(whole)) {
            (0, Ok(text)) => text.chars().next().map(u32::from),
            (0, Err(_)) => None,
            _ => Some(whole.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))),
        };
        let used = if character.is_some() { whole.len() } else { 1 };
        self.rest = &self.rest[used..];
        Some(character.unwrap_or(first.into()))
    }
}

impl Iterator for Folded<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let mut is_after_space = false;
        loop {
            let character = self.character()?;
            match u8::try_from(character) {
                Ok(byte) if byte.is_ascii_whitespace() || byte == 0x0b => is_after_space = true,
                byte => {
                    let lower = byte.map_or(character, |byte| byte.to_ascii_lowercase().into());
                    if is_after_space && core::mem::replace(&mut self.has_begun, true) {
                        self.held = Some(lower);
                        return Some(b' '.into());
                    }
                    self.has_begun = true;
                    return Some(lower);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "directory_name_tests.rs"]
mod tests;
