//! The parts that the firmware and the loader of QEMU's `virt` machine share: its console, flash, watchdog, and the
//! memory that stays powered.
//!
//! Unsafe code is needed to touch the machine. Each use says what it relies on; in all of them there is
//! one hart, and interrupts are off in machine mode.
#![no_std]

pub mod console;
pub mod emulator;
pub mod flash;
mod pci;
pub mod watchdog;

use tenure_boot::always_on::CAUSE_AT;
use tenure_hal::ResetCause;

/// The name of this board in images of its firmware.
pub const BOARD: &str = "qemu-riscv32";

/// Where a firmware stands to run: the window in which a chip maps the slot that was chosen. Here the
/// loader copies it.
pub const WINDOW: usize = 0x8001_0000;

unsafe extern "C" {
    /// The page of memory that stays powered; the linker knows where it is.
    static mut always_on_page: u8;
}

/// The page of memory that stays powered in deep sleep, as an ESP32-C3's RTC domain does.
pub fn always_on() -> *mut u8 {
    &raw mut always_on_page
}

/// Why the device has started.
pub fn reset_cause() -> ResetCause {
    // SAFETY: inside the page; whoever started the emulator wrote it before, and nobody does now.
    let byte = unsafe { always_on().add(CAUSE_AT).read_volatile() };
    ResetCause::from_byte(byte).unwrap_or(ResetCause::PowerOn)
}
