//! QEMU's `virt` machine: start and `minstret`.

use core::arch::{asm, global_asm};

use tenure_cipher::backend::riscv::{self, xpulp};
use tenure_cipher::backend::{Backend, Operations};
use tenure_cipher::{Form, Ietf};

#[path = "riscv_io.rs"]
mod io;
pub use io::{exit, write};

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "call {start}",
    start = sym start,
);

extern "C" fn start() -> ! {
    crate::finish(crate::run())
}

/// The backends that this instruction set has beside the portable one.
pub fn backends() -> [&'static dyn Backend; 3] {
    // SAFETY: the runner starts QEMU with Zbb.
    const ROTATE: [riscv::Rotate; 2] = unsafe {
        [riscv::Rotate::assume_present(), riscv::Rotate::assume_present_with_small_loop()]
    };
    [&riscv::Scalar, &ROTATE[0], &ROTATE[1]]
}

/// The entry for the model of RI5CY: QEMU cannot run it. `arguments` is key, nonce, first block, double
/// rounds; `data` is `blocks` blocks.
#[unsafe(no_mangle)]
extern "C" fn xpulp_xor(arguments: &Arguments, data: *mut [u8; 64], blocks: usize) {
    // SAFETY: the model has the instructions, and hands over valid blocks.
    let (xpulp, data) =
        unsafe { (xpulp::Xpulp::assume_present(), core::slice::from_raw_parts_mut(data, blocks)) };
    let mut state = Ietf::state::<10>(&arguments.key, &arguments.nonce);
    state.set_counter(arguments.first);
    xpulp.xor(&state, arguments.double_rounds as usize, data);
}

/// The same without Xpulp, for comparison.
#[unsafe(no_mangle)]
extern "C" fn scalar_xor(arguments: &Arguments, data: *mut [u8; 64], blocks: usize) {
    // SAFETY: the model hands over valid blocks.
    let data = unsafe { core::slice::from_raw_parts_mut(data, blocks) };
    let mut state = Ietf::state::<10>(&arguments.key, &arguments.nonce);
    state.set_counter(arguments.first);
    riscv::Scalar.xor(&state, arguments.double_rounds as usize, data);
}

/// Keeps the two in the image.
#[used]
static FOR_THE_MODEL: [extern "C" fn(&Arguments, *mut [u8; 64], usize); 2] =
    [xpulp_xor, scalar_xor];

/// See [`xpulp_xor`].
#[repr(C)]
struct Arguments {
    key: [u8; 32],
    nonce: [u8; 12],
    first: u32,
    double_rounds: u32,
}

/// Whether [`instructions`] counts.
pub const COUNTS: bool = true;
/// How far two counts of the same work may differ: `minstret` is exact.
pub const INSTRUCTIONS_PER_TICK: u32 = 0;

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
