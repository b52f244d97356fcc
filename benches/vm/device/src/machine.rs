//! QEMU's `virt` machine: a UART, an exit register, and `minstret`.

use core::arch::{asm, global_asm};

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "call {start}",
    start = sym start,
);

extern "C" fn start() -> ! {
    crate::run();
    crate::finish(true)
}

/// Instructions retired by `work`.
pub fn instructions(work: impl FnOnce()) -> u32 {
    let before = retired();
    work();
    retired().wrapping_sub(before)
}

fn retired() -> u32 {
    let count: usize;
    // SAFETY: reading a counter in machine mode; not `nomem`, so that no work moves across.
    unsafe { asm!("csrr {}, minstret", out(reg) count) };
    count as u32
}

/// To the UART at 0x1000_0000, which is always ready under QEMU.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the UART's transmit register on this machine.
        unsafe { (0x1000_0000 as *mut u8).write_volatile(*byte) };
    }
}

/// Powers the machine off.
pub fn exit(good: bool) -> ! {
    let code: u32 = if good { 0x5555 } else { 0x1_3333 };
    // SAFETY: the test device's only register on this machine.
    unsafe { (0x10_0000 as *mut u32).write_volatile(code) };
    loop {
        core::hint::spin_loop();
    }
}
