//! Watches a machine on another device, and raises an alarm when it no longer answers.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use tenure::{Error, events, log};

tenure::export!(look, show);

/// As many silences in a row are an alarm.
const SILENCES: u32 = 3;

static SILENT: AtomicU32 = AtomicU32::new(0);

/// Called by the timer each second.
fn look() -> Result<(), Error> {
    let answer = tenure::call_with_deadline("pump@well", "state", None, Duration::from_millis(500));
    let before = SILENT.load(Ordering::Relaxed);
    let silent = match answer {
        Ok(_) => 0,
        // Those don't pass by waiting.
        Err(Error::NotGranted | Error::NotFound | Error::Denied) => SILENCES.max(before + 1),
        Err(_) => before + 1,
    };
    SILENT.store(silent, Ordering::Relaxed);
    if before < SILENCES && silent >= SILENCES {
        log!("no answer: {:?}", answer.err());
        events::publish("alarm.pump", b"silent")?;
    } else if before >= SILENCES && silent == 0 {
        events::publish("alarm.pump", b"well again")?;
    }
    Ok(())
}

/// How it stands: `tenure call sentinel show`
fn show() -> String {
    match SILENT.load(Ordering::Relaxed) {
        0 => "well".into(),
        silent if silent < SILENCES => format!("silent {silent} times"),
        _ => "alarm".into(),
    }
}
