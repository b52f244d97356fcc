//! Keeps what the thermometer says, and compares it with the thermostat.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure::{Error, call, events, timers, tree};

tenure::export!(entry, report, on_temperature, on_compare);

/// The readings that are kept.
const READINGS: usize = 4;

fn entry() -> Result<(), Error> {
    events::subscribe("device.temperature").latest_only().handler("on_temperature").start()?;
    timers::every(Duration::from_secs(1)).call("on_compare")
}

/// `tenure call weather report`
fn report() -> Result<String, Error> {
    let Some(history) = tree::text("history")? else { return Ok("no reading yet".into()) };
    let verdict = tree::text("verdict")?.unwrap_or_else(|| "not compared yet".into());
    Ok(format!("{history}: {verdict}"))
}

/// The thermometer's reading comes as a call. One like the last is no news.
fn on_temperature(degrees: &str) -> Result<(), Error> {
    let history = tree::text("history")?.unwrap_or_default();
    let mut readings: Vec<&str> = history.split_whitespace().collect();
    if readings.last() == Some(&degrees) {
        return Ok(());
    }
    readings.push(degrees);
    let first = readings.len().saturating_sub(READINGS);
    tree::set_text("history", &readings.split_off(first).join(" "))
}

/// The timer's call.
fn on_compare() -> Result<(), Error> {
    let history = tree::text("history")?.unwrap_or_default();
    let Some(last) = history.split_whitespace().last().and_then(tenths) else { return Ok(()) };
    let target = call("thermostat", "read", None)?.ok_or(Error::Null)?;
    let target = String::from_utf8(target).map_err(|_| Error::Invalid)?;
    let word = if last < tenths(&target).ok_or(Error::Invalid)? { "colder" } else { "warmer" };
    let verdict = format!("{word} than {target}");
    match tree::text("verdict")? == Some(verdict.clone()) {
        true => Ok(()),
        false => tree::set_text("verdict", &verdict),
    }
}

/// `21.5` as tenths of a degree.
fn tenths(text: &str) -> Option<i32> {
    text.replace('.', "").parse().ok()
}
