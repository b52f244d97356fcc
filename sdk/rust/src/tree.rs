//! The machine's tree: values at dotted paths (`a.b.c`) that survive a loss of power.
//!
//! ```no_run
//! # fn main() -> Result<(), tenure::Error> {
//! use tenure::tree;
//!
//! tree::set_text("settings.unit", "celsius")?;
//! tree::set("curve", &[18, 21, 23])?;
//! assert_eq!(tree::text("settings.unit")?.as_deref(), Some("celsius"));
//! assert_eq!(tree::children("")?, ["curve", "settings"]);
//! tree::delete("settings")?;
//! # Ok(()) }
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use crate::status::{length, optional, read_whole};
use crate::{Error, host};

/// Stores bytes at `path`, replacing what was there. They are safe once this returns.
///
/// # Errors
/// [`Error::TooLong`], [`Error::StoredBudget`], [`Error::FlashBudget`], [`Error::Full`] (the device),
/// [`Error::Invalid`] (the path) or [`Error::Device`].
pub fn set(path: &str, value: &[u8]) -> Result<(), Error> {
    store(path, 0, value)
}

/// Stores text at `path`, replacing what was there. It is safe once this returns.
///
/// # Errors
/// As [`set`].
pub fn set_text(path: &str, value: &str) -> Result<(), Error> {
    store(path, 1, value.as_bytes())
}

fn store(path: &str, kind: u32, value: &[u8]) -> Result<(), Error> {
    // SAFETY: each pointer and length is of a slice that lives until the call returns.
    let status =
        unsafe { host::tree_set(path.as_ptr(), path.len(), kind, value.as_ptr(), value.len()) };
    length(status).map(|_| ())
}

/// The bytes at `path`, or `None` if nothing is there.
///
/// # Errors
/// [`Error::Invalid`] (the path) or [`Error::Device`].
pub fn get(path: &str) -> Result<Option<Vec<u8>>, Error> {
    optional(read_whole(|into| {
        // SAFETY: each pointer and length is of a slice that lives until the call returns.
        unsafe { host::tree_get(path.as_ptr(), path.len(), into.as_mut_ptr(), into.len()) }
    }))
}

/// The text at `path`, or `None` if nothing is there.
///
/// # Errors
/// As [`get`], and [`Error::Invalid`] if what is there isn't text.
pub fn text(path: &str) -> Result<Option<String>, Error> {
    get(path)?.map(|bytes| String::from_utf8(bytes).map_err(|_| Error::Invalid)).transpose()
}

/// Deletes what is at `path` and below; gives how many values went.
///
/// # Errors
/// [`Error::Invalid`] (the path) or [`Error::Device`].
pub fn delete(path: &str) -> Result<usize, Error> {
    // SAFETY: pointer and length are of a slice that lives until the call returns.
    length(unsafe { host::tree_delete(path.as_ptr(), path.len()) })
}

/// The names right below `path` (empty: the root), in order.
///
/// # Errors
/// [`Error::Invalid`] (the path) or [`Error::Device`].
pub fn children(path: &str) -> Result<Vec<String>, Error> {
    let names = optional(read_whole(|into| {
        // SAFETY: each pointer and length is of a slice that lives until the call returns.
        unsafe { host::tree_list(path.as_ptr(), path.len(), into.as_mut_ptr(), into.len()) }
    }))?
    .unwrap_or_default();
    names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8(name.into()).map_err(|_| Error::Device))
        .collect()
}
