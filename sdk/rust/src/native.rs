//! Native machines: how they call their device, and what their loader tells them.
//!
//! A host call is the processor's call to whoever is privileged, `ecall` or `svc`. Up to six words of
//! arguments are in registers, `a0` to `a5` or `r0` to `r5`; of a call that has more, five are, and the
//! sixth register has the address of the others. The number is in `a7`, or in the instruction.

use core::arch::asm;

/// Makes the host call `NUMBER`; gives its result, the low word first.
///
/// # Safety
/// Pointers among the arguments are valid for what the call reads and writes.
#[cfg(target_arch = "riscv32")]
#[inline(always)]
pub(crate) unsafe fn request<const NUMBER: usize>(arguments: [usize; 6]) -> [usize; 2] {
    let [mut low, mut high, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the caller's promise; the device changes the registers of the result alone.
    unsafe {
        asm!(
            "ecall",
            in("a7") NUMBER,
            inlateout("a0") low,
            inlateout("a1") high,
            in("a2") third,
            in("a3") fourth,
            in("a4") fifth,
            in("a5") sixth,
            options(nostack),
        );
    }
    [low, high]
}

/// As above, on a Cortex-M.
///
/// # Safety
/// As above.
#[cfg(target_arch = "arm")]
#[inline(always)]
pub(crate) unsafe fn request<const NUMBER: usize>(arguments: [usize; 6]) -> [usize; 2] {
    let [mut low, mut high, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the caller's promise; the device changes the registers of the result alone.
    unsafe {
        asm!(
            "svc #{number}",
            number = const NUMBER,
            inlateout("r0") low,
            inlateout("r1") high,
            in("r2") third,
            in("r3") fourth,
            in("r4") fifth,
            in("r5") sixth,
            options(nostack),
        );
    }
    [low, high]
}

unsafe extern "C" {
    /// The first of the variables: where the machine's memory ends. The loader writes it.
    static tenure_memory_end: u32;
}

/// Where the machine's memory ends.
pub(crate) fn memory_end() -> u32 {
    // SAFETY: the linker places it, and nothing changes it while the machine runs.
    unsafe { (&raw const tenure_memory_end).read_volatile() }
}

/// Stops the machine, if the device hasn't.
pub(crate) fn end() -> ! {
    // SAFETY: no instruction, at which the device stops the machine.
    #[cfg(target_arch = "riscv32")]
    unsafe {
        asm!("unimp", options(noreturn))
    }
    // SAFETY: as above.
    #[cfg(target_arch = "arm")]
    unsafe {
        asm!("udf #0", options(noreturn))
    }
}
