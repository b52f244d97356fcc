//! Hears each round, and asks others what they heard.
#![no_std]

extern crate alloc;

use alloc::string::String;

use tenure::{Error, call, events, tree};

tenure::export!(entry, heard, value, ask);

fn entry() -> Result<(), Error> {
    events::subscribe("round").depth(2).handler("heard").start()
}

fn heard(round: &str) -> Result<(), Error> {
    tree::set_text("heard", round)
}

/// The last round that it has heard.
fn value() -> Result<String, Error> {
    tree::text("heard")?.ok_or(Error::NotFound)
}

/// The topics that the machine named by the parameter has heard; they are kept.
fn ask(target: &str) -> Result<String, Error> {
    let answer = call(target, "value", None)?.ok_or(Error::NotFound)?;
    tree::set("answer", &answer)?;
    String::from_utf8(answer).map_err(|_| Error::Invalid)
}
