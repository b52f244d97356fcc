//! Reads DER (X.690), strictly: one encoding a value, definite and shortest lengths.

use super::CertificateError;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of a context-specific, constructed value.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of a context-specific, primitive value.
pub(super) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

type Result<T> = core::result::Result<T, CertificateError>;

/// Reads values from the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if anything is left.
    pub(super) fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(CertificateError::Malformed) }
    }

    /// The tag of the next value.
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next value: its tag, its content, and all of it.
    pub(super) fn any(&mut self) -> Result<(u8, &'a [u8], &'a [u8])> {
        let [tag, first, rest @ ..] = self.0 else { return Err(CertificateError::Malformed) };
        // Tags of more than one byte don't occur in certificates.
        if tag & 0x1f == 0x1f {
            return Err(CertificateError::Malformed);
        }
        let (length, header) = match first {
            0..=0x7f => (usize::from(*first), 2),
            0x81 => match rest {
                [length @ 0x80..=0xff, ..] => (usize::from(*length), 3),
                _ => return Err(CertificateError::Malformed),
            },
            0x82 => match rest {
                [high @ 1..=0xff, low, ..] => (usize::from(u16::from_be_bytes([*high, *low])), 4),
                _ => return Err(CertificateError::Malformed),
            },
            _ => return Err(CertificateError::Malformed),
        };
        let (whole, rest) =
            self.0.split_at_checked(header + length).ok_or(CertificateError::Malformed)?;
        self.0 = rest;
        Ok((*tag, &whole[header..], whole))
    }

    /// The content of the next value, which has `tag`.
    pub(super) fn expect(&mut self, tag: u8) -> Result<&'a [u8]> {
        match self.any()? {
            (found, content, _) if found == tag => Ok(content),
            _ => Err(CertificateError::Malformed),
        }
    }

    /// The content of the next value if it has `tag`.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>> {
        if self.peek() == Some(tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }

    /// A sequence, to be read on.
    pub(super) fn sequence(&mut self) -> Result<Self> {
        self.expect(SEQUENCE).map(Self)
    }

    /// The content of a non-negative integer, without the zero that keeps it positive.
    pub(super) fn unsigned(&mut self) -> Result<&'a [u8]> {
        match self.expect(INTEGER)? {
            [0] => Ok(&[0]),
            [] | [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => Err(CertificateError::Malformed),
            [0, rest @ ..] => Ok(rest),
            all => Ok(all),
        }
    }

    /// A non-negative integer of 32 bits.
    pub(super) fn small_unsigned(&mut self) -> Result<u32> {
        let bytes = self.unsigned()?;
        if bytes.len() > 4 {
            return Err(CertificateError::Malformed);
        }
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    /// A boolean that is there because it isn't its default, false.
    pub(super) fn optional_true(&mut self) -> Result<bool> {
        match self.optional(BOOLEAN)? {
            None => Ok(false),
            Some([0xff]) => Ok(true),
            // A default that is written out isn't DER either, but authorities have done so.
            Some([0]) => Ok(false),
            Some(_) => Err(CertificateError::Malformed),
        }
    }

    /// The bytes of a bit string of whole bytes.
    pub(super) fn whole_bits(&mut self) -> Result<&'a [u8]> {
        match self.expect(BIT_STRING)? {
            [0, bytes @ ..] => Ok(bytes),
            _ => Err(CertificateError::Malformed),
        }
    }
}
