//! Keeps a line of each caller: nobody writes another's, and no power cut loses one.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::{Error, tree};

tenure::export!(sign, strike, show);

/// Where the line of whoever calls stands. The owner calls by no machine.
fn path_of_caller() -> Result<String, Error> {
    let caller = tenure::caller()?;
    let name = caller.map_or_else(|| "owner".into(), |key| format!("{key}"));
    Ok(format!("lines.{name}"))
}

/// Writes the caller's line, in the place of an earlier one: `tenure call guestbook sign "was here"`
fn sign(line: &str) -> Result<(), Error> {
    if line.is_empty() || line.contains('\n') {
        return Err(Error::Invalid);
    }
    tree::set_text(&path_of_caller()?, line)
}

/// Strikes the caller's line out: `tenure call guestbook strike`
fn strike() -> Result<(), Error> {
    match tree::delete(&path_of_caller()?)? {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// All lines, in the order of keys: `tenure call guestbook show`
fn show() -> Result<String, Error> {
    let mut page = String::new();
    for name in tree::children("lines")? {
        if let Some(line) = tree::text(&format!("lines.{name}"))? {
            page += &format!("{line}\n");
        }
    }
    Ok(page)
}
