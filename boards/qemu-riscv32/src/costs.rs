//! The cost of walls and calls on this board: `cargo xtask board qemu-riscv32 --costs`.

use core::arch::{asm, global_asm};

use tenure_board_common::Costs;
use tenure_board_qemu_riscv32::console::Uart;
use tenure_wire::CodeKind;

use crate::clock::MachineTimer;
use crate::guard::Pmp;

global_asm!(
    ".section .rodata",
    ".balign 16",
    ".option push",
    ".option norvc",
    "cost_program:",
    // nothing
    "ret",
    // ask: parameter_length, a hundred times
    "li s0, 100",
    "1: li a7, 5",
    "ecall",
    "addi s0, s0, -1",
    "bnez s0, 1b",
    "ret",
    // make way: yield_now, for good
    "2: li a7, 15",
    "ecall",
    "j 2b",
    ".balign 16",
    "cost_program_end:",
    ".option pop",
    ".section .text",
);

/// Where the program's functions begin.
const FUNCTIONS: [u32; 3] = [0, 4, 28];

unsafe extern "C" {
    static cost_program: u8;
    static cost_program_end: u8;
}

/// Instructions executed since reset; the low word is enough for differences.
fn instructions() -> u32 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {}, minstret", out(reg) count) };
    count
}

/// Measures and prints.
pub(crate) fn print() {
    let (start, end) = (&raw const cost_program, &raw const cost_program_end);
    // SAFETY: the range of constants between the two labels.
    let code = unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) };
    let costs = Costs {
        guard: Pmp::take(&crate::start::HEAP),
        clock: MachineTimer::started_at(0),
        kind: CodeKind::Rv32,
        program: (code, FUNCTIONS),
        instructions,
    };
    costs.print(&mut Uart);
}
