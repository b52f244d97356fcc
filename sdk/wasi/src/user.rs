//! The program's memory, which lies above this module's. An address of the program's is an allegation: it is moved to
//! where it lies here, and what is beyond the end of the memory traps.

use crate::errno::Errno;

#[link(wasm_import_module = "merger")]
unsafe extern "C" {
    /// Where the program's memory begins.
    safe fn memory() -> u32;
}

/// Where the program's memory begins.
pub(crate) fn base() -> u32 {
    memory()
}

/// `length` bytes of the program's memory.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    start: u32,
    length: u32,
}

impl Range {
    /// The bytes from `address` on, as the program counts.
    pub(crate) fn new(address: u32, length: u32) -> Result<Self, Errno> {
        let start = address.checked_add(base()).ok_or(Errno::FAULT)?;
        start.checked_add(length).ok_or(Errno::FAULT)?;
        Ok(Self { start, length })
    }

    /// Bytes of this module's own, which are read and written as those of the program are.
    #[cfg(feature = "components")]
    pub(crate) fn own(bytes: &mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr() as u32, length: bytes.len() as u32 }
    }

    pub(crate) fn length(self) -> u32 {
        self.length
    }

    /// Its part from `skipped` on, of `most` bytes at most.
    pub(crate) fn part(self, skipped: u32, most: u32) -> Self {
        let skipped = skipped.min(self.length);
        Self { start: self.start + skipped, length: (self.length - skipped).min(most) }
    }

    pub(crate) fn as_ptr(self) -> *const u8 {
        self.start as *const u8
    }

    pub(crate) fn as_mut_ptr(self) -> *mut u8 {
        self.start as *mut u8
    }

    /// The bytes as they are.
    pub(crate) fn bytes(self) -> &'static [u8] {
        // SAFETY: nothing of this module's lies there, the program doesn't run meanwhile, and what is beyond the end of
        // the memory traps when it is read. No caller keeps them.
        unsafe { core::slice::from_raw_parts(self.as_ptr(), self.length as usize) }
    }

    /// Copies as much of `bytes` as fits; returns how much that is.
    pub(crate) fn write(self, bytes: &[u8]) -> u32 {
        let length = (bytes.len() as u32).min(self.length);
        // SAFETY: as above.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.as_mut_ptr(), length as usize);
        }
        length
    }
}

/// Writes a number of one, two, four or eight bytes.
pub(crate) fn put<const N: usize>(address: u32, bytes: [u8; N]) -> Result<(), Errno> {
    Range::new(address, N as u32)?.write(&bytes);
    Ok(())
}

/// Writes a number of four bytes.
pub(crate) fn put_word(address: u32, word: u32) -> Result<(), Errno> {
    put(address, word.to_le_bytes())
}

/// Reads `N` bytes.
pub(crate) fn take<const N: usize>(address: u32) -> Result<[u8; N], Errno> {
    let range = Range::new(address, N as u32)?;
    let mut bytes = [0; N];
    bytes.copy_from_slice(range.bytes());
    Ok(bytes)
}

/// Reads a number of four bytes.
pub(crate) fn word(address: u32) -> Result<u32, Errno> {
    Ok(u32::from_le_bytes(take(address)?))
}

/// The address `index` items of `bytes` bytes behind `address`.
pub(crate) fn item(address: u32, index: u32, bytes: u32) -> Result<u32, Errno> {
    let offset = index.checked_mul(bytes).ok_or(Errno::FAULT)?;
    address.checked_add(offset).ok_or(Errno::FAULT)
}

/// Hands the ranges of `iovec`s or `ciovec`s (8 bytes each: address, length) to `each`, until it takes less than all of one;
/// returns how many bytes it took. An error counts if nothing was taken before.
pub(crate) fn each_range(
    parts: u32,
    count: u32,
    mut each: impl FnMut(Range) -> Result<u32, Errno>,
) -> Result<u32, Errno> {
    let mut done: u32 = 0;
    for index in 0..count {
        let at = item(parts, index, 8)?;
        let range = Range::new(word(at)?, word(item(at, 1, 4)?)?)?;
        if range.length() == 0 {
            continue;
        }
        match each(range) {
            Ok(taken) => {
                done = done.saturating_add(taken);
                if taken < range.length() {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}
