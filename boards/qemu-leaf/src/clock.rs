//! Time and sleep: SysTick, which ticks a hundred times a second (ARMv7-M manual, B3.3).

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use tenure_hal::{Clock, Instant, UnixTime};

use crate::registers::Registers;
use crate::uart;

const CYCLES_PER_MICROSECOND: u32 = 50;
const TICK_US: u32 = 10_000;

/// Ticks since reset, in two halves: a 32-bit core writes neither torn.
static TICKS: AtomicU32 = AtomicU32::new(0);
static TICKS_HIGH: AtomicU32 = AtomicU32::new(0);

// SAFETY: the chip's system control (LM3S6965 data sheet, table 2-1).
const SYSTEM: Registers = unsafe { Registers::at(0x400F_E000) };
const RAW_INTERRUPTS: usize = 0x050;
const RUN_MODE_CLOCK: usize = 0x060;
const CLOCK_GATES: usize = 0x104;

const PLL_LOCKED: u32 = 1 << 6;
/// Main oscillator of 8 MHz, the PLL's 200 MHz divided by four, the PLL still passed by (5.5, RCC).
const FIFTY_MHZ_BYPASSED: u32 = 0b0011 << 23 | 1 << 22 | 1 << 11 | 0b1110 << 6;
const BYPASS: u32 = 1 << 11;
/// UARTs 0, 1 and 2.
const UART_CLOCKS: u32 = 0b111;

/// Brings the core to 50 MHz, lets the UARTs have their clocks, and starts the ticks.
pub(crate) fn init(systick: &mut SYST) {
    SYSTEM.write(RUN_MODE_CLOCK, FIFTY_MHZ_BYPASSED);
    while SYSTEM.read(RAW_INTERRUPTS) & PLL_LOCKED == 0 {}
    SYSTEM.write(RUN_MODE_CLOCK, FIFTY_MHZ_BYPASSED & !BYPASS);
    SYSTEM.write(CLOCK_GATES, SYSTEM.read(CLOCK_GATES) | UART_CLOCKS);
    systick.set_clock_source(SystClkSource::Core);
    systick.set_reload(TICK_US * CYCLES_PER_MICROSECOND - 1);
    systick.clear_current();
    systick.enable_counter();
    systick.enable_interrupt();
}

#[exception]
fn SysTick() {
    let ticks = TICKS.load(Ordering::Relaxed).wrapping_add(1);
    TICKS.store(ticks, Ordering::Relaxed);
    if ticks == 0 {
        TICKS_HIGH.store(TICKS_HIGH.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The clock since reset, by whole ticks; the chip knows no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer;

impl Clock for Timer {
    fn now(&self) -> Instant {
        let (high, low) = cortex_m::interrupt::free(|_| {
            (TICKS_HIGH.load(Ordering::Relaxed), TICKS.load(Ordering::Relaxed))
        });
        let ticks = u64::from(high) << 32 | u64::from(low);
        Instant::from_micros(ticks * u64::from(TICK_US))
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

/// Sleeps until the next tick, or until something comes over a line.
pub(crate) fn wait() {
    // With interrupts off, `wfi` still ends when one is pending (ARMv7-M manual, B1.5.19), and none
    // slips in between the question and the sleep.
    cortex_m::interrupt::disable();
    if !uart::has_arrived() {
        cortex_m::asm::wfi();
    }
    // SAFETY: handlers touch atomics and registers of their own alone.
    unsafe { cortex_m::interrupt::enable() };
}
