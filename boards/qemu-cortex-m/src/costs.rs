//! The cost of walls and calls on this board: `cargo xtask board qemu-cortex-m --costs`.

use core::arch::global_asm;

use tenure_board_common::Costs;
use tenure_board_qemu_cortex_m::console::Uart;
use tenure_wire::CodeKind;

use crate::clock::{self, Timer};
use crate::guard::Mpu;

global_asm!(
    ".section .rodata.cost_program, \"a\"",
    ".balign 32",
    "cost_program:",
    // nothing
    "bx lr",
    // ask: parameter_length, a hundred times
    "movs r4, #100",
    "1: svc #5",
    "subs r4, #1",
    "bne 1b",
    "bx lr",
    // make way: yield_now, for good
    "2: svc #15",
    "b 2b",
    ".balign 32",
    "cost_program_end:",
    ".text",
);

/// Where the program's functions begin.
const FUNCTIONS: [u32; 3] = [0, 2, 12];

/// With `-icount shift=0` an instruction takes a nanosecond, and so many are a tick of the clock.
const INSTRUCTIONS_PER_TICK: u32 = 40;

unsafe extern "C" {
    static cost_program: u8;
    static cost_program_end: u8;
}

/// Instructions executed so far, in steps of a tick.
fn instructions() -> u32 {
    clock::ticks().wrapping_mul(INSTRUCTIONS_PER_TICK)
}

/// Measures and prints.
pub(crate) fn print() {
    clock::init();
    crate::interrupts::enable();
    let (start, end) = (&raw const cost_program, &raw const cost_program_end);
    // SAFETY: the range of constants between the two labels.
    let code = unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) };
    let costs = Costs {
        guard: Mpu::take(&crate::start::HEAP),
        clock: Timer::started_at(0),
        kind: CodeKind::Thumb,
        program: (code, FUNCTIONS),
        instructions,
    };
    costs.print(&mut Uart);
}
