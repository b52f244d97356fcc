//! ARM's microcontroller profiles, in Thumb.
//!
//! [`V7m`] is for ARMv7-M and ARMv8-M with the main extension, [`V6m`] for ARMv6-M and the
//! baseline of ARMv8-M. The build script says which one the target has.
#![allow(unsafe_code)]

#[cfg(tenure_thumb = "v6m")]
mod v6m;
#[cfg(tenure_thumb = "v7m")]
mod v7m;

#[cfg(tenure_thumb = "v6m")]
pub use v6m::V6m;
#[cfg(tenure_thumb = "v7m")]
pub use v7m::V7m;
