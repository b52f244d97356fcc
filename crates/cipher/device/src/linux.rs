//! A Linux process without a runtime, under QEMU's user emulation: system calls, and no counter of
//! instructions that would be exact.

use core::arch::{asm, global_asm};

use tenure_cipher::backend::Backend;
#[cfg(target_arch = "aarch64")]
use tenure_cipher::backend::neon::Neon;
#[cfg(target_arch = "riscv64")]
use tenure_cipher::backend::riscv;

#[cfg(target_arch = "aarch64")]
global_asm!(".global _start", "_start:", "bl {start}", start = sym start);
#[cfg(target_arch = "riscv64")]
global_asm!(".global _start", "_start:", "call {start}", start = sym start);

extern "C" fn start() -> ! {
    crate::finish(crate::run())
}

/// The backends that this instruction set has beside the portable one.
#[cfg(target_arch = "aarch64")]
pub fn backends() -> [&'static dyn Backend; 1] {
    [&Neon]
}

/// The backends that this instruction set has beside the portable one.
#[cfg(target_arch = "riscv64")]
pub fn backends() -> [&'static dyn Backend; 3] {
    // SAFETY: the runner starts QEMU with Zbb.
    const ROTATE: [riscv::Rotate; 2] = unsafe {
        [riscv::Rotate::assume_present(), riscv::Rotate::assume_present_with_small_loop()]
    };
    [&riscv::Scalar, &ROTATE[0], &ROTATE[1]]
}

/// Whether [`instructions`] counts.
pub const COUNTS: bool = false;
/// Nothing is counted.
pub const INSTRUCTIONS_PER_TICK: u32 = 0;

/// Does the work.
pub fn instructions(work: impl FnOnce()) -> u32 {
    work();
    0
}

/// To the standard output.
pub fn write(bytes: &[u8]) {
    const WRITE: usize = 64;
    system_call(WRITE, [1, bytes.as_ptr().addr(), bytes.len()]);
}

/// Ends the process.
pub fn exit(good: bool) -> ! {
    const EXIT_GROUP: usize = 94;
    system_call(EXIT_GROUP, [usize::from(!good), 0, 0]);
    loop {
        core::hint::spin_loop();
    }
}

/// Both architectures have the numbers of Linux' `asm-generic/unistd.h`.
fn system_call(number: usize, [a, b, c]: [usize; 3]) {
    // SAFETY: `write` reads the bytes that it is given; `exit_group` does not return.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("svc 0", in("x8") number, inout("x0") a => _, in("x1") b, in("x2") c);
    }
    // SAFETY: as above.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        asm!("ecall", in("a7") number, inout("a0") a => _, in("a1") b, in("a2") c);
    }
}
