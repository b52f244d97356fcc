//! The loader: chooses the firmware to start, starts the watchdog, and goes there.
//!
//! It stands in the first sectors of flash, behind the chip's second stage, and no update touches it. Unsafe code is
//! needed to leave for code that Rust knows nothing of.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use fugit::ExtU32 as _;
use rp2040_hal::pac;
use tenure_board_rp2040::{BOARD, LINKED_FOR, VECTORS_AT, chip, flash, power};
use tenure_boot::load;

/// The second stage, which lets the core execute from flash at speed; the boot ROM checks its CRC and runs it.
#[used]
#[unsafe(link_section = ".boot2")]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;

#[entry]
fn main() -> ! {
    cortex_m::interrupt::disable();
    let Some(parts) = pac::Peripherals::take() else { stop() };
    let plls = (parts.PLL_SYS, parts.PLL_USB);
    let Some(mut chip) = chip::start(parts.XOSC, parts.CLOCKS, plls, parts.RESETS, parts.WATCHDOG)
    else {
        stop()
    };
    let cause = power::reset_cause();
    chip.watchdog.start(power::PERIOD_MS.millis());
    let Some(flash) = flash::Chip::find() else { stop() };
    match load(|| flash, cause, BOARD, LINKED_FOR) {
        Ok(choice) => enter(LINKED_FOR[choice.image.slot.index()] + VECTORS_AT),
        // The next start gives up an image that was on trial; without any there is nothing to do but wait for one.
        Err(_) => stop(),
    }
}

/// Runs the image whose vectors stand at `vectors`.
fn enter(vectors: u32) -> ! {
    const VECTOR_TABLE_OFFSET: *mut u32 = 0xE000_ED08 as *mut u32;
    // SAFETY: a whole image stands there that is linked for that address, with its vectors.
    unsafe {
        VECTOR_TABLE_OFFSET.write_volatile(vectors);
        cortex_m::asm::bootload(vectors as *const u32)
    }
}

/// Waits for the watchdog, if it runs, and else for good.
fn stop() -> ! {
    loop {
        cortex_m::asm::nop();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    stop()
}
