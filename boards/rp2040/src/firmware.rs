//! The firmware: brings the parts of the chip together and turns the node's loop.

mod clock;
mod entropy;
mod lines;
mod multiply;
mod peripherals;
mod start;

use alloc::boxed::Box;
use alloc::vec;
use core::convert::Infallible;
use core::fmt::Write as _;
use core::time::Duration;

use fugit::ExtU32 as _;
use rp2040_hal::pac;
use tenure_board_common::{Layout, LineBoard, LineDevice, StartError, small_class};
use tenure_board_rp2040::power::{self, ChipPower};
use tenure_board_rp2040::{BOARD, LINKED_FOR, chip, flash};
use tenure_node::Config;

use self::clock::Timer;
use self::entropy::RingOscillator;
use self::lines::{Console, Uart, Wire};

/// Called by `start`, with a heap.
fn main() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Console, "error: {error}");
    // Nobody feeds the watchdog any more: the loader starts again, and gives up an image that was on trial.
    loop {
        cortex_m::asm::nop();
    }
}

fn run() -> Result<Infallible, StartError> {
    let mut parts = pac::Peripherals::take().ok_or(StartError::Absent("chip of its own"))?;
    let plls = (parts.PLL_SYS, parts.PLL_USB);
    let chip = chip::start(parts.XOSC, parts.CLOCKS, plls, parts.RESETS, parts.WATCHDOG);
    let mut chip = chip.ok_or(StartError::Absent("crystal of 12 MHz"))?;
    // The loader started it, and what it counts from must be known here to be counted from again.
    chip.watchdog.start(power::PERIOD_MS.millis());
    let flash = flash::Chip::find().ok_or(StartError::Absent("flash chip of 2 to 16 MiB"))?;
    let pins =
        peripherals::Pins::new(parts.IO_BANK0, parts.PADS_BANK0, parts.SIO, &mut chip.resets);
    let [first, second] = Uart::start(&mut chip.resets, &mut parts.DMA);
    let usb = lines::start_usb(parts.USBCTRL_REGS, parts.USBCTRL_DPRAM, &mut chip);
    clock::start();
    let power = ChipPower::new(chip.watchdog, clock::timer_us, clock::set_alarm);
    let clock = Timer::started_at(power.reset_us());
    let mut device = LineDevice::start(
        LineBoard {
            model: (BOARD, Duration::from_millis(power::PERIOD_MS.into()), LINKED_FOR),
            flash: layout(&flash).divide(|| flash)?,
            lines: vec![Wire::Uart(first), Wire::Uart(second), Wire::Usb(usb)],
            greeted: 2,
            clock,
            entropy: RingOscillator::new(),
            console: Console,
            retained: Box::new(power.lend_retained()),
            power,
            heap: start::heap_usage,
        },
        limits,
    )?;
    let now = device.now();
    for peripheral in pins.peripherals(parts.ADC, &mut chip.resets) {
        // The node has room for more than a board has by itself.
        let _ = device.node().attach(now, peripheral);
    }
    loop {
        let nap = device.turn();
        if !nap.is_zero() {
            clock::wait(nap);
        }
    }
}

/// The parts of a flash of that size: 2 MiB as on a Pico, or the common ones of 4 MiB.
fn layout(flash: &impl tenure_hal::Flash) -> Layout {
    match flash.geometry().bytes() {
        0..0x40_0000 => Layout::TWO_MIB,
        _ => Layout::FOUR_MIB,
    }
}

/// The limits of a device with 264 KB of RAM.
fn limits(config: &mut Config) {
    small_class(config);
    config.kernel.memory_bytes_max = 112 * 1024;
    config.kernel.parameter_bytes_max = 16 * 1024;
    // The W25Q16JV beside it is promised 100,000 program-erase cycles a sector (Winbond, datasheet, features).
    config.flash_erases_rated = Some(100_000);
    config.log_lines_max = 32;
    config.peers_max = 12;
}
