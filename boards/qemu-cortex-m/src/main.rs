//! A Tenure device on QEMU's `mps2-an385` machine: a Cortex-M3 without an operating system.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, exceptions. Each use
//! says what it relies on; in all of them there is one core, and interrupts are off.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
#[cfg(all(feature = "costs", memory_protection))]
mod costs;
mod entropy;
#[cfg(memory_protection)]
mod guard;
mod interrupts;
#[cfg(memory_protection)]
mod mpu;
mod network;
mod start;

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt::Write as _;
use core::time::Duration;

use tenure_board_common::{AlwaysOn, Board, Device, Layout, StartError, small_class};
#[cfg(memory_protection)]
use tenure_board_common::{GuardedVm, NativeMachines};
use tenure_board_qemu_cortex_m::console::{self, Uart};
use tenure_board_qemu_cortex_m::flash::Chip;
use tenure_board_qemu_cortex_m::{BOARD, always_on, exit, watchdog};
use tenure_boot::always_on::STATUS_FAULT;
use tenure_hal::NorFlash;
#[cfg(memory_protection)]
use tenure_wire::CodeKind;

use crate::clock::Timer;
use crate::entropy::HostEntropy;
#[cfg(memory_protection)]
use crate::guard::Mpu;
use crate::network::Lan9118;

/// The main function, which `start` calls on the firmware's stack, with a heap.
fn main() -> ! {
    console::init();
    #[cfg(all(feature = "costs", memory_protection))]
    {
        costs::print();
        exit(0)
    }
    #[cfg(not(all(feature = "costs", memory_protection)))]
    be_a_device()
}

#[cfg_attr(feature = "costs", allow(dead_code))]
fn be_a_device() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "error: {error}");
    exit(STATUS_FAULT)
}

fn run() -> Result<Infallible, StartError> {
    const NO_CARD: StartError = StartError::Absent("network card (-nic ...,model=lan9118)");
    const NO_FLASH: StartError =
        StartError::Absent("flash.img of 4 MiB in the folder of the emulator");
    clock::init();
    let card = Lan9118::find().ok_or(NO_CARD)?;
    let chip = Chip::load().ok_or(NO_FLASH)?;
    interrupts::enable();
    // SAFETY: the linker keeps the page for this, and it is taken once.
    let power = unsafe { AlwaysOn::new(always_on(), watchdog::feed, exit) };
    let hardware = card.hardware_address();
    let clock = Timer::started_at(power.started_at_us());
    let board = Board {
        model: (BOARD, Duration::from_millis(watchdog::PERIOD_MS.into())),
        flash: Layout::FOUR_MIB.divide(|| NorFlash::new(chip.clone()))?,
        card: (card, hardware),
        clock,
        entropy: HostEntropy,
        console: Uart,
        retained: Box::new(power.lend_retained()),
        power,
        heap: start::heap_usage,
    };
    #[cfg_attr(not(memory_protection), expect(unused_mut))]
    let mut device = Device::start(board, small_class)?;
    #[cfg(memory_protection)]
    {
        let guard = Mpu::take(&start::HEAP);
        let wall =
            GuardedVm::new(guard.clone(), clock).ok_or(StartError::Absent("memory"))?.emulated();
        device.node().use_wall(Box::new(wall));
        let now = device.now();
        device.node().use_compiled_code(CodeKind::Thumb, now);
        let native = NativeMachines::new(CodeKind::Thumb, guard, clock);
        device.node().use_engine(Box::new(native));
    }
    device.run(|nap, card| {
        if !nap.is_zero() {
            clock::wait(nap);
        }
        if interrupts::is_pending(interrupts::CARD) {
            card.acknowledge_interrupt();
            interrupts::clear(interrupts::CARD);
        }
    })
}
