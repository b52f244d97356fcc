//! The watchdog: Arm's CMSDK, which counts whatever the core does and ends the emulator when it isn't fed
//! (Arm DDI 0479D, 4.7).

use crate::registers::Registers;

// SAFETY: the watchdog of the machine (Arm DAI 0385D, table 3-1).
const WATCHDOG: Registers = unsafe { Registers::at(0x4000_8000) };
const LOAD: usize = 0x0;
const CONTROL: usize = 0x8;
const CLEAR: usize = 0xC;
const LOCK: usize = 0xC00;

const UNLOCKED: u32 = 0x1ACC_E551;
/// It counts, and what it hasn't been fed for twice is a reset.
const COUNTS_AND_RESETS: u32 = 0b11;

/// How long the device may stand still, or a firmware on trial take until it is confirmed.
pub const PERIOD_MS: u32 = 16_000;
/// It counts 25 million a second; the second time that it has run down makes the period.
const LOAD_TICKS: u32 = PERIOD_MS / 2 * 25_000;

/// Starts it. From then on it must be fed.
pub fn start() {
    WATCHDOG.write(LOCK, UNLOCKED);
    WATCHDOG.write(LOAD, LOAD_TICKS);
    WATCHDOG.write(CONTROL, COUNTS_AND_RESETS);
}

/// Says that all is well.
pub fn feed() {
    WATCHDOG.write(CLEAR, 1);
}
