//! The parts that the firmware and the loader of QEMU's `mps2-an385` machine share: its console, flash, watchdog, and
//! the memory that stays powered.
//!
//! Unsafe code is needed to touch the machine. Each use says what it relies on; in all of them there is
//! one core, and interrupts are off.
#![no_std]

pub mod console;
pub mod flash;
pub mod registers;
pub mod watchdog;

use tenure_boot::always_on::CAUSE_AT;
use tenure_hal::ResetCause;

/// The name of this board in images of its firmware: a Cortex-M0+ can't run what is built for an M3.
pub const BOARD: &str =
    if cfg!(target_has_atomic = "32") { "qemu-cortex-m" } else { "qemu-cortex-m0" };

/// Where a firmware stands to run: the window in which a chip maps the slot that was chosen. Here the
/// loader copies it.
pub const WINDOW: usize = 0x0001_0000;

/// Where the vectors stand in it: aligned to more than their length (ARMv7-M manual, B3.2.5).
pub const VECTORS: usize = WINDOW + 0x400;

/// Ends the emulator with `status`, one of those in [`tenure_boot::always_on`].
pub fn exit(status: i32) -> ! {
    semihosting::process::exit(status)
}

unsafe extern "C" {
    /// The page of memory that stays powered; the linker knows where it is.
    static mut always_on_page: u8;
}

/// The page of memory that stays powered in deep sleep: a part of the machine's PSRAM.
pub fn always_on() -> *mut u8 {
    &raw mut always_on_page
}

/// Why the device has started.
pub fn reset_cause() -> ResetCause {
    // SAFETY: inside the page; whoever started the emulator wrote it before, and nobody does now.
    let byte = unsafe { always_on().add(CAUSE_AT).read_volatile() };
    ResetCause::from_byte(byte).unwrap_or(ResetCause::PowerOn)
}
