//! Watches the device's thermometer, and switches a heater by what it says.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use tenure::{Error, events, log, tree};

tenure::export!(entry, show, on_temperature);

/// The last reading in tenths of a degree, and how many there were.
static TENTHS: AtomicI32 = AtomicI32::new(0);
static READINGS: AtomicU32 = AtomicU32::new(0);

/// Only the latest reading counts, so no more than one waits.
fn entry() -> Result<(), Error> {
    events::subscribe("device.temperature").latest_only().handler("on_temperature").start()
}

/// Shows the last reading: `tenure call climate show`
fn show() -> String {
    let tenths = TENTHS.load(Ordering::Relaxed);
    let readings = READINGS.load(Ordering::Relaxed);
    format!("{}.{} degrees after {readings} readings", tenths / 10, tenths % 10)
}

/// Each reading comes as a call; its payload is the parameter.
fn on_temperature(degrees: &str) -> Result<(), Error> {
    let now = tenths(degrees).ok_or(Error::Invalid)?;
    let before = TENTHS.swap(now, Ordering::Relaxed);
    let target = tree::text("target")?.as_deref().and_then(tenths).unwrap_or(200);
    let was_first = READINGS.fetch_add(1, Ordering::Relaxed) == 0;
    if was_first || (before < target) != (now < target) {
        let command = if now < target { "on" } else { "off" };
        log!("{degrees} degrees: heater {command}");
        events::publish("command.heater", command.as_bytes())?;
    }
    Ok(())
}

/// `21.5` as tenths of a degree.
fn tenths(text: &str) -> Option<i32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = fraction.parse::<u8>().ok().filter(|digit| *digit < 10)?;
    Some(i32::from(whole.parse::<u8>().ok()?) * 10 + i32::from(fraction))
}
