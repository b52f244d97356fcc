//! The UARTs of an mps2 (ARM DUI 0479, CMSDK), whose other ends are byte streams of the host.

use core::ptr::{read_volatile, write_volatile};

/// A UART that nothing else uses.
pub(crate) struct Uart {
    base: usize,
}

impl Uart {
    const DATA: usize = 0;
    const STATE: usize = 4;
    const CONTROL: usize = 8;
    const DIVISOR: usize = 16;

    /// Switches on the UART with `number`, 0 or 1, for as long as it lives.
    pub(crate) fn enable(number: usize) -> Self {
        let uart = Self { base: 0x4000_4000 + 0x1000 * number };
        // SAFETY: the registers of this UART.
        unsafe {
            write_volatile(uart.register(Self::DIVISOR), 16);
            write_volatile(uart.register(Self::CONTROL), 3);
        }
        uart
    }

    fn register(&self, offset: usize) -> *mut u32 {
        (self.base + offset) as *mut u32
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // SAFETY: as above; bit 0 says that there is no room.
            unsafe {
                while read_volatile(self.register(Self::STATE)) & 1 != 0 {}
                write_volatile(self.register(Self::DATA), u32::from(*byte));
            }
        }
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // SAFETY: as above; bit 1 says that there is a byte.
            unsafe {
                while read_volatile(self.register(Self::STATE)) & 2 == 0 {}
                *byte = read_volatile(self.register(Self::DATA)) as u8;
            }
        }
    }
}
