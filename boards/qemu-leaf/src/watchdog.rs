//! The watchdog, which ends the emulator when it isn't fed (LM3S6965 data sheet, chapter 11).

use crate::registers::Registers;

// SAFETY: the chip's watchdog (data sheet, table 2-1).
const WATCHDOG: Registers = unsafe { Registers::at(0x4000_0000) };
const LOAD: usize = 0x0;
const CONTROL: usize = 0x8;
const CLEAR: usize = 0xC;
const LOCK: usize = 0xC00;

const UNLOCKED: u32 = 0x1ACC_E551;
/// It counts, and what it hasn't been fed for twice is a reset.
const COUNTS_AND_RESETS: u32 = 0b11;
/// How long the device may stand still.
const PERIOD_S: u32 = 16;
/// It counts 50 million a second; the second time that it has run down makes the period.
const LOAD_TICKS: u32 = PERIOD_S / 2 * 50_000_000;

/// Starts it. From then on it must be fed.
pub(crate) fn start() {
    WATCHDOG.write(LOCK, UNLOCKED);
    WATCHDOG.write(LOAD, LOAD_TICKS);
    WATCHDOG.write(CONTROL, COUNTS_AND_RESETS);
}

/// Says that all is well.
pub(crate) fn feed() {
    WATCHDOG.write(CLEAR, 1);
}
