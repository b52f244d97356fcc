//! Time and sleep: the CMSDK's two timers, which count 25 million a second downwards. The first runs
//! for good and is the clock, the second is the alarm.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use tenure_board_common::microseconds;
use tenure_hal::{Clock, Instant, UnixTime};

use crate::interrupts;
use tenure_board_qemu_cortex_m::registers::Registers;

// SAFETY: timers 0 and 1 of the machine (Arm DAI 0385D, table 3-1).
const COUNTER: Registers = unsafe { Registers::at(0x4000_0000) };
// SAFETY: as above.
const ALARM: Registers = unsafe { Registers::at(0x4000_1000) };
const CONTROL: usize = 0x0;
const VALUE: usize = 0x4;
const RELOAD: usize = 0x8;
const INTERRUPT: usize = 0xC;

const ENABLE: u32 = 1;
const INTERRUPT_ENABLE: u32 = 1 << 3;

const TICKS_PER_MICROSECOND: u32 = 25;
/// The longest nap, so that the clock is read at least once while its 32 bits run through.
const NAP_MAX: Duration = Duration::from_secs(100);

/// How often the counter has run through, and where it was when it was last read. One core and no
/// handler that reads the clock: loads and stores suffice, which is all that ARMv6-M has.
static ROUNDS: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicU32 = AtomicU32::new(0);

/// Starts the clock.
pub(crate) fn init() {
    COUNTER.write(RELOAD, u32::MAX);
    COUNTER.write(VALUE, u32::MAX);
    COUNTER.write(CONTROL, ENABLE);
}

/// The clock of the machine; it has no wall clock, as the chips that it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// The time at reset, in microseconds since power came.
    reset_us: u64,
}

impl Timer {
    /// The clock of a device that started so long after power came.
    pub(crate) fn started_at(reset_us: u64) -> Self {
        Self { reset_us }
    }
}

impl Clock for Timer {
    fn now(&self) -> Instant {
        let low = ticks();
        let mut rounds = ROUNDS.load(Ordering::Relaxed);
        if low < LAST.load(Ordering::Relaxed) {
            rounds = rounds.wrapping_add(1);
            ROUNDS.store(rounds, Ordering::Relaxed);
        }
        LAST.store(low, Ordering::Relaxed);
        let ticks = u64::from(rounds) << 32 | u64::from(low);
        Instant::from_micros(self.reset_us + microseconds::<TICKS_PER_MICROSECOND>(ticks))
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

/// Ticks since the start, from zero again when they have gone through.
pub(crate) fn ticks() -> u32 {
    !COUNTER.read(VALUE)
}

/// Sleeps until an interrupt is pending, `nap` is over, or [`NAP_MAX`] is.
pub(crate) fn wait(nap: Duration) {
    // At most 100 s: fits.
    ring_in(nap.min(NAP_MAX).as_micros() as u32);
    // With PRIMASK set, `wfi` still ends when an interrupt is pending (ARMv7-M manual, B1.5.19).
    cortex_m::asm::wfi();
    silence();
}

/// Lets the alarm's interrupt be pending after so long, at most [`NAP_MAX`].
pub(crate) fn ring_in(microseconds: u32) {
    // A timer of no ticks would never ring.
    let ticks = microseconds.saturating_mul(TICKS_PER_MICROSECOND).max(1);
    ALARM.write(RELOAD, ticks);
    ALARM.write(VALUE, ticks);
    ALARM.write(CONTROL, ENABLE | INTERRUPT_ENABLE);
}

/// Forgets the alarm.
pub(crate) fn silence() {
    ALARM.write(CONTROL, 0);
    ALARM.write(INTERRUPT, 1);
    interrupts::clear(interrupts::ALARM);
}
