//! Which firmware a device starts: two slots in flash, the log that remembers what stands in them, the
//! rules by which a loader chooses, and how an update is written.
//!
//! Invariants:
//! - From the first flashing on, at every moment, the log names a good image: one that was confirmed, or
//!   flashed by cable. No operation here touches its slot.
//! - An image that isn't confirmed is started once at most, and only after the log says so.
//! - A good image is only ever followed by one with a greater number.
//! - Every change is one record of the log, so that a loss of power leaves the state before or after it.
//! - Nothing here allocates, so that a loader can be made of it.
#![no_std]
#![forbid(unsafe_code)]

pub mod always_on;
mod choice;
mod image;
mod load;
mod log;
pub mod map;
pub mod uf2;
mod update;

pub use choice::{Choice, NoImage, choose};
pub use image::{BOARD_BYTES_MAX, HEADER_BYTES, Header, Image, Slot};
pub use load::{LoadError, load};
pub use log::{BootLog, Failure, LogError, State, Trial};
pub use update::{ALIGNMENT, Update, UpdateError, confirm};
