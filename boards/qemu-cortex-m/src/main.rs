//! A Tenure device on QEMU's `mps2-an385` machine: a Cortex-M3 without an operating system.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, exceptions. Each use
//! says what it relies on; in all of them there is one core, and interrupts are off.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod console;
mod entropy;
mod flash;
mod interrupts;
mod network;
mod registers;
mod start;

use core::fmt::Write as _;

use tenure_board_common::{Board, Device, Layout, NorFlash, StartError, small_class};

use crate::clock::Timer;
use crate::console::Uart;
use crate::entropy::HostEntropy;
use crate::flash::Chip;
use crate::network::Lan9118;

/// The firmware's part of flash, in sectors.
const FIRMWARE_SECTORS: u32 = 256;
/// What machines may have together: memory and stacks.
const MACHINE_BYTES: usize = 176 * 1024;

/// What the machine lacks, or the node says, when a device doesn't start.
enum Fault {
    NoCard,
    NoFlash,
    Start(StartError),
}

/// What `start` calls on the firmware's stack, with a heap.
fn main() -> ! {
    console::init();
    match run() {
        Fault::NoCard => _ = writeln!(Uart, "error: no network card (-nic ...,model=lan9118)"),
        Fault::NoFlash => {
            _ = writeln!(Uart, "error: no flash.img of 4 MiB in the folder of the emulator");
        }
        Fault::Start(error) => _ = writeln!(Uart, "error: {error}"),
    }
    start::power_off(false)
}

fn run() -> Fault {
    clock::init();
    let Some(card) = Lan9118::find() else { return Fault::NoCard };
    let Some(chip) = Chip::load() else { return Fault::NoFlash };
    interrupts::enable();
    let flash = match Layout::FOUR_MIB.divide(FIRMWARE_SECTORS, || NorFlash::new(chip.clone())) {
        Ok(flash) => flash,
        Err(error) => return Fault::Start(StartError::Flash(error)),
    };
    let hardware = card.hardware_address();
    let board =
        Board { flash, card: (card, hardware), clock: Timer, entropy: HostEntropy, console: Uart };
    let mut device = match Device::start(board, |config| small_class(config, MACHINE_BYTES)) {
        Ok(device) => device,
        Err(error) => return Fault::Start(error),
    };
    loop {
        let nap = device.turn();
        if nap.is_none_or(|nap| !nap.is_zero()) {
            clock::wait(nap);
        }
        if interrupts::is_pending(interrupts::CARD) {
            device.link().device().acknowledge_interrupt();
            interrupts::clear(interrupts::CARD);
        }
    }
}
