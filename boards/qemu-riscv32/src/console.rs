//! The UART: a 16550, which under QEMU is always ready to send.

use core::fmt;

const TRANSMIT: *mut u8 = 0x1000_0000 as *mut u8;

/// The console.
#[derive(Clone, Copy, Debug)]
pub struct Uart;

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the transmit register of the machine's UART.
            unsafe { TRANSMIT.write_volatile(byte) };
        }
        Ok(())
    }
}
