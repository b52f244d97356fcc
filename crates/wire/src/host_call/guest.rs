//! Guest pointers: alleged ranges of a machine's memory, checked at each use.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::BUFFER_BYTES_MAX;

/// Bytes that the machine says it holds at `pointer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestBytes {
    pointer: u32,
    length: u32,
}

impl GuestBytes {
    /// The range that a machine alleges.
    pub const fn new(pointer: u32, length: u32) -> Self {
        Self { pointer, length }
    }

    /// The alleged address.
    pub const fn pointer(self) -> u32 {
        self.pointer
    }

    /// The alleged length in bytes.
    pub const fn length(self) -> usize {
        self.length as usize
    }

    /// Whether the pointer is C's null.
    pub const fn is_null(self) -> bool {
        self.pointer == 0
    }

    /// The bytes, if the whole range lies within `memory`.
    ///
    /// # Errors
    /// [`BadPointer`] otherwise.
    pub fn read(self, memory: &[u8]) -> Result<&[u8], BadPointer> {
        memory.get(self.range()?).ok_or(BadPointer)
    }

    fn range(self) -> Result<core::ops::Range<usize>, BadPointer> {
        let start = self.pointer as usize;
        Ok(start..start.checked_add(self.length as usize).ok_or(BadPointer)?)
    }
}

/// Text that the machine says it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestText(pub(super) GuestBytes);

impl GuestText {
    /// The alleged length in bytes.
    pub const fn length(self) -> usize {
        self.0.length()
    }

    /// The text, if it lies within `memory` and has at most `bytes_max` bytes, which is looked at before
    /// any of them.
    ///
    /// # Errors
    /// As [`TextError`] says.
    pub fn read(self, memory: &[u8], bytes_max: usize) -> Result<&str, TextError> {
        let bytes = self.0.read(memory)?;
        if bytes.len() > bytes_max {
            return Err(TextError::TooLong);
        }
        core::str::from_utf8(bytes).map_err(|_| TextError::NotText)
    }

    /// The bytes of the text, UTF-8 or not, cut to `bytes_max`.
    ///
    /// # Errors
    /// [`BadPointer`] if the range leaves the memory.
    pub fn read_bytes(self, memory: &[u8], bytes_max: usize) -> Result<&[u8], BadPointer> {
        let bytes = self.0.read(memory)?;
        Ok(&bytes[..bytes.len().min(bytes_max)])
    }
}

/// Room that the machine says it has at a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestBuffer(pub(super) GuestBytes);

impl GuestBuffer {
    /// The alleged room in bytes.
    pub const fn capacity(self) -> usize {
        self.0.length()
    }

    /// Copies as much of `bytes` as fits to the machine's memory, up to [`BUFFER_BYTES_MAX`]; returns
    /// how much that was.
    ///
    /// # Errors
    /// [`BadPointer`] if the room leaves the memory; nothing is written then.
    pub fn write(self, memory: &mut [u8], bytes: &[u8]) -> Result<usize, BadPointer> {
        self.write_at(memory, 0, bytes)
    }

    /// The same from byte `offset` of the room on.
    ///
    /// # Errors
    /// As [`GuestBuffer::write`].
    pub fn write_at(
        self,
        memory: &mut [u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, BadPointer> {
        let room = memory.get_mut(self.0.range()?).ok_or(BadPointer)?;
        let room_bytes = room.len().min(BUFFER_BYTES_MAX);
        let room = room.get_mut(offset..room_bytes).unwrap_or_default();
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// The range leaves the machine's memory.
    Pointer(BadPointer),
    /// It is longer than its kind of text may be.
    TooLong,
    /// It isn't UTF-8.
    NotText,
}

impl From<BadPointer> for TextError {
    fn from(error: BadPointer) -> Self {
        Self::Pointer(error)
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(error) => error.fmt(f),
            Self::TooLong => f.write_str("a text passed to the host is too long"),
            Self::NotText => f.write_str("a text passed to the host is not UTF-8"),
        }
    }
}

impl core::error::Error for TextError {}

/// A machine passed a range that isn't in its memory: a fault of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPointer;

impl fmt::Display for BadPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pointer passed to the host leaves the machine's memory")
    }
}

impl core::error::Error for BadPointer {}
