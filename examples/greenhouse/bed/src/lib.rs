//! Waters a bed: hears the soil's moisture, and opens the valve for a litre where it is too dry.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicI32, Ordering};

use tenure::{Error, Level, events, log, tree};

tenure::export!(entry, read, on_moisture, on_check);

/// The last reading in percent, or -1 before there is one.
static MOISTURE: AtomicI32 = AtomicI32::new(-1);

fn entry() -> Result<(), Error> {
    events::subscribe("device.moisture").latest_only().handler("on_moisture").start()
}

/// Each reading comes as a call.
fn on_moisture(percent: &str) {
    let whole = percent.split('.').next().unwrap_or_default();
    MOISTURE.store(whole.parse().unwrap_or(-1), Ordering::Relaxed);
}

/// Called by the timer of `tenure.toml`. The tank stands on another device; while it answers, readings wait.
fn on_check() -> Result<(), Error> {
    let moisture = MOISTURE.load(Ordering::Relaxed);
    let is_dry = moisture >= 0 && moisture < number("target")?;
    if !is_dry {
        return Ok(());
    }
    if let Err(error) = tenure::call("tank@shed", "take", Some(b"1")) {
        log!(Level::Warning, "dry, and no water: {error}");
        events::publish("command.valve", b"off")?;
        return Ok(());
    }
    let litres = number("litres")? + 1;
    tree::set_text("litres", &format!("{litres}"))?;
    events::publish("command.valve", b"on")?;
    log!("dry at {moisture} %: litre {litres}");
    Ok(())
}

/// The state of the bed, for the diary: `tenure call bed read`
fn read() -> Result<String, Error> {
    let moisture = MOISTURE.load(Ordering::Relaxed);
    let state = if moisture < number("target")? { "dry" } else { "moist" };
    Ok(format!("{moisture} % {state}"))
}

/// A number that the tree holds as text; 0 where there is none.
fn number(path: &str) -> Result<i32, Error> {
    Ok(tree::text(path)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}
