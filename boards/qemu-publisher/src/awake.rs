//! Sleep, and for how long the processor was awake.
//!
//! In an emulator that counts instructions (`-icount shift=0`) each takes a nanosecond, so that a microsecond awake is a
//! thousand instructions.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use cortex_m::peripheral::NVIC;
use tenure_board_common::microseconds;
use tenure_hal::Clock as _;

use crate::clock::{self, Timer};
use crate::interrupts::CARD;

const TICKS_PER_MICROSECOND: u32 = 25;

/// Ticks that were slept, in two halves. One core and no handler that asks: loads and stores suffice.
static SLEPT: AtomicU32 = AtomicU32::new(0);
static SLEPT_HIGH: AtomicU32 = AtomicU32::new(0);

/// Sleeps until an interrupt is pending or `nap` is over.
pub(crate) fn sleep(nap: Duration) {
    let before = clock::ticks();
    clock::wait(nap);
    let slept = clock::ticks().wrapping_sub(before);
    let (low, carried) = SLEPT.load(Ordering::Relaxed).overflowing_add(slept);
    SLEPT.store(low, Ordering::Relaxed);
    if carried {
        SLEPT_HIGH.store(SLEPT_HIGH.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// For how long the processor was awake since the clock was started.
pub(crate) fn span() -> Duration {
    let high = SLEPT_HIGH.load(Ordering::Relaxed);
    let slept = u64::from(high) << 32 | u64::from(SLEPT.load(Ordering::Relaxed));
    let since_start = Timer::started_at(0).now().as_micros();
    Duration::from_micros(since_start.saturating_sub(microseconds::<TICKS_PER_MICROSECOND>(slept)))
}

/// As [`sleep`], though the card may have had something for long.
pub(crate) fn sleep_beside_card(nap: Duration) {
    NVIC::mask(CARD);
    sleep(nap);
    // SAFETY: it is never taken, as interrupts are off; what was pending is so now.
    unsafe { NVIC::unmask(CARD) };
}

/// Sleeps until `span` is over.
pub(crate) fn wait(span: Duration) {
    let clock = Timer::started_at(0);
    let end = clock.now() + span;
    loop {
        let left = end.since(clock.now());
        if left.is_zero() {
            return;
        }
        sleep_beside_card(left);
    }
}
