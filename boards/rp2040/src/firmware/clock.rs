//! Time and naps: the chip's timer, which counts microseconds in 64 bits, and its first alarm.

use core::time::Duration;

use cortex_m::asm::wfi;
use cortex_m::peripheral::NVIC;
use rp2040_hal::pac;
use tenure_hal::{Clock, Instant, UnixTime};

/// The longest nap: the lines have no interrupt of their own while direct memory access empties them.
const NAP_MAX: Duration = Duration::from_millis(2);

/// The interrupts that end a nap.
const WAKING: [pac::Interrupt; 3] =
    [pac::Interrupt::TIMER_IRQ_0, pac::Interrupt::USBCTRL_IRQ, pac::Interrupt::IO_IRQ_BANK0];

fn timer() -> &'static pac::timer::RegisterBlock {
    // SAFETY: registers of the chip for good; one core uses them.
    unsafe { &*pac::TIMER::ptr() }
}

/// Lets what ends a nap be pending. None of it is ever handled: interrupts are off.
pub(super) fn start() {
    timer().inte().modify(|_, w| w.alarm_0().set_bit());
    for interrupt in WAKING {
        // SAFETY: interrupts are off, so unmasking one calls nothing.
        unsafe { NVIC::unmask(interrupt) };
    }
}

/// The microseconds since reset.
pub(super) fn timer_us() -> u64 {
    loop {
        let high = timer().timerawh().read().bits();
        let low = timer().timerawl().read().bits();
        if timer().timerawh().read().bits() == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Sets the alarm to that time on the timer, or switches it off.
pub(super) fn set_alarm(at_us: Option<u64>) {
    timer().armed().write(|w| {
        // SAFETY: a one disarms the alarm of its bit (data sheet, 4.6.3).
        unsafe { w.bits(1) }
    });
    if let Some(at) = at_us {
        // The alarm compares the low 32 bits; a caller that wants more looks at the time and goes on.
        // SAFETY: any time may be set.
        timer().alarm0().write(|w| unsafe { w.bits(at as u32) });
    }
}

/// Naps until `nap` is over, [`NAP_MAX`] is, or something is pending.
pub(super) fn wait(nap: Duration) {
    let until = timer_us() + (nap.min(NAP_MAX).as_micros() as u64).max(1);
    set_alarm(Some(until));
    // An alarm that is set to what has passed already would ring in an hour.
    if timer_us() < until {
        // With interrupts off, `wfi` still ends when one is pending (ARMv6-M manual, B1.5.14).
        wfi();
    }
    set_alarm(None);
    timer().intr().write(|w| w.alarm_0().clear_bit_by_one());
    // An interrupt that was pending stays so though its cause is gone, since nothing handles it.
    WAKING.into_iter().for_each(NVIC::unpend);
}

/// The clock of the chip, which has no wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// The microseconds since power came, at reset.
    reset_us: u64,
}

impl Timer {
    /// The clock of a device that started so long after power came.
    pub(super) fn started_at(reset_us: u64) -> Self {
        Self { reset_us }
    }
}

impl Clock for Timer {
    fn now(&self) -> Instant {
        Instant::from_micros(self.reset_us + timer_us())
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}
