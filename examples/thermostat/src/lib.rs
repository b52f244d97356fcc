//! Keeps values in its tree: the temperature it shall hold survives every restart.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::{Error, Level, log, tree};

tenure::export!(entry, read, set);

/// The settings that it accepts, in tenths of a degree.
const TARGET_RANGE: core::ops::RangeInclusive<i32> = 50..=300;

fn entry() -> Result<(), Error> {
    log!("holding {} degrees", read()?);
    Ok(())
}

/// The temperature it holds: `tenure call thermostat read`
fn read() -> Result<String, Error> {
    tree::text("target")?.ok_or(Error::NotFound)
}

/// Sets the temperature and says what it now is: `tenure call thermostat set 19.5`
///
/// A value that isn't a sensible temperature changes nothing: the answer is the one that holds.
fn set(degrees: Option<&str>) -> Result<String, Error> {
    match degrees.and_then(tenths).filter(|tenths| TARGET_RANGE.contains(tenths)) {
        Some(tenths) => {
            tree::set_text("target", &format!("{}.{}", tenths / 10, tenths % 10))?;
            log!("holding {} degrees from now on", read()?);
        }
        None => log!(Level::Warning, "refused {}: not from 5 to 30", degrees.unwrap_or("null")),
    }
    read()
}

/// `21`, `21.5` as tenths of a degree.
fn tenths(text: &str) -> Option<i32> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let fraction = fraction.parse::<u8>().ok().filter(|digit| *digit < 10)?;
    Some(i32::from(whole.parse::<u8>().ok()?) * 10 + i32::from(fraction))
}
