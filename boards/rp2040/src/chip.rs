//! The chip's clocks: the crystal, and 125 MHz made of it.

use rp2040_hal::clocks::{ClocksManager, init_clocks_and_plls};
use rp2040_hal::pac;

/// The crystal of a Pico and of nearly all boards with its chip, in Hz.
pub const CRYSTAL_HZ: u32 = 12_000_000;

/// The parts of the chip that a program goes on with.
pub struct Chip {
    /// The clocks, running.
    pub clocks: ClocksManager,
    /// The watchdog, whose tick also drives the timer.
    pub watchdog: rp2040_hal::Watchdog,
    /// The reset controller.
    pub resets: pac::RESETS,
}

/// Starts crystal and clocks; `None` if the crystal or a PLL can't be set so.
pub fn start(
    xosc: pac::XOSC,
    clocks: pac::CLOCKS,
    plls: (pac::PLL_SYS, pac::PLL_USB),
    mut resets: pac::RESETS,
    watchdog: pac::WATCHDOG,
) -> Option<Chip> {
    let mut watchdog = rp2040_hal::Watchdog::new(watchdog);
    let (system, usb) = plls;
    let clocks =
        init_clocks_and_plls(CRYSTAL_HZ, xosc, clocks, system, usb, &mut resets, &mut watchdog)
            .ok()?;
    Some(Chip { clocks, watchdog, resets })
}
