//! The memory that stays powered in deep sleep on the emulated boards: a page, agreed between the firmware
//! and whoever starts the emulator and stands for the chip's reset controller.
//!
//! | offset | bytes | what | who writes it |
//! |---|---|---|---|
//! | 0 | 4 | why the device starts, by [`ResetCause::to_byte`] | the starter, before each start |
//! | 8 | 8 | the microseconds since power came | the starter, before each start |
//! | 16 | 8 | when to wake, on that clock; all ones for not by time | the firmware, before it sleeps |
//! | 64 | 4032 | retained memory | the firmware |
//!
//! Numbers are little endian. The emulator's exit status says what the firmware wants next.

#[cfg(doc)]
use tenure_hal::ResetCause;

/// The length of all of it.
pub const BYTES: usize = 4096;
/// Why the device starts.
pub const CAUSE_AT: usize = 0;
/// The microseconds since power came, when the emulator was started.
pub const TIME_AT: usize = 8;
/// When to wake.
pub const WAKE_AT: usize = 16;
/// Retained memory.
pub const RETAINED_AT: usize = 64;

/// The emulator's exit status when its watchdog has bitten, which it ends by itself for.
pub const STATUS_WATCHDOG: i32 = 0;
/// The firmware can't go on, and a new start wouldn't help.
pub const STATUS_FAULT: i32 = 1;
/// The firmware wants to start anew.
pub const STATUS_RESET: i32 = 16;
/// The firmware sleeps, with the power off but for this page.
pub const STATUS_SLEEP: i32 = 17;
