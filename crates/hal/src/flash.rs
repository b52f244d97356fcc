//! NOR flash: bits are cleared by programming, set by erasing a whole sector.

use core::fmt;

/// The shape of a flash device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashGeometry {
    /// The smallest unit that can be erased, in bytes; a power of two, 4096 as a rule.
    pub sector_bytes: u32,
    /// How many sectors there are.
    pub sector_count: u32,
    /// The smallest unit that can be programmed, in bytes: 1, 2, 4, 8 or 16. Offsets and lengths
    /// of [`Flash::program`] are multiples of it.
    pub program_bytes: u32,
}

impl FlashGeometry {
    /// The size of the device in bytes.
    pub const fn bytes(&self) -> u32 {
        self.sector_bytes * self.sector_count
    }
}

/// A NOR flash device, or a partition of one.
///
/// Each implementation guarantees, and a caller may build on it:
/// - An erased byte reads `0xFF`.
/// - `program` can clear bits and never sets one; the same place may be programmed again as long
///   as no bit is asked to go from 0 to 1.
/// - When power fails during `program`, any prefix of the bytes may be programmed, and the program
///   unit at its end may hold any mixture of old and new bits; during `erase`, the sector may hold
///   anything. No other sector changes. A bit that was left between two states so may read otherwise at
///   each start, until a 0 is programmed over it or its sector is erased.
/// - When a call returns `Ok`, its effect survives a loss of power.
pub trait Flash {
    /// The shape of this device, the same at every call.
    fn geometry(&self) -> FlashGeometry;

    /// Reads `into.len()` bytes from `offset`.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`] or [`FlashError::Hardware`].
    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError>;

    /// Programs `bytes` at `offset`; both offset and length are multiples of the program unit.
    ///
    /// # Errors
    /// [`FlashError::NotErased`] if a bit would have to go from 0 to 1, and nothing is written
    /// then; otherwise as the variant says.
    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError>;

    /// Erases sector number `sector` to all ones.
    ///
    /// # Errors
    /// [`FlashError::OutOfRange`] or [`FlashError::Hardware`].
    fn erase(&mut self, sector: u32) -> Result<(), FlashError>;

    /// The whole device as memory, where it is mapped into the address space, so that code can be
    /// executed in place.
    fn mapped(&self) -> Option<&[u8]>;
}

impl<F: Flash + ?Sized> Flash for &mut F {
    fn geometry(&self) -> FlashGeometry {
        (**self).geometry()
    }
    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        (**self).read(offset, into)
    }
    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        (**self).program(offset, bytes)
    }
    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        (**self).erase(sector)
    }
    fn mapped(&self) -> Option<&[u8]> {
        (**self).mapped()
    }
}

/// Why a flash operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashError {
    /// The caller's mistake: beyond the end of the device.
    OutOfRange,
    /// The caller's mistake: not a multiple of the program unit.
    Misaligned,
    /// The caller's mistake: a bit would have to go from 0 to 1.
    NotErased,
    /// The hardware's: the device reported a fault, or its power is gone.
    Hardware,
}

impl fmt::Display for FlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "beyond the end of the flash",
            Self::Misaligned => "not aligned to the flash's program unit",
            Self::NotErased => "the flash is not erased there",
            Self::Hardware => "the flash device failed",
        })
    }
}

impl core::error::Error for FlashError {}
