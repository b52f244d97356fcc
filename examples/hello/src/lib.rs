//! The smallest machine: it greets whoever calls it.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

tenure::export!(entry, greet);

fn entry() {
    tenure::log!("hello has started");
}

/// `tenure call hello greet Ada`
fn greet(whom: Option<&str>) -> String {
    format!("Hello, {}!", whom.unwrap_or("world"))
}
