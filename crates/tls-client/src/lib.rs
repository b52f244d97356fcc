//! What a device's TLS clients know beside a connection: the date by which certificates are judged.
//!
//! Invariants:
//! - A device that doesn't know the date judges no certificate by one: the connection fails, and its error says how the device
//!   learns the date.
#![forbid(unsafe_code)]

mod date;

pub use date::{Date, Dates, explain};
