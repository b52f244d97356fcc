//! The PLIC, as far as it wakes the hart: interrupts are polled, never taken.

use riscv::register::mie;

const PRIORITY: *mut u32 = 0x0C00_0000 as *mut u32;
const ENABLE: *mut u32 = 0x0C00_2000 as *mut u32;
const CLAIM: *mut u32 = 0x0C20_0004 as *mut u32;

/// Lets the interrupt `number` (below 32) and the timer's end a wait.
pub(crate) fn enable(number: u32) {
    // SAFETY: registers of the PLIC for hart 0 in machine mode; interrupts stay off as a whole.
    unsafe {
        PRIORITY.add(number as usize).write_volatile(1);
        ENABLE.write_volatile(1 << number);
        mie::set_mtimer();
    }
}

/// Whether interrupt `number` was pending; it may come again from now on.
pub(crate) fn take(number: u32) -> bool {
    // SAFETY: claiming and completing, as the PLIC's specification wants it.
    unsafe {
        let claimed = CLAIM.read_volatile();
        if claimed != 0 {
            CLAIM.write_volatile(claimed);
        }
        claimed == number
    }
}
