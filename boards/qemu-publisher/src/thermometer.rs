//! The sensor: a TMP105 on the machine's I²C bus (TI SBOS648).

use tenure_hal::{I2c as _, I2cError};

use crate::i2c::Pins;

/// Its address with all three pins for it at ground.
const ADDRESS: u8 = 0x48;
/// The register of the temperature (7.5.2).
const TEMPERATURE: u8 = 0;

/// The temperature in thousandths of a degree Celsius.
pub(crate) fn read() -> Result<i32, I2cError> {
    let mut bus = Pins::SHIELD;
    bus.write(ADDRESS, &[TEMPERATURE])?;
    let mut bytes = [0; 2];
    bus.read(ADDRESS, &mut bytes)?;
    // In units of 1/256 of a degree; the lowest four bits are none (7.5.2).
    Ok(i32::from(i16::from_be_bytes(bytes)) * 1_000 / 256)
}
