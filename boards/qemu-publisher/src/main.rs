//! A device that publishes a temperature by MQTT 5 over TLS 1.3, on QEMU's `mps2-an385` kept to 256 KB of flash and 32 KB
//! of RAM, with the code of a Cortex-M0+. The key of its client certificate is in a secure element.
//!
//! Unsafe code is needed to touch the machine: registers, the linker's symbols, exceptions. Each use says what it relies
//! on; there is one core, and interrupts are off.
#![no_std]
#![no_main]

extern crate alloc;

mod awake;
mod bus;
#[path = "../../qemu-cortex-m/src/clock.rs"]
mod clock;
mod i2c;
#[path = "../../qemu-cortex-m/src/interrupts.rs"]
mod interrupts;
mod line;
#[path = "../../qemu-cortex-m/src/network.rs"]
mod network;
mod start;
mod thermometer;

use core::convert::Infallible;
use core::fmt::Write as _;

use tenure_board_common::{
    ElementPlace, Publisher, PublisherBoard, PublisherError, PublisherSettings,
};
use tenure_board_qemu_cortex_m::console::{self, Uart};
use tenure_board_qemu_cortex_m::{exit, watchdog};
use tenure_boot::always_on::STATUS_FAULT;
use tenure_crypto::element::ADDRESS;

use crate::bus::Bus;
use crate::clock::Timer;
use crate::i2c::Pins;
use crate::line::Line;
use crate::network::Lan9118;

/// The main function, which `start` calls on the firmware's stack, with a heap.
fn main() -> ! {
    console::init();
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Uart, "error: {error}");
    exit(STATUS_FAULT)
}

fn run() -> Result<Infallible, PublisherError> {
    const NO_CARD: PublisherError = PublisherError::Absent("network card (-nic ...,model=lan9118)");
    clock::init();
    watchdog::start();
    let card = Lan9118::find().ok_or(NO_CARD)?;
    interrupts::enable();
    let papers = start::papers();
    let settings = PublisherSettings::parse(papers.settings)?;
    let bus = match settings.element {
        ElementPlace::I2c => Bus::Pins(Pins::SHIELD),
        ElementPlace::Line => Bus::Line(Line::open()),
    };
    let hardware = card.hardware_address();
    let board = PublisherBoard {
        card: (card, hardware),
        clock: Timer::started_at(0),
        element: (bus, ADDRESS),
        thermometer: thermometer::read,
        console: Uart,
        memory: start::memory_use,
        awake: awake::span,
    };
    let publisher = Publisher::start(board, settings, &papers)?;
    publisher.run(|nap, card| {
        watchdog::feed();
        if !nap.is_zero() {
            awake::sleep(nap);
        }
        if interrupts::is_pending(interrupts::CARD) {
            card.acknowledge_interrupt();
            interrupts::clear(interrupts::CARD);
        }
    })
}
