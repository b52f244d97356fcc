//! The UART: Arm's CMSDK, which under QEMU is always soon ready to send.

use core::fmt;

use crate::registers::Registers;

// SAFETY: UART 0 of the machine (Arm DAI 0385D, table 3-1).
const UART: Registers = unsafe { Registers::at(0x4000_4000) };
const DATA: usize = 0x00;
const STATE: usize = 0x04;
const CONTROL: usize = 0x08;
const DIVISOR: usize = 0x10;

const TRANSMIT_FULL: u32 = 1;
const TRANSMIT: u32 = 1;
/// 115,200 bits a second at the machine's 25 MHz.
const DIVIDED_BY: u32 = 217;

/// Lets the UART send.
pub fn init() {
    UART.write(DIVISOR, DIVIDED_BY);
    UART.write(CONTROL, TRANSMIT);
}

/// The console.
#[derive(Clone, Copy, Debug)]
pub struct Uart;

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while UART.read(STATE) & TRANSMIT_FULL != 0 {}
            UART.write(DATA, byte.into());
        }
        Ok(())
    }
}
