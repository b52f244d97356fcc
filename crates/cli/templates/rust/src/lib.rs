//! The machine `{{name}}`: greets whoever calls it, and counts how often it did.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::{Error, log, tree};

tenure::export!(entry, greet);

/// Runs once when the machine starts.
fn entry() {
    log!("{{name}} has started");
}

/// `tenure call {{name}} greet Ada`
fn greet(whom: Option<&str>) -> Result<String, Error> {
    let before: u32 = tree::text("greetings")?.and_then(|text| text.parse().ok()).unwrap_or(0);
    tree::set_text("greetings", &format!("{}", before + 1))?;
    Ok(format!("Hello, {}! You are number {}.", whom.unwrap_or("world"), before + 1))
}
