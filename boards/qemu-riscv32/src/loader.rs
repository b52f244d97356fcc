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
use tenure_board_qemu_riscv32::flash::{Bank, open_flash};
use tenure_board_qemu_riscv32::{BOARD, WINDOW, emulator, reset_cause, watchdog};
use tenure_boot::always_on::{STATUS_FAULT, STATUS_RESET};
use tenure_boot::{BootLog, Choice, HEADER_BYTES, Header, choose, map};
use tenure_hal::{FlashError, NorFlash, Partition};

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
    let (choice, image) = match find() {
        Ok(found) => found,
        Err(Stop::Flash(error)) => stop(format_args!("the flash: {error}")),
        Err(Stop::Log(error)) => stop(format_args!("{error}")),
        Err(Stop::NoImage(error)) => stop(format_args!("{error}")),
    };
    let header = Header::from_bytes(image);
    if !header.is_some_and(|header| header.board() == BOARD && header.load_at == WINDOW as u32) {
        let _ = writeln!(
            Uart,
            "loader: the image in slot {} isn't for this board",
            choice.image.slot.as_str()
        );
        // On trial it is given up by the next start; else it was flashed by mistake.
        emulator::exit(if choice.on_trial { STATUS_RESET } else { STATUS_FAULT });
    }
    let trial = if choice.on_trial { ", on trial" } else { "" };
    let (number, slot) = (choice.image.number, choice.image.slot.as_str());
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "loader: firmware {number} in slot {slot}{trial}");
    enter(image)
}

/// Why there is nothing to start.
enum Stop {
    Flash(FlashError),
    Log(tenure_boot::LogError),
    NoImage(tenure_boot::NoImage),
}

fn find() -> Result<(Choice, &'static [u8]), Stop> {
    let part = |run: map::Run| Partition::new(open_flash(), run.first, run.count);
    let [a, b] = map::SLOTS;
    let mut slots: [Partition<NorFlash<Bank>>; 2] =
        [part(a).map_err(Stop::Flash)?, part(b).map_err(Stop::Flash)?];
    let mut log = BootLog::open(part(map::LOG).map_err(Stop::Flash)?).map_err(Stop::Log)?;
    let choice = choose(&mut log, &mut slots, reset_cause()).map_err(Stop::NoImage)?;
    let slot = map::SLOTS[choice.image.slot.index()];
    Ok((choice, Bank::contents(slot.offset() as usize, choice.image.bytes as usize)))
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
    // As above.
    let _ = writeln!(Uart, "loader: {why}");
    emulator::exit(STATUS_FAULT)
}
