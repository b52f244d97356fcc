//! Limbs of 32 bits, least significant first: sums, differences and products. The time of every function depends on
//! lengths alone.

#[cfg(tenure_armv6m)]
mod armv6m;
pub mod portable;

#[cfg(tenure_armv6m)]
pub use armv6m::{add, multiply, multiply_add, square, subtract};
#[cfg(not(tenure_armv6m))]
pub use portable::{add, multiply, multiply_add, square, subtract};
