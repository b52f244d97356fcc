//! Keeps a diary of the greenhouse: asks machines on three other devices, and keeps the last eight notes.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use tenure::{Error, events, tree};

tenure::export!(show, on_note);

/// How many notes are kept.
const NOTES: u32 = 8;
/// How long one that is asked may take; the next note isn't far.
const PATIENCE: Duration = Duration::from_secs(2);

/// Called by the timer of `tenure.toml`. A device that doesn't answer costs its own part of the note alone.
fn on_note() -> Result<(), Error> {
    let mut note = String::new();
    for name in tree::children("asks")? {
        let target = tree::text(&format!("asks.{name}"))?.unwrap_or_default();
        let answer = match tenure::call_with_deadline(&target, "read", None, PATIENCE) {
            Ok(answer) => String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned(),
            Err(error) => format!("({error})"),
        };
        if answer.ends_with("dry") {
            events::publish("garden.dry", name.as_bytes())?;
        }
        let end = if note.is_empty() { "" } else { "\n" };
        note += &format!("{end}{name}: {answer}");
    }
    let number: u32 = tree::text("number")?.and_then(|text| text.parse().ok()).unwrap_or(0);
    tree::set_text(&format!("notes.{}", number % NOTES), &note)?;
    tree::set_text("number", &format!("{}", number.wrapping_add(1)))
}

/// The last note: `tenure call diary show`
fn show() -> Result<String, Error> {
    let number: u32 = tree::text("number")?.and_then(|text| text.parse().ok()).unwrap_or(0);
    let last = number.wrapping_sub(1) % NOTES;
    Ok(tree::text(&format!("notes.{last}"))?.unwrap_or_default())
}
