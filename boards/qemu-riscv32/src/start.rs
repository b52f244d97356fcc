//! From reset to `main`, and the ends: a panic, an unexpected trap, power off.

use core::arch::global_asm;
use core::fmt::Write as _;

use riscv::register::{mcause, mepc, mtval};
use tenure_board_common::Heap;

use crate::console::Uart;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "la t0, machine_trap",
    "csrw mtvec, t0",
    // Variables with an initial value lie in the image; copy them to RAM.
    "la t0, data_start",
    "la t1, data_end",
    "la t2, data_load",
    "1: bgeu t0, t1, 2f",
    "lw t3, 0(t2)",
    "sw t3, 0(t0)",
    "addi t0, t0, 4",
    "addi t2, t2, 4",
    "j 1b",
    "2: la t0, bss_start",
    "la t1, bss_end",
    "3: bgeu t0, t1, 4f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 3b",
    "4: call {start}",
    start = sym start,
);

#[global_allocator]
static HEAP: Heap = Heap::new();

unsafe extern "C" {
    static mut heap_start: u8;
    static heap_end: u8;
}

extern "C" fn start() -> ! {
    let (start, end) = ((&raw mut heap_start).addr(), (&raw const heap_end).addr());
    // SAFETY: the linker keeps this range for the heap alone; nothing has allocated yet.
    unsafe { HEAP.init(start, end) };
    crate::main()
}

/// The end of a trap of the firmware itself, which is a mistake of ours.
#[unsafe(export_name = "firmware_trapped")]
extern "C" fn trapped() -> ! {
    let (cause, at, value) = (mcause::read().bits(), mepc::read(), mtval::read());
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "firmware trapped: cause {cause}, at {at:#x}, value {value:#x}");
    power_off(false)
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Uart, "firmware stopped: {panic}");
    power_off(false)
}

/// Ends the emulator; its exit status says whether all went well.
pub(crate) fn power_off(good: bool) -> ! {
    const TEST_DEVICE: *mut u32 = 0x0010_0000 as *mut u32;
    const PASS: u32 = 0x5555;
    const FAIL: u32 = 0x3333 | 1 << 16;
    // SAFETY: the only register of the machine's test device.
    unsafe { TEST_DEVICE.write_volatile(if good { PASS } else { FAIL }) };
    loop {
        riscv::asm::wfi();
    }
}
