//! The services that a board gives a node, as traits that a board implements and nothing above it names.
//!
//! Invariants:
//! - Nothing here blocks: a device that isn't ready says so in its error or its `Option`.
//! - Libraries above never read a clock: an [`Instant`] is handed down to them. Only the loop of a
//!   board calls [`Clock::now`].
//! - Every address and length that crosses these traits is in bytes, counted from the start of the
//!   device that the trait stands for.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "simulated"))]
extern crate alloc;

mod clock;
mod entropy;
pub mod ethernet;
mod flash;
mod guard;
mod i2c;
mod link;
mod nor;
mod partition;
mod peripheral;
pub mod planted;
mod power;
#[cfg(feature = "simulated")]
pub mod simulated;
mod sort;
mod split_mix;

pub use clock::{Clock, Instant, UnixTime, micros_of, proportion};
pub use entropy::{Entropy, EntropyError};
pub use flash::{Flash, FlashError, FlashGeometry};
pub use guard::{ARGUMENTS, Call, Cause, Context, Exit, Guard, RETURNED, Region, Violation};
pub use i2c::{I2c, I2cError};
pub use link::{DATAGRAM_BYTES_MAX, Link, LinkError};
pub use nor::{Medium, NorFlash};
pub use partition::Partition;
pub use peripheral::Peripheral;
pub use power::{Power, ResetCause, Retained};
pub use sort::{sort, sort_by};
pub use split_mix::SplitMix64;
