//! A Tenure device on QEMU's `virt` machine, cut down to the class of an ESP32-C3.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, traps. Each use says
//! what it relies on; in all of them there is one hart, and interrupts are off in machine mode.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
#[cfg(feature = "costs")]
mod costs;
mod entropy;
mod guard;
mod interrupts;
mod network;
mod start;
#[cfg(unchecked_memory)]
mod stuck;
mod virtio;

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt::Write as _;
use core::time::Duration;

use tenure_board_common::{
    AlwaysOn, Board, Device, GuardedVm, Layout, NativeMachines, StartError, small_class,
};
use tenure_board_qemu_riscv32::console::Uart;
use tenure_board_qemu_riscv32::flash::open_flash;
use tenure_board_qemu_riscv32::{BOARD, always_on, emulator, watchdog};
use tenure_boot::always_on::STATUS_FAULT;
use tenure_wire::CodeKind;

use crate::clock::MachineTimer;
use crate::entropy::VirtioEntropy;
use crate::guard::Pmp;
use crate::network::VirtioCard;

/// The main function, which `start` calls on the board's stack, with a heap.
fn main() -> ! {
    #[cfg(feature = "costs")]
    {
        costs::print();
        emulator::exit(0)
    }
    #[cfg(not(feature = "costs"))]
    be_a_device()
}

#[cfg_attr(feature = "costs", allow(dead_code))]
fn be_a_device() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "error: {error}");
    emulator::exit(STATUS_FAULT)
}

fn run() -> Result<Infallible, StartError> {
    const NO_CARD: StartError = StartError::Absent("network card (-device virtio-net-device)");
    const NO_ENTROPY: StartError = StartError::Absent("randomness (-device virtio-rng-device)");
    let card = VirtioCard::find().ok_or(NO_CARD)?;
    let entropy = VirtioEntropy::find().ok_or(NO_ENTROPY)?;
    let interrupt = card.interrupt();
    interrupts::enable(interrupt);
    let hardware = card.hardware_address();
    // SAFETY: the linker keeps the page for this, and it is taken once.
    let power = unsafe { AlwaysOn::new(always_on(), watchdog::feed, emulator::exit) };
    let clock = MachineTimer::started_at(power.started_at_us());
    let board = Board {
        model: (BOARD, Duration::from_millis(watchdog::PERIOD_MS.into())),
        flash: Layout::FOUR_MIB.divide(open_flash)?,
        card: (card, hardware),
        clock,
        entropy,
        console: Uart,
        retained: Box::new(power.lend_retained()),
        power,
        heap: start::heap_usage,
    };
    let mut device = Device::start(board, small_class)?;
    let guard = Pmp::take(&start::HEAP);
    let wall = GuardedVm::new(guard.clone(), clock).ok_or(StartError::Absent("memory"))?;
    #[cfg(unchecked_memory)]
    let wall = stuck::Stuck(wall);
    device.node().use_wall(Box::new(wall));
    let now = device.now();
    device.node().use_compiled_code(CodeKind::Rv32, now);
    let native = NativeMachines::new(CodeKind::Rv32, guard, clock);
    device.node().use_engine(Box::new(native));
    device.run(|nap, card| {
        if !nap.is_zero() {
            clock::wait(nap);
        }
        if interrupts::take(interrupt) {
            card.acknowledge_interrupt();
        }
    })
}
