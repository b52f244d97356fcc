//! QEMU's `mps2-an385`: semihosting, and SysTick, which counts every fortieth instruction.

use core::arch::{asm, global_asm};

use tenure_cipher::backend::{Backend, arm};

global_asm!(
    ".section .vectors, \"a\"",
    ".word stack_top",
    ".word {start}",
    ".rept 14",
    ".word {fault}",
    ".endr",
    start = sym start,
    fault = sym fault,
);

#[allow(dead_code, reason = "one of the images counts nothing")]
/// Whether [`instructions`] counts.
pub const COUNTS: bool = true;
/// How far two counts of the same work may differ: SysTick's clock is 25 MHz; under
/// `-icount shift=0` an instruction takes a nanosecond.
pub const INSTRUCTIONS_PER_TICK: u32 = 40;

#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    // SAFETY: SysTick's registers on every Cortex-M: reload value, current value, control.
    unsafe {
        (0xe000_e014 as *mut u32).write_volatile(0x00ff_ffff);
        (0xe000_e018 as *mut u32).write_volatile(0);
        (0xe000_e010 as *mut u32).write_volatile(0b101);
    }
    crate::finish(crate::run())
}

extern "C" fn fault() -> ! {
    crate::finish(Err("a fault"))
}

/// The backends that this instruction set has beside the portable one.
#[cfg(tenure_thumb = "v7m")]
pub fn backends() -> [&'static dyn Backend; 1] {
    [&arm::V7m]
}

/// The backends that this instruction set has beside the portable one.
#[cfg(tenure_thumb = "v6m")]
pub fn backends() -> [&'static dyn Backend; 1] {
    [&arm::V6m]
}

/// Instructions retired by `work`, in steps of [`INSTRUCTIONS_PER_TICK`].
pub fn instructions(work: impl FnOnce()) -> u32 {
    let before = ticks();
    work();
    (before.wrapping_sub(ticks()) & 0x00ff_ffff) * INSTRUCTIONS_PER_TICK
}

/// Counts down.
fn ticks() -> u32 {
    // SAFETY: SysTick's current value, 24 bits.
    unsafe { (0xe000_e018 as *const u32).read_volatile() }
}

/// To the host's terminal.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        semihost(0x03, core::ptr::from_ref(byte).addr());
    }
}

/// Ends QEMU.
pub fn exit(good: bool) -> ! {
    const APPLICATION_EXIT: usize = 0x20026;
    const INTERNAL_ERROR: usize = 0x20024;
    semihost(0x18, if good { APPLICATION_EXIT } else { INTERNAL_ERROR });
    loop {
        core::hint::spin_loop();
    }
}

fn semihost(operation: usize, argument: usize) {
    // SAFETY: the breakpoint by which a debugger, here QEMU, is called (Arm's semihosting
    // specification); it reads what the argument points to, and alters r0.
    unsafe { asm!("bkpt 0xab", inout("r0") operation => _, in("r1") argument) };
}
