//! I²C on the machine's two pins for it: Arm's SBCon, which sets and clears the lines and leaves the protocol to the
//! processor (NXP UM10204, at 100 kHz).

use core::time::Duration;

use tenure_board_qemu_cortex_m::registers::Registers;
use tenure_hal::{I2c, I2cError};

use crate::awake;

/// Sets lines where it is written, and reads as the lines are.
const SET: usize = 0x0;
/// Clears lines.
const CLEAR: usize = 0x4;

const CLOCK: u32 = 1;
const DATA: u32 = 1 << 1;

/// Half a bit at 100 kHz, in the machine's 25 million cycles a second.
const HALF_BIT_CYCLES: u32 = 125;
/// How often a chip that holds the clock down is looked at: for about 10 ms.
const STRETCHES_MAX: u32 = 2_000;

const READING: u8 = 1;

/// The two lines of one bus, which are high unless somebody pulls them down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pins(Registers);

impl Pins {
    /// The bus of the second shield's connector.
    // SAFETY: its controller (Arm DAI 0385D, table 3-1).
    pub(crate) const SHIELD: Self = Self(unsafe { Registers::at(0x4002_A000) });

    fn let_go(self, line: u32) {
        self.0.write(SET, line);
        cortex_m::asm::delay(HALF_BIT_CYCLES);
    }

    fn pull(self, line: u32) {
        self.0.write(CLEAR, line);
        cortex_m::asm::delay(HALF_BIT_CYCLES);
    }

    fn is_high(self, line: u32) -> bool {
        self.0.read(SET) & line != 0
    }

    /// Lets the clock rise, and waits for a chip that holds it down (3.1.9).
    fn raise_clock(self) -> Result<(), I2cError> {
        self.let_go(CLOCK);
        for _ in 0..STRETCHES_MAX {
            if self.is_high(CLOCK) {
                return Ok(());
            }
            cortex_m::asm::delay(HALF_BIT_CYCLES);
        }
        Err(I2cError::Bus)
    }

    /// Takes the bus (3.1.4).
    fn start(self) -> Result<(), I2cError> {
        self.let_go(DATA);
        self.raise_clock()?;
        if !self.is_high(DATA) {
            return Err(I2cError::Bus);
        }
        self.pull(DATA);
        self.pull(CLOCK);
        Ok(())
    }

    /// Gives the bus back (3.1.4).
    fn stop(self) -> Result<(), I2cError> {
        self.pull(DATA);
        self.raise_clock()?;
        self.let_go(DATA);
        Ok(())
    }

    fn write_bit(self, is_one: bool) -> Result<(), I2cError> {
        if is_one {
            self.let_go(DATA)
        } else {
            self.pull(DATA)
        }
        self.raise_clock()?;
        self.pull(CLOCK);
        Ok(())
    }

    fn read_bit(self) -> Result<bool, I2cError> {
        self.let_go(DATA);
        self.raise_clock()?;
        let is_one = self.is_high(DATA);
        self.pull(CLOCK);
        Ok(is_one)
    }

    /// A byte, the highest bit first, and its acknowledgment (3.1.5, 3.1.6).
    fn write_byte(self, byte: u8) -> Result<(), I2cError> {
        for bit in (0..8).rev() {
            self.write_bit(byte >> bit & 1 == 1)?;
        }
        if self.read_bit()? { Err(I2cError::NotAcknowledged) } else { Ok(()) }
    }

    fn read_byte(self, is_last: bool) -> Result<u8, I2cError> {
        let mut byte = 0;
        for _ in 0..8 {
            byte = byte << 1 | u8::from(self.read_bit()?);
        }
        self.write_bit(is_last)?;
        Ok(byte)
    }

    fn write_all(self, address: u8, bytes: &[u8]) -> Result<(), I2cError> {
        self.write_byte(address << 1)?;
        bytes.iter().try_for_each(|byte| self.write_byte(*byte))
    }

    fn read_all(self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError> {
        self.write_byte(address << 1 | READING)?;
        let last = bytes.len().saturating_sub(1);
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = self.read_byte(place == last)?;
        }
        Ok(())
    }
}

impl I2c for Pins {
    fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), I2cError> {
        self.start()?;
        let written = self.write_all(address, bytes);
        let stopped = self.stop();
        written.and(stopped)
    }

    fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError> {
        self.start()?;
        let read = self.read_all(address, bytes);
        let stopped = self.stop();
        read.and(stopped)
    }

    fn wait_us(&mut self, us: u32) {
        awake::wait(Duration::from_micros(us.into()));
    }
}
