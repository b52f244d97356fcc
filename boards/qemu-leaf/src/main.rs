//! A leaf on QEMU's `lm3s6965evb`: a Cortex-M3 with 64 KB of RAM, without an operating system. It offers a
//! thermostat to the mesh of its owner, over a serial line.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, exceptions. Each use says
//! what it relies on; in all of them there is one core, and handlers touch atomics and their own UART
//! alone.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod entropy;
mod flash;
mod inbox;
#[path = "../../qemu-cortex-m/src/registers.rs"]
mod registers;
mod start;
mod thermostat;
mod uart;
mod watchdog;

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt::Write as _;

use cortex_m::Peripherals;
use tenure_board_common::{LeafBoard, LeafDevice, StartError};
use tenure_hal::{NorFlash, Partition};

use crate::clock::Timer;
use crate::entropy::HostEntropy;
use crate::flash::Chip;
use crate::thermostat::Thermostat;
use crate::uart::{Console, Line};

/// The main function, which `start` calls, with a heap.
fn main() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Console, "error: {error}");
    start::fault()
}

fn run() -> Result<Infallible, StartError> {
    const NO_FLASH: StartError =
        StartError::Absent("flash.img of 16 KiB in the folder of the emulator");
    let mut peripherals = Peripherals::take().ok_or(StartError::Absent("core of its own"))?;
    clock::init(&mut peripherals.SYST);
    watchdog::start();
    uart::init();
    start::enable_interrupts();
    let chip = || Chip::open().map(NorFlash::new).ok_or(NO_FLASH);
    let mut device = LeafDevice::start(LeafBoard {
        settings: Partition::new(chip()?, flash::SETTINGS, 1)?,
        store: Partition::new(chip()?, flash::STORE, flash::STORE_SECTORS)?,
        mesh: Line::MESH,
        service: Line::SERVICE,
        clock: Timer,
        entropy: HostEntropy,
        console: Console,
        heap: start::heap_usage,
        has_piece: start::heap_has_piece,
    })?;
    device.offer(1, "thermostat", Box::new(Thermostat))?;
    device.announce();
    loop {
        if !device.is_starved() {
            watchdog::feed();
        }
        if !device.turn().is_zero() {
            clock::wait();
        }
    }
}
