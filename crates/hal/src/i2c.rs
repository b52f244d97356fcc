//! A bus of two wires with short messages to chips on the same board, and waiting for such a chip.

/// The master of an I²C bus (NXP UM10204).
///
/// A message takes as long as its bytes do, about 25 µs each at 400 kHz; nothing waits for a chip that isn't ready:
/// it doesn't acknowledge its address.
pub trait I2c {
    /// Sends `bytes` to the chip with the 7-bit `address`.
    ///
    /// # Errors
    /// [`I2cError`]; a part may have been sent.
    fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), I2cError>;

    /// Fills `bytes` from the chip with the 7-bit `address`.
    ///
    /// # Errors
    /// [`I2cError`]; `bytes` means nothing then.
    fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError>;

    /// Waits for at least `us` microseconds. A board may sleep or do other work meanwhile.
    fn wait_us(&mut self, us: u32);
}

/// Why a message didn't pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum I2cError {
    /// No chip acknowledged the address, or one that is busy or asleep didn't.
    NotAcknowledged,
    /// The bus is stuck, or another master took it.
    Bus,
}

impl core::fmt::Display for I2cError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotAcknowledged => "the chip does not acknowledge",
            Self::Bus => "the I2C bus failed",
        })
    }
}

impl core::error::Error for I2cError {}
