//! The loader: chooses the firmware to start, starts the watchdog, and goes there.
//!
//! It stands in the first sectors of flash on a chip, and no update touches it. On a chip that maps a slot
//! of flash into the address space, mapping is what copying is here. Unsafe code is needed to touch the
//! machine, and to leave for code that Rust knows nothing of.
#![no_std]
#![no_main]

use core::fmt::Write as _;

use cortex_m_rt::entry;
use tenure_board_qemu_cortex_m::console::{self, Uart};
use tenure_board_qemu_cortex_m::flash::Chip;
use tenure_board_qemu_cortex_m::{BOARD, VECTORS, WINDOW, exit, reset_cause, watchdog};
use tenure_boot::always_on::STATUS_FAULT;
use tenure_boot::{load, map};
use tenure_hal::NorFlash;

#[entry]
fn main() -> ! {
    console::init();
    watchdog::start();
    let Some(chip) = Chip::load() else {
        stop(format_args!("there is no flash.img of 4 MiB in the folder of the emulator"))
    };
    let open = || NorFlash::new(chip.clone());
    let choice = match load(open, reset_cause(), BOARD, [WINDOW as u32; 2]) {
        Ok(choice) => choice,
        Err(error) => end(format_args!("{error}"), error.status()),
    };
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "loader: {choice}");
    let slot = map::SLOTS[choice.image.slot.index()];
    enter(Chip::contents(slot.offset() as usize, choice.image.bytes as usize))
}

/// Copies the image to its window and runs it.
fn enter(image: &[u8]) -> ! {
    const VECTOR_TABLE_OFFSET: *mut u32 = 0xE000_ED08 as *mut u32;
    // SAFETY: the window is memory that nothing else uses, as long as a slot, and the linker keeps the
    // loader out of it. What is there now is a whole image that is linked for it, with its vectors.
    unsafe {
        (WINDOW as *mut u8).copy_from_nonoverlapping(image.as_ptr(), image.len());
        VECTOR_TABLE_OFFSET.write_volatile(VECTORS as u32);
        cortex_m::asm::bootload(VECTORS as *const u32)
    }
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
    exit(status)
}
