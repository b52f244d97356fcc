//! Limbs of 32 bits, least significant first: sums, differences and products. The time of every function depends on
//! lengths alone.

#[cfg(tenure_armv6m)]
mod armv6m;
pub mod portable;

#[cfg(tenure_armv6m)]
pub use armv6m::{add, add_small, fold, multiply, multiply_add, square, subtract};
#[cfg(not(tenure_armv6m))]
pub use portable::{add, add_small, fold, multiply, multiply_add, square, subtract};

/// The residue of 2^(32 · limbs) modulo a prime just below: 1 + 2^(32 · plus) - 2^(32 · minus) ± 2^(32 · either).
#[derive(Clone, Copy, Debug)]
pub struct Radix {
    /// A weight, in limbs, that is added.
    pub plus: usize,
    /// One that is subtracted.
    pub minus: usize,
    /// One that is either.
    pub either: usize,
    /// Whether that is subtracted.
    pub either_is_minus: bool,
}

/// Sets `number` to `bytes`, big-endian; what is above its limbs is left out.
pub fn from_bytes(bytes: &[u8], number: &mut [u32]) {
    number.fill(0);
    for (limb, chunk) in number.iter_mut().zip(bytes.rchunks(4)) {
        *limb = chunk.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    }
}
