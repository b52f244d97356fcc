//! From the loader to `main`, and the ends: a panic, an unexpected trap. Either starts the device anew.

use core::arch::global_asm;
use core::fmt::Write as _;

use riscv::register::{mcause, mepc, mtval};
use tenure_board_common::{Heap, HeapUse, MACHINE_FORMAT};
use tenure_board_qemu_riscv32::console::Uart;
use tenure_board_qemu_riscv32::{BOARD, WINDOW, emulator};
use tenure_boot::always_on::STATUS_RESET;
use tenure_boot::{HEADER_BYTES, Header};

/// The header that the loader reads, and the sender of an update.
#[used]
#[unsafe(link_section = ".header")]
static HEADER: [u8; HEADER_BYTES] = Header::new(BOARD, WINDOW as u32, MACHINE_FORMAT).to_bytes();

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

/// The heap of the firmware and of those who run behind its walls.
#[global_allocator]
pub(crate) static HEAP: Heap = Heap::new();

unsafe extern "C" {
    static mut heap_start: u8;
    static heap_end: u8;
}

/// How much of the heap is used.
pub(crate) fn heap_usage() -> HeapUse {
    HEAP.usage()
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
    emulator::exit(STATUS_RESET)
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Uart, "firmware stopped: {panic}");
    emulator::exit(STATUS_RESET)
}
