//! Reads and writes the presentation language of TLS (RFC 8446 §3): numbers and vectors of bytes.

/// The input is too short, too long or otherwise against the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads bytes from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if anything is left.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<usize, Malformed> {
        Ok(self.take(bytes)?.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(self.number(2)? as u16)
    }

    pub(crate) fn u24(&mut self) -> Result<usize, Malformed> {
        self.number(3)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(self.number(4)? as u32)
    }

    /// A vector whose length takes one byte.
    pub(crate) fn vector8(&mut self) -> Result<Self, Malformed> {
        let length = self.number(1)?;
        self.take(length).map(Self)
    }

    /// A vector whose length takes two bytes.
    pub(crate) fn vector16(&mut self) -> Result<Self, Malformed> {
        let length = self.number(2)?;
        self.take(length).map(Self)
    }

    /// The same, which the grammar wants not to be empty.
    pub(crate) fn some(self) -> Result<Self, Malformed> {
        if self.0.is_empty() { Err(Malformed) } else { Ok(self) }
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The place that was lent is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Writes bytes to the front of a buffer.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The bytes written so far.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.length]
    }

    /// Room for `length` bytes, to be filled by the caller.
    pub(crate) fn room(&mut self, length: usize) -> Result<&mut [u8], Full> {
        let end = self.length.checked_add(length).ok_or(Full)?;
        let room = self.buffer.get_mut(self.length..end).ok_or(Full)?;
        self.length = end;
        Ok(room)
    }

    /// Everything that is left to write to, for what says how much of it it took.
    pub(crate) fn fill<E: From<Full>>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let taken = fill(&mut self.buffer[self.length..])?;
        self.room(taken)?;
        Ok(())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.room(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes the output of `body` behind its length in `length_bytes` bytes.
    pub(crate) fn vector<E: From<Full>>(
        &mut self,
        length_bytes: usize,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.length;
        self.room(length_bytes)?;
        body(self)?;
        let length = (self.length - start - length_bytes) as u32;
        if length_bytes < 4 && length >> (8 * length_bytes) != 0 {
            return Err(Full.into());
        }
        self.buffer[start..start + length_bytes]
            .copy_from_slice(&length.to_be_bytes()[4 - length_bytes..]);
        Ok(())
    }
}
