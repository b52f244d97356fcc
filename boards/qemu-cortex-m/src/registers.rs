//! A block of a device's registers.

/// The words from a base address on.
#[derive(Clone, Copy, Debug)]
pub struct Registers(usize);

impl Registers {
    /// The registers from `base` on.
    ///
    /// # Safety
    /// From `base` on lie registers of a device, which any code may read and write.
    pub const unsafe fn at(base: usize) -> Self {
        Self(base)
    }

    /// The word at `offset`, in bytes.
    pub fn read(self, offset: usize) -> u32 {
        // SAFETY: whoever made `self` promised that registers lie here.
        unsafe { ((self.0 + offset) as *const u32).read_volatile() }
    }

    /// Sets the word at `offset`, in bytes.
    pub fn write(self, offset: usize, word: u32) {
        // SAFETY: as above.
        unsafe { ((self.0 + offset) as *mut u32).write_volatile(word) };
    }
}
