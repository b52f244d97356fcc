//! The loader: chooses the firmware to start, starts the watchdog, and goes there.
//!
//! It stands in the first sectors of flash on a chip, and no update touches it. On a chip that maps a slot
//! of flash into the address space, mapping is what copying is here. Unsafe code is needed to touch the
//! machine, and to leave for code that Rust knows nothing of.
#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::fmt::Write as _;

use tenure_board_qemu_riscv32::console::Uart;
use tenure_board_qemu_riscv32::flash::{self, Bank, open_flash};
use tenure_board_qemu_riscv32::{BOARD, WINDOW, emulator, reset_cause, watchdog};
use tenure_boot::always_on::STATUS_FAULT;
use tenure_boot::{HEADER_BYTES, load, map};

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, stack_top",
    "la t0, trapped",
    "csrw mtvec, t0",
    "la t0, bss_start",
    "la t1, bss_end",
    "1: bgeu t0, t1, 2f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 1b",
    "2: call {main}",
    ".balign 4",
    "trapped: call {trapped}",
    main = sym main,
    trapped = sym trapped,
);

extern "C" fn main() -> ! {
    if !watchdog::start() {
        stop(format_args!("there is no watchdog (-device i6300esb,addr=1)"));
    }
    if !flash::start() {
        stop(format_args!("there is no flash (-device ivshmem-plain,addr=2)"));
    }
    let choice = match load(open_flash, reset_cause(), BOARD, [WINDOW as u32; 2]) {
        Ok(choice) => choice,
        Err(error) => end(format_args!("{error}"), error.status()),
    };
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "loader: {choice}");
    let slot = map::SLOTS[choice.image.slot.index()];
    enter(Bank::contents(slot.offset() as usize, choice.image.bytes as usize))
}

/// Copies the image to its window and runs it.
fn enter(image: &[u8]) -> ! {
    let entry = WINDOW + HEADER_BYTES;
    // SAFETY: the window is RAM that nothing else uses, as long as a slot, and the linker keeps loader and
    // stack out of it. What is there now is a whole image that is linked for it.
    unsafe {
        (WINDOW as *mut u8).copy_from_nonoverlapping(image.as_ptr(), image.len());
        asm!("fence.i", "jr {}", in(reg) entry, options(noreturn));
    }
}

extern "C" fn trapped() -> ! {
    stop(format_args!("trapped"))
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    stop(format_args!("stopped by a mistake of its own"))
}

fn stop(why: core::fmt::Arguments<'_>) -> ! {
    end(why, STATUS_FAULT)
}

fn end(why: core::fmt::Arguments<'_>, status: i32) -> ! {
    // As above.
    let _ = writeln!(Uart, "loader: {why}");
    emulator::exit(status)
}
