//! A cursor over the binary format: bytes, LEB128 integers, names (wasm 2.0 §5.2).

use alloc::vec::Vec;
use core::cell::Cell;

use crate::error::{Malformed, TranslateError, TranslateErrorKind};

/// Result of reading or checking a part of a module.
pub(crate) type Checked<T> = Result<T, Refused>;

/// The module is refused; why stands in the [`Verdict`]. An error that takes no room travels in a
/// register, through the hundreds of places that hand it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Why a module is refused: the first reason that was met.
pub(crate) struct Verdict {
    refused: Cell<bool>,
    error: Cell<TranslateError>,
}

/// The offset of a refusal by who doesn't read, until a reader looks.
const UNPLACED: usize = usize::MAX;

impl Verdict {
    pub(crate) fn new() -> Verdict {
        let none = TranslateError { offset: 0, kind: TranslateErrorKind::SinkFull };
        Verdict { refused: Cell::new(false), error: Cell::new(none) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&self, offset: usize, kind: TranslateErrorKind) -> Refused {
        if self.refused.replace(true) {
            self.place(offset);
        } else {
            self.error.set(TranslateError { offset, kind });
        }
        Refused
    }

    /// As `refuse`, by who doesn't read: the place is where the reader stands that looks next.
    pub(crate) fn refuse_unplaced(&self, kind: TranslateErrorKind) -> Refused {
        self.refuse(UNPLACED, kind)
    }

    fn place(&self, offset: usize) {
        let error = self.error.get();
        if error.offset == UNPLACED {
            self.error.set(TranslateError { offset, ..error });
        }
    }

    pub(crate) fn error(&self, _: Refused) -> TranslateError {
        self.error.get()
    }
}

/// Reads `bytes[at..end]`; offsets are those of the whole module.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    verdict: &'a Verdict,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], verdict: &'a Verdict) -> Reader<'a> {
        Reader { bytes, at: 0, verdict }
    }

    /// The listener that is told of a refusal.
    pub(crate) fn verdict(&self) -> &'a Verdict {
        self.verdict
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn error<T>(&self, kind: impl Into<TranslateErrorKind>) -> Checked<T> {
        Err(self.verdict.refuse(self.at, kind.into()))
    }

    /// Makes room for so many more entries of `list`; fails if the heap has none.
    pub(crate) fn reserve<T>(&self, list: &mut Vec<T>, more: usize) -> Checked<()> {
        match list.try_reserve_exact(more) {
            Ok(()) => Ok(()),
            Err(_) => self.error(TranslateErrorKind::OutOfMemory),
        }
    }

    /// Fails if something was refused before, by whomever.
    pub(crate) fn unless_refused(&self) -> Checked<()> {
        if self.verdict.refused.get() {
            self.verdict.place(self.at);
            return Err(Refused);
        }
        Ok(())
    }

    pub(crate) fn byte(&mut self) -> Checked<u8> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => self.error(Malformed::UnexpectedEnd),
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn take(&mut self, length: usize) -> Checked<&'a [u8]> {
        match self.at.checked_add(length).and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.error(Malformed::UnexpectedEnd),
        }
    }

    /// A reader of the next `length` bytes, which this one skips.
    pub(crate) fn part(&mut self, length: usize) -> Checked<Reader<'a>> {
        let start = self.at;
        self.take(length)?;
        Ok(Reader { bytes: &self.bytes[..start + length], at: start, ..*self })
    }

    /// A reader at `offset`, which was met before.
    pub(crate) fn at(&self, offset: usize) -> Reader<'a> {
        Reader { at: offset, ..*self }
    }

    pub(crate) fn u32(&mut self) -> Checked<u32> {
        // Nearly all integers in modules take one byte.
        if let Some(&byte) = self.bytes.get(self.at)
            && byte < 0x80
        {
            self.at += 1;
            return Ok(byte as u32);
        }
        Ok(self.leb128(32, false)? as u32)
    }

    pub(crate) fn i32(&mut self) -> Checked<i32> {
        Ok(self.leb128(32, true)? as i32)
    }

    pub(crate) fn i33(&mut self) -> Checked<i64> {
        Ok(self.leb128(33, true)? as i64)
    }

    pub(crate) fn i64(&mut self) -> Checked<i64> {
        Ok(self.leb128(64, true)? as i64)
    }

    /// An integer of `bits` bits in the fewest bytes that can hold it or more, up to ceil(bits / 7).
    fn leb128(&mut self, bits: u32, signed: bool) -> Checked<u64> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let payload = (byte & 0x7F) as u64;
            value |= payload << shift;
            let remaining = bits - shift;
            if remaining < 7 {
                // The unused bits of the last byte must be a sign extension, or zero.
                let unused = (byte & 0x7F) >> if signed { remaining - 1 } else { remaining };
                let ones = 0x7F >> if signed { remaining - 1 } else { remaining };
                if unused != 0 && !(signed && unused == ones) {
                    return self.error(Malformed::Leb128);
                }
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if signed && shift < 64 && byte & 0x40 != 0 {
                    value |= !0 << shift;
                }
                return Ok(value);
            }
            if shift >= bits {
                return self.error(Malformed::Leb128);
            }
        }
    }

    pub(crate) fn name(&mut self) -> Checked<&'a str> {
        let length = self.u32()? as usize;
        let start = *self;
        let bytes = self.take(length)?;
        match core::str::from_utf8(bytes) {
            Ok(name) => Ok(name),
            Err(_) => start.error(Malformed::Utf8),
        }
    }
}
