//! A Tenure device on an ESP32-C3 or ESP32-C6.
//!
//! Unsafe code is needed for what `esp-hal` has no word for: flash mapped as memory, and retained
//! memory. Each use says what it relies on; there is one core, and this code runs in one thread.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod entropy;
mod flash;
mod network;
mod power;

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt::Write as _;
use core::time::Duration;

use esp_hal::clock::CpuClock;
use esp_hal::ram;
use esp_hal::timer::timg::TimerGroup;
use esp_println::Printer;
use tenure_board_common::{Board, Device, HeapUse, Settings, StartError, small_class};

use crate::clock::SystemTimer;
use crate::entropy::RadioEntropy;
use crate::flash::Chip;
use crate::network::Wifi;
use crate::power::Rtc;

esp_bootloader_esp_idf::esp_app_desc!();

/// RAM for the heap beside what the bootloader gives back: the rest is variables, the radio's own,
/// and the stack.
const HEAP_BYTES: usize = if cfg!(feature = "esp32c6") { 240 * 1024 } else { 144 * 1024 };
/// The memory that the bootloader used.
const RECLAIMED_BYTES: usize = 64 * 1024;
/// For memory and stacks of all machines; the radio takes some 60 KB of the heap.
const MACHINE_BYTES: usize = if cfg!(feature = "esp32c6") { 128 * 1024 } else { 64 * 1024 };
/// The longest nap: the radio's tasks don't end one.
const NAP_MAX: Duration = Duration::from_millis(5);

#[esp_hal::main]
fn main() -> ! {
    let Err(error) = run();
    // A console that takes nothing has nobody who reads it.
    let _ = writeln!(Printer, "error: {error}");
    loop {
        esp_hal::interrupt::wait_for_interrupt();
    }
}

fn run() -> Result<Infallible, StartError> {
    const NO_WIFI: StartError = StartError::Absent("radio, or its settings `wifi` and `password`");
    let peripherals = esp_hal::init(esp_hal::Config::default().with_cpu_clock(CpuClock::max()));
    esp_alloc::heap_allocator!(#[ram(reclaimed)] size: RECLAIMED_BYTES);
    esp_alloc::heap_allocator!(size: HEAP_BYTES);
    let power = Rtc::new(peripherals.RTC_TIMER, peripherals.LPWR);
    // The radio's tasks need a scheduler; the node is its main task.
    esp_rtos::start(TimerGroup::new(peripherals.TIMG0).timer0, peripherals.FROM_CPU_INTR0);

    let mut flash = flash::divide(&Chip::new(peripherals.FLASH))?;
    let settings = Settings::read(&mut flash.settings)?;
    let mut wifi = Wifi::new(peripherals.WIFI, &settings).ok_or(NO_WIFI)?;
    let card = wifi.card();
    let hardware = card.hardware_address();
    let board = Board {
        model: (env!("CARGO_PKG_NAME"), power::WATCHDOG),
        flash,
        card: (card, hardware),
        clock: SystemTimer::started_at(power.started_at()),
        entropy: RadioEntropy::new().ok_or(NO_WIFI)?,
        console: Printer,
        retained: Box::new(power.lend_retained()),
        power,
        heap: heap_usage,
    };
    let device = Device::start(board, |config| {
        small_class(config);
        config.kernel.memory_bytes_max = MACHINE_BYTES;
        // The flash on the maker's modules is promised at least 100,000 program-erase cycles (Espressif, module
        // datasheets).
        config.flash_erases_rated = Some(100_000);
    })?;
    device.run(|nap, _| {
        wifi.poll();
        clock::wait(nap.min(NAP_MAX));
    })
}

fn heap_usage() -> HeapUse {
    let stats = esp_alloc::HEAP.stats();
    HeapUse {
        used_bytes: stats.current_usage,
        peak_bytes: stats.max_usage,
        total_bytes: stats.size,
    }
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    // As above.
    let _ = writeln!(Printer, "firmware stopped: {panic}");
    esp_hal::system::software_reset()
}
