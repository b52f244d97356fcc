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
mod interrupts;
mod network;
mod start;
mod virtio;

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt::Write as _;
use core::time::Duration;

use tenure_board_common::{Board, Device, GuardedVm, Layout, StartError, small_class};

use crate::clock::MachineTimer;
use crate::console::Uart;
use crate::entropy::VirtioEntropy;
use crate::flash::open_flash;
use crate::guard::Pmp;
use crate::network::VirtioCard;

/// What `start` calls on the board's stack, with a heap.
fn main() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "error: {error}");
    start::power_off(false)
}

fn run() -> Result<Infallible, StartError> {
    const NO_CARD: StartError = StartError::Absent("network card (-device virtio-net-device)");
    const NO_ENTROPY: StartError = StartError::Absent("randomness (-device virtio-rng-device)");
    let card = VirtioCard::find().ok_or(NO_CARD)?;
    let entropy = VirtioEntropy::find().ok_or(NO_ENTROPY)?;
    let interrupt = card.interrupt();
    interrupts::enable(interrupt);
    let hardware = card.hardware_address();
    let board = Board {
        flash: Layout::FOUR_MIB.divide(open_flash)?,
        card: (card, hardware),
        clock: MachineTimer,
        entropy,
        console: Uart,
    };
    let mut device = Device::start(board, small_class)?;
    device.node().use_wall(Box::new(GuardedVm::new(Pmp::take())));
    device.run(|nap, card| {
        if nap != Some(Duration::ZERO) {
            clock::wait(nap);
        }
        if interrupts::take(interrupt) {
            card.acknowledge_interrupt();
        }
    })
}
