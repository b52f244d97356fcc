//! A block of a device's registers.

/// The words from a base address on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers(usize);

impl Registers {
    /// # Safety
    /// From `base` on lie registers of a device, which any code may read and write.
    pub(crate) const unsafe fn at(base: usize) -> Self {
        Self(base)
    }

    pub(crate) fn read(self, offset: usize) -> u32 {
        // SAFETY: whoever made `self` promised that registers lie here.
        unsafe { ((self.0 + offset) as *const u32).read_volatile() }
    }

    pub(crate) fn write(self, offset: usize, word: u32) {
        // SAFETY: as above.
        unsafe { ((self.0 + offset) as *mut u32).write_volatile(word) };
    }
}
