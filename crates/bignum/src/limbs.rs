//! Limbs of 32 bits, least significant first: sums, differences and products. The time of every function depends on
//! lengths alone.

#[cfg(tenure_armv6m)]
mod armv6m;
pub mod portable;

#[cfg(tenure_armv6m)]
pub use armv6m::{add, add_small, multiply, multiply_add, square, subtract};
#[cfg(not(tenure_armv6m))]
pub use portable::{add, add_small, multiply, multiply_add, square, subtract};

/// Sets `number` to `bytes`, big-endian; what is above its limbs is left out.
pub fn from_bytes(bytes: &[u8], number: &mut [u32]) {
    number.fill(0);
    for (limb, chunk) in number.iter_mut().zip(bytes.rchunks(4)) {
        *limb = chunk.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    }
}
