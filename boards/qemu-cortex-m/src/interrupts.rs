//! The NVIC, as far as it wakes the core: the firmware polls interrupts. Only the alarm's is ever taken, when
//! it rings while a program runs unprivileged.

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;

/// One of the machine's interrupts (Arm DAI 0385D, table 3-3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt(u16);

/// The network card.
pub(crate) const CARD: Interrupt = Interrupt(13);
/// The second timer.
pub(crate) const ALARM: Interrupt = Interrupt(9);

/// Priorities: the lower, the more urgent. Calls and faults have 0.
#[cfg(memory_protection)]
pub(crate) const ALARM_PRIORITY: u8 = 0x40;
/// Of what waits while a program runs.
#[cfg(memory_protection)]
pub(crate) const OTHER_PRIORITY: u8 = 0x80;

// SAFETY: numbers of the machine's interrupts.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

/// Lets the card and the alarm end a `wfi`.
pub(crate) fn enable() {
    // Before they are enabled one by one: the firmware takes none.
    cortex_m::interrupt::disable();
    // SAFETY: no handler runs that knows of critical sections.
    unsafe {
        #[cfg(memory_protection)]
        {
            let mut peripherals = cortex_m::Peripherals::steal();
            peripherals.NVIC.set_priority(ALARM, ALARM_PRIORITY);
            peripherals.NVIC.set_priority(CARD, OTHER_PRIORITY);
        }
        NVIC::unmask(CARD);
        NVIC::unmask(ALARM);
    }
}

pub(crate) fn is_pending(interrupt: Interrupt) -> bool {
    NVIC::is_pending(interrupt)
}

/// Forgets that `interrupt` was pending; its device must have been told before.
pub(crate) fn clear(interrupt: Interrupt) {
    NVIC::unpend(interrupt);
}
