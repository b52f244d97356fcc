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
use tenure_boot::always_on::{STATUS_FAULT, STATUS_RESET};
use tenure_boot::{BootLog, Choice, Header, choose, map};
use tenure_hal::{FlashError, NorFlash, Partition};

#[entry]
fn main() -> ! {
    console::init();
    watchdog::start();
    let Some(chip) = Chip::load() else {
        stop(format_args!("there is no flash.img of 4 MiB in the folder of the emulator"))
    };
    let (choice, image) = match find(chip) {
        Ok(found) => found,
        Err(Stop::Flash(error)) => stop(format_args!("the flash: {error}")),
        Err(Stop::Log(error)) => stop(format_args!("{error}")),
        Err(Stop::NoImage(error)) => stop(format_args!("{error}")),
    };
    let (number, slot) = (choice.image.number, choice.image.slot.as_str());
    let header = Header::from_bytes(image);
    if !header.is_some_and(|header| header.board() == BOARD && header.load_at == WINDOW as u32) {
        // A console that takes nothing has nobody who reads it.
        let _ = writeln!(Uart, "loader: the image in slot {slot} isn't for this board");
        // On trial it is given up by the next start; else it was flashed by mistake.
        exit(if choice.on_trial { STATUS_RESET } else { STATUS_FAULT });
    }
    let trial = if choice.on_trial { ", on trial" } else { "" };
    // As above.
    let _ = writeln!(Uart, "loader: firmware {number} in slot {slot}{trial}");
    enter(image)
}

/// Why there is nothing to start.
enum Stop {
    Flash(FlashError),
    Log(tenure_boot::LogError),
    NoImage(tenure_boot::NoImage),
}

fn find(chip: Chip) -> Result<(Choice, &'static [u8]), Stop> {
    let part = |run: map::Run| {
        Partition::new(NorFlash::new(chip.clone()), run.first, run.count).map_err(Stop::Flash)
    };
    let [a, b] = map::SLOTS;
    let mut slots = [part(a)?, part(b)?];
    let mut log = BootLog::open(part(map::LOG)?).map_err(Stop::Log)?;
    let choice = choose(&mut log, &mut slots, reset_cause()).map_err(Stop::NoImage)?;
    let slot = map::SLOTS[choice.image.slot.index()];
    Ok((choice, Chip::contents(slot.offset() as usize, choice.image.bytes as usize)))
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
    // As above.
    let _ = writeln!(Uart, "loader: {why}");
    exit(STATUS_FAULT)
}
