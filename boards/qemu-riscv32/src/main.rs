//! A Tenure device on QEMU's `virt` machine, cut down to the class of an ESP32-C3.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, traps. Each use says
//! what it relies on; in all of them there is one hart, and interrupts are off in machine mode.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod console;
mod entropy;
mod flash;
mod guard;
mod heap;
mod interrupts;
mod network;
mod start;
mod virtio;

use alloc::boxed::Box;
use core::fmt::Write as _;

use tenure_board_common::{Board, Device, GuardedVm, Layout, StartError, small_class};

use crate::clock::MachineTimer;
use crate::console::Uart;
use crate::entropy::VirtioEntropy;
use crate::flash::open_flash;
use crate::guard::Pmp;
use crate::network::VirtioCard;

/// The firmware's part of flash, in sectors.
const FIRMWARE_SECTORS: u32 = 256;
/// What machines may have together: memory and stacks.
const MACHINE_BYTES: usize = 176 * 1024;

/// What the machine lacks, or the node says, when a device doesn't start.
enum Fault {
    NoCard,
    NoEntropy,
    Start(StartError),
}

/// What `start` calls on the board's stack, with a heap.
fn main() -> ! {
    match run() {
        Fault::NoCard => _ = writeln!(Uart, "error: no network card (-device virtio-net-device)"),
        Fault::NoEntropy => _ = writeln!(Uart, "error: no randomness (-device virtio-rng-device)"),
        Fault::Start(error) => _ = writeln!(Uart, "error: {error}"),
    }
    start::power_off(false)
}

fn run() -> Fault {
    let Some(card) = VirtioCard::find() else { return Fault::NoCard };
    let Some(entropy) = VirtioEntropy::find() else { return Fault::NoEntropy };
    let interrupt = card.interrupt();
    interrupts::enable(interrupt);
    let flash = match Layout::FOUR_MIB.divide(FIRMWARE_SECTORS, open_flash) {
        Ok(flash) => flash,
        Err(error) => return Fault::Start(StartError::Flash(error)),
    };
    let hardware = card.hardware_address();
    let board =
        Board { flash, card: (card, hardware), clock: MachineTimer, entropy, console: Uart };
    let started = Device::start(board, |config| small_class(config, MACHINE_BYTES));
    let mut device = match started {
        Ok(device) => device,
        Err(error) => return Fault::Start(error),
    };
    device.node().use_wall(Box::new(GuardedVm::new(Pmp::take())));
    loop {
        let nap = device.turn();
        if nap.is_none_or(|nap| !nap.is_zero()) {
            clock::wait(nap);
        }
        if interrupts::take(interrupt) {
            device.link().device().acknowledge_interrupt();
        }
    }
}
