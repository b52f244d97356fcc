//! A C program's pointers and lengths, checked as far as they can be.

use core::slice;

/// Whether two objects share no byte.
pub(crate) fn are_apart(one: (*const u8, usize), other: (*const u8, usize)) -> bool {
    let ends_before = |one: (*const u8, usize), other: (*const u8, usize)| {
        one.0.addr().checked_add(one.1).is_some_and(|end| end <= other.0.addr())
    };
    one.1 == 0 || other.1 == 0 || ends_before(one, other) || ends_before(other, one)
}

/// Whether there can be such an object; null is one without bytes.
pub(crate) fn is_object(data: *const u8, len: usize) -> bool {
    let end = data.addr().checked_add(len);
    len == 0 || (!data.is_null() && len <= isize::MAX as usize && end.is_some())
}

/// The bytes at `data`: none, wherever it points, if `len` is 0.
///
/// # Safety
/// `is_object(data, len)`, and `data` must be valid for `len` bytes.
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(data, len) }
}

/// # Safety
/// As [`bytes`], and nobody else reaches these bytes meanwhile.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut u8, len: usize) -> &'a mut [u8] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts_mut(data, len) }
}

/// Text that is cut where it doesn't fit.
pub(crate) struct Text<'a> {
    room: &'a mut [u8],
    length: usize,
}

impl core::fmt::Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        let last = self.room.len().saturating_sub(1);
        for byte in part.bytes() {
            match self.room.get_mut(self.length) {
                Some(place) if self.length < last => *place = byte,
                _ => return Err(core::fmt::Error),
            }
            self.length += 1;
        }
        Ok(())
    }
}

impl<'a> Text<'a> {
    /// An empty text.
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { room, length: 0 }
    }

    /// Ends it with a zero.
    pub(crate) fn finish(self) {
        if let Some(place) = self.room.get_mut(self.length) {
            *place = 0;
        }
    }
}
