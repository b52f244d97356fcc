//! Time and sleep: the CLINT's timer, which counts ten million a second from reset on, and what the part
//! of the chip that stays powered counted before.

use core::time::Duration;

use riscv::register::mie;
use tenure_board_common::microseconds;
use tenure_hal::{Clock, Instant, UnixTime};

const TIME_LOW: *const u32 = 0x0200_BFF8 as *const u32;
const TIME_HIGH: *const u32 = 0x0200_BFFC as *const u32;
const COMPARE_LOW: *mut u32 = 0x0200_4000 as *mut u32;
const COMPARE_HIGH: *mut u32 = 0x0200_4004 as *mut u32;

const TICKS_PER_MICROSECOND: u32 = 10;

/// The clock of the machine; it has no wall clock, as the chips that it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineTimer {
    /// The time at reset, in microseconds since power came.
    reset_us: u64,
}

impl MachineTimer {
    /// The clock of a device that started so long after power came.
    pub(crate) fn started_at(reset_us: u64) -> Self {
        Self { reset_us }
    }
}

impl Clock for MachineTimer {
    fn now(&self) -> Instant {
        Instant::from_micros(self.reset_us + microseconds::<TICKS_PER_MICROSECOND>(ticks()))
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

/// Sleeps until an interrupt is pending or `nap` is over.
pub(crate) fn wait(nap: Duration) {
    let span = u64::try_from(nap.as_micros()).unwrap_or(u64::MAX);
    alarm_at(ticks().saturating_add(span.saturating_mul(TICKS_PER_MICROSECOND.into())));
    // With interrupts off but enabled one by one, `wfi` ends when one is pending. Those of devices are
    // enabled for that alone: they don't disturb user mode, where they would be taken.
    // SAFETY: interrupts stay off as a whole.
    unsafe { mie::set_mext() };
    riscv::asm::wfi();
    // SAFETY: as above.
    unsafe { mie::clear_mext() };
}

/// Lets the timer's interrupt be pending after so long, a few minutes at most.
#[inline]
pub(crate) fn alarm_in(microseconds: u32) {
    let now = ticks();
    let span = microseconds.saturating_mul(TICKS_PER_MICROSECOND);
    let (low, carry) = (now as u32).overflowing_add(span);
    let high = (now >> 32) as u32 + u32::from(carry);
    // SAFETY: the CLINT's compare register. Where its high half stays, no value in between is due.
    unsafe {
        if COMPARE_HIGH.read_volatile() == high {
            COMPARE_LOW.write_volatile(low);
        } else {
            alarm_at(u64::from(high) << 32 | u64::from(low));
        }
    }
}

/// Lets the timer's interrupt be pending from `ticks` on.
#[inline(never)]
fn alarm_at(ticks: u64) {
    // SAFETY: the CLINT's compare register; the high half first set to never (privileged
    // specification, 3.2.1), so that no value in between is due.
    unsafe {
        COMPARE_HIGH.write_volatile(u32::MAX);
        COMPARE_LOW.write_volatile(ticks as u32);
        COMPARE_HIGH.write_volatile((ticks >> 32) as u32);
    }
}

/// Ticks since reset.
fn ticks() -> u64 {
    loop {
        // SAFETY: the CLINT's counter.
        let (high, low, again) = unsafe {
            (TIME_HIGH.read_volatile(), TIME_LOW.read_volatile(), TIME_HIGH.read_volatile())
        };
        if high == again {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}
