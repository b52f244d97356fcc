//! The NVIC, as far as it wakes the core: interrupts are polled, never taken.

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;

/// One of the machine's interrupts (Arm DAI 0385D, table 3-3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt(u16);

/// The network card.
pub(crate) const CARD: Interrupt = Interrupt(13);
/// The second timer.
pub(crate) const ALARM: Interrupt = Interrupt(9);

// SAFETY: numbers of the machine's interrupts.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

/// Lets the card and the alarm end a `wfi`.
pub(crate) fn enable() {
    // Before they are enabled one by one: none is ever taken.
    cortex_m::interrupt::disable();
    // SAFETY: no handler runs, so none can break a critical section.
    unsafe {
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
