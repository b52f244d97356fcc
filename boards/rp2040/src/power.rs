//! Why the chip started, its watchdog, sleep, and the page of RAM that outlives a reset.
//!
//! The watchdog's scratch registers outlive every reset but a loss of power; the first says what our own software
//! wanted by the last one. The page holds the time, which the timer loses with each reset, and what the kernel keeps.

use cortex_m::asm::wfi;
use rp2040_hal::pac;
use tenure_hal::{Instant, Power, ResetCause, Retained};

/// The watchdog's period: with its counter going down by two a tick (erratum RP2040-E1), the chip has 8.3 s at most.
pub const PERIOD_MS: u32 = 8_000;

/// The first scratch register's value when the software started the chip anew.
const RESTARTED: u32 = 0x5446_5273;
/// Its value when a sleep has ended.
const WOKEN: u32 = 0x5446_776B;

const PAGE_BYTES: usize = 4096;
/// The microseconds since power came, as of the last time that the watchdog was fed.
const TIME_AT: usize = 0;
const RETAINED_AT: usize = 16;

unsafe extern "C" {
    static mut retained_page: u8;
}

fn page() -> *mut u8 {
    &raw mut retained_page
}

fn watchdog() -> &'static pac::watchdog::RegisterBlock {
    // SAFETY: registers of the chip for good; one core uses them.
    unsafe { &*pac::WATCHDOG::ptr() }
}

/// Why the chip started, by the watchdog's and our own words (data sheet, 4.7.6). A brown-out resets as a loss of
/// power does, and the chip can't tell them apart.
pub fn reset_cause() -> ResetCause {
    let reason = watchdog().reason().read();
    if reason.timer().bit_is_set() {
        return ResetCause::Watchdog;
    }
    match (reason.force().bit_is_set(), watchdog().scratch0().read().bits()) {
        (true, WOKEN) => ResetCause::Wake,
        (true, RESTARTED) => ResetCause::Software,
        (true, _) => ResetCause::Watchdog,
        (false, _) => ResetCause::PowerOn,
    }
}

/// Starts the chip anew.
pub fn reset() -> ! {
    restart(RESTARTED)
}

fn restart(why: u32) -> ! {
    // SAFETY: any word may stand in a scratch register.
    watchdog().scratch0().write(|w| unsafe { w.bits(why) });
    watchdog().ctrl().modify(|_, w| w.trigger().set_bit());
    loop {
        cortex_m::asm::nop();
    }
}

/// Reset controller, watchdog, sleep.
pub struct ChipPower {
    cause: ResetCause,
    /// The microseconds since power came, at reset.
    reset_us: u64,
    watchdog: rp2040_hal::Watchdog,
    now_us: fn() -> u64,
    /// Lets an interrupt be pending at that time on the timer, if there is one, and whenever a line wakes.
    set_alarm: fn(Option<u64>),
}

impl ChipPower {
    /// Takes what the boot left; `now_us` reads the timer, and `set_alarm` sets its alarm.
    pub fn new(
        watchdog: rp2040_hal::Watchdog,
        now_us: fn() -> u64,
        set_alarm: fn(Option<u64>),
    ) -> Self {
        let cause = reset_cause();
        let reset_us = match cause.keeps_retained_memory() {
            // SAFETY: inside the page, aligned.
            true => unsafe { page().add(TIME_AT).cast::<u64>().read_volatile() },
            false => 0,
        };
        Self { cause, reset_us, watchdog, now_us, set_alarm }
    }

    /// The microseconds since power came, at reset.
    pub fn reset_us(&self) -> u64 {
        self.reset_us
    }

    /// The retained page, for the kernel's breadcrumb.
    pub fn lend_retained(&self) -> RetainedPage {
        RetainedPage
    }

    fn keep_time(&self) {
        let now = self.reset_us + (self.now_us)();
        // SAFETY: inside the page, aligned; nobody holds a slice of these bytes.
        unsafe { page().add(TIME_AT).cast::<u64>().write_volatile(now) };
    }
}

impl Power for ChipPower {
    fn reset_cause(&self) -> ResetCause {
        self.cause
    }

    fn retained(&mut self) -> &mut [u8] {
        // SAFETY: inside the page; a `RetainedPage` writes there only in a machine's turn, while nobody holds this.
        unsafe {
            core::slice::from_raw_parts_mut(page().add(RETAINED_AT), PAGE_BYTES - RETAINED_AT)
        }
    }

    fn feed_watchdog(&mut self) {
        self.keep_time();
        self.watchdog.feed();
    }

    /// Sleeps with the system's clock stopped but for what wakes it, and starts anew. RAM stays powered, as it always
    /// does on this chip.
    fn deep_sleep(&mut self, wake_at: Option<Instant>) {
        self.watchdog.disable();
        let until = wake_at.map(|at| at.as_micros().saturating_sub(self.reset_us));
        (self.set_alarm)(until);
        while until.is_none_or(|until| (self.now_us)() < until) {
            wfi();
            if cortex_m::peripheral::NVIC::is_pending(pac::Interrupt::IO_IRQ_BANK0) {
                break;
            }
        }
        self.keep_time();
        restart(WOKEN)
    }

    fn reset(&mut self) {
        self.keep_time();
        reset()
    }
}

/// The part of the page that is the kernel's.
#[derive(Debug)]
pub struct RetainedPage;

impl Retained for RetainedPage {
    fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(PAGE_BYTES - RETAINED_AT);
        for (index, byte) in bytes[..length].iter().enumerate() {
            // SAFETY: inside the page; nobody holds a slice of it while a machine's turn begins or ends.
            unsafe { page().add(RETAINED_AT + index).write_volatile(*byte) };
        }
    }
}
