//! The page of memory that stays powered in deep sleep, on the emulated boards, and what hangs on it: reset
//! causes, deep sleep, retained memory.

use tenure_boot::always_on::{
    BYTES, CAUSE_AT, RETAINED_AT, STATUS_RESET, STATUS_SLEEP, TIME_AT, WAKE_AT,
};
use tenure_hal::{Instant, Power, ResetCause, Retained};

/// The page of a board, with the two functions that the board's power hangs on.
#[derive(Debug)]
pub struct AlwaysOn {
    page: *mut u8,
    /// Feeds the watchdog.
    feed: fn(),
    /// Ends the emulator with a status.
    exit: fn(i32) -> !,
}

impl AlwaysOn {
    /// Takes the page into use.
    ///
    /// # Safety
    /// At `page` lie [`BYTES`] of RAM for good, aligned to 8, of which nobody else writes any while the
    /// device runs, and of which there is no other `AlwaysOn`.
    pub unsafe fn new(page: *mut u8, feed: fn(), exit: fn(i32) -> !) -> Self {
        Self { page, feed, exit }
    }

    /// The microseconds from when power came until the device started.
    pub fn started_at_us(&self) -> u64 {
        // SAFETY: inside the page.
        u64::from_le_bytes(unsafe { self.page.add(TIME_AT).cast::<[u8; 8]>().read_volatile() })
    }

    /// Retained memory, for the kernel's breadcrumb: one for each `AlwaysOn`.
    pub fn lend_retained(&self) -> RetainedMemory {
        RetainedMemory(self.page)
    }
}

impl Power for AlwaysOn {
    fn reset_cause(&self) -> ResetCause {
        // SAFETY: inside the page.
        let byte = unsafe { self.page.add(CAUSE_AT).read_volatile() };
        ResetCause::from_byte(byte).unwrap_or(ResetCause::PowerOn)
    }

    fn retained(&mut self) -> &mut [u8] {
        // SAFETY: inside the page; a `RetainedMemory` writes there only in a machine's turn, while nobody
        // holds this.
        unsafe { core::slice::from_raw_parts_mut(self.page.add(RETAINED_AT), BYTES - RETAINED_AT) }
    }

    fn feed_watchdog(&mut self) {
        (self.feed)();
    }

    fn deep_sleep(&mut self, wake_at: Option<Instant>) {
        let wake_at = wake_at.map_or(u64::MAX, Instant::as_micros).to_le_bytes();
        // SAFETY: inside the page, beside what is retained.
        unsafe { self.page.add(WAKE_AT).cast::<[u8; 8]>().write_volatile(wake_at) };
        (self.exit)(STATUS_SLEEP)
    }

    fn reset(&mut self) {
        (self.exit)(STATUS_RESET)
    }
}

/// The part of the page that is the kernel's.
#[derive(Debug)]
pub struct RetainedMemory(*mut u8);

// SAFETY: the page is memory like any other; one core.
unsafe impl Send for RetainedMemory {}

impl Retained for RetainedMemory {
    fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(BYTES - RETAINED_AT);
        // Byte by byte and volatile: the reader comes after a reset, which no compiler knows of.
        for (index, byte) in bytes[..length].iter().enumerate() {
            // SAFETY: inside the page; nobody holds a slice of it while a machine's turn begins or ends.
            unsafe { self.0.add(RETAINED_AT + index).write_volatile(*byte) };
        }
    }
}
