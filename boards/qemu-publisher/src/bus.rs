//! The bus of the secure element: the machine's own, or the one that an emulator's surroundings play.

use tenure_hal::{I2c, I2cError};

use crate::i2c::Pins;
use crate::line::Line;

/// Where the element is.
pub(crate) enum Bus {
    Pins(Pins),
    Line(Line),
}

impl I2c for Bus {
    fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), I2cError> {
        match self {
            Self::Pins(pins) => pins.write(address, bytes),
            Self::Line(line) => line.write(address, bytes),
        }
    }

    fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError> {
        match self {
            Self::Pins(pins) => pins.read(address, bytes),
            Self::Line(line) => line.read(address, bytes),
        }
    }

    fn wait_us(&mut self, us: u32) {
        match self {
            Self::Pins(pins) => pins.wait_us(us),
            Self::Line(line) => line.wait_us(us),
        }
    }
}
