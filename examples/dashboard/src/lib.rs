//! Calls machines on other devices in straight-line code, one after another, as if they were local.
//!
//! While it waits for an answer, the other machines of its device run.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::{Error, log, tree};

tenure::export!(entry, show, add);

fn entry() -> Result<(), Error> {
    log!("watching {} rooms", tree::children("rooms")?.len());
    Ok(())
}

/// A line for each room: `tenure call dashboard show`
fn show() -> Result<String, Error> {
    let mut page = String::new();
    for room in tree::children("rooms")? {
        let target = tree::text(&format!("rooms.{room}"))?.unwrap_or_default();
        let reading = match tenure::call(&target, "read", None) {
            Ok(reading) => String::from_utf8_lossy(&reading.unwrap_or_default()).into_owned(),
            Err(error) => format!("({error})"),
        };
        page += &format!("{room}: {reading}\n");
    }
    Ok(page)
}

/// Adds a room: `tenure call dashboard add "kitchen thermostat@kitchen"`
fn add(room_and_target: &str) -> Result<(), Error> {
    let (room, target) = room_and_target.split_once(' ').ok_or(Error::Invalid)?;
    tree::set_text(&format!("rooms.{room}"), target)
}
