//! An I²C bus at the far end of a serial line, UART 1: `cargo xtask board` plays it, and a secure element on it, which no
//! emulator has (`xtask/src/board/element.rs`).
//!
//! A question is a letter, an address, a length and, for `W`, so many bytes; its answer a byte, `+` or `-`, and behind the
//! `+` of an `R` the bytes that were read. `T` has four bytes instead: microseconds that pass on the bus.

use core::time::Duration;

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;
use tenure_board_qemu_cortex_m::registers::Registers;
use tenure_hal::{I2c, I2cError};

use crate::awake;

// SAFETY: UART 1 of the machine (Arm DAI 0385D, table 3-1).
const UART: Registers = unsafe { Registers::at(0x4000_5000) };
// Arm DDI 0479D, table 4-5.
const DATA: usize = 0x00;
const STATE: usize = 0x04;
const CONTROL: usize = 0x08;
const INTERRUPT: usize = 0x0C;
const DIVISOR: usize = 0x10;

const TRANSMIT_FULL: u32 = 1;
const RECEIVED: u32 = 1 << 1;
/// Both directions, and an interrupt when something was received.
const BOTH_WITH_INTERRUPT: u32 = 1 << 3 | 1 << 1 | 1;
const RECEIVE_INTERRUPT: u32 = 1 << 1;
/// 115,200 bits a second at the machine's 25 MHz.
const DIVIDED_BY: u32 = 217;

const WRITE: u8 = b'W';
const READ: u8 = b'R';
const TIME: u8 = b'T';
const DONE: u8 = b'+';

/// How long an answer is waited for, in naps of a second at most.
const NAPS_MAX: u32 = 10;
const NAP: Duration = Duration::from_secs(1);

/// The interrupt of what UART 1 receives (Arm DAI 0385D, table 3-3).
#[derive(Clone, Copy)]
struct Arrival;

// SAFETY: the number of one of the machine's interrupts.
unsafe impl InterruptNumber for Arrival {
    fn number(self) -> u16 {
        2
    }
}

/// The line.
pub(crate) struct Line(());

impl Line {
    /// Takes the UART into use; interrupts are off, so that this one ends sleep alone.
    pub(crate) fn open() -> Self {
        UART.write(DIVISOR, DIVIDED_BY);
        UART.write(CONTROL, BOTH_WITH_INTERRUPT);
        // SAFETY: it is never taken, as interrupts are off.
        unsafe { NVIC::unmask(Arrival) };
        Self(())
    }

    fn ask(&mut self, parts: [&[u8]; 2]) {
        for byte in parts.into_iter().flatten() {
            while UART.read(STATE) & TRANSMIT_FULL != 0 {}
            UART.write(DATA, (*byte).into());
        }
    }

    fn next_byte(&mut self) -> Result<u8, I2cError> {
        for _ in 0..NAPS_MAX {
            if UART.read(STATE) & RECEIVED != 0 {
                // The next byte comes once this one is read.
                UART.write(INTERRUPT, RECEIVE_INTERRUPT);
                NVIC::unpend(Arrival);
                return Ok(UART.read(DATA) as u8);
            }
            awake::sleep_beside_card(NAP);
        }
        Err(I2cError::Bus)
    }

    fn take_outcome(&mut self) -> Result<(), I2cError> {
        if self.next_byte()? == DONE { Ok(()) } else { Err(I2cError::NotAcknowledged) }
    }
}

impl I2c for Line {
    fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), I2cError> {
        let length = u8::try_from(bytes.len()).map_err(|_| I2cError::Bus)?;
        self.ask([&[WRITE, address, length], bytes]);
        self.take_outcome()
    }

    fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), I2cError> {
        let length = u8::try_from(bytes.len()).map_err(|_| I2cError::Bus)?;
        self.ask([&[READ, address, length], &[]]);
        self.take_outcome()?;
        bytes.iter_mut().try_for_each(|byte| self.next_byte().map(|it| *byte = it))
    }

    fn wait_us(&mut self, us: u32) {
        awake::wait(Duration::from_micros(us.into()));
        self.ask([&[TIME], &us.to_be_bytes()]);
        // A bus that is gone is found out by the next message.
        let _ = self.take_outcome();
    }
}
