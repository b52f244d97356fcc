//! Arithmetic modulo the primes of NIST's curves. The time of every function depends on the field alone.
//!
//! A number may be any of its residues below 2^(32 · limbs): only [`Field::canonical`] chooses the
//! smallest.

use crate::limbs;
/// The limbs of the largest field.
pub(crate) const LIMBS_MAX: usize = if cfg!(feature = "p384") { 12 } else { 8 };

/// Limbs of 32 bits, least significant first; those above the field's are zero.
pub(crate) type Number = [u32; LIMBS_MAX];

/// A prime just below 2^(32 · limbs).
pub(crate) struct Field {
    pub(crate) modulus: &'static [u32],
    /// The residue of 2^(32 · limbs): powers of 2^32, and whether each is subtracted.
    pub(crate) radix: [(usize, bool); 4],
}

impl Field {
    pub(crate) fn limbs(&self) -> usize {
        self.modulus.len()
    }

    #[inline(never)]
    pub(crate) fn multiply(&self, one: &Number, other: &Number) -> Number {
        let length = self.limbs();
        let mut product = [0; 2 * LIMBS_MAX];
        limbs::multiply(&mut product[..2 * length], &one[..length], &other[..length]);
        self.reduce(&product)
    }

    #[inline(never)]
    pub(crate) fn square(&self, number: &Number) -> Number {
        let length = self.limbs();
        let mut product = [0; 2 * LIMBS_MAX];
        limbs::square(&mut product[..2 * length], &number[..length]);
        self.reduce(&product)
    }

    #[inline(never)]
    pub(crate) fn add(&self, one: &Number, other: &Number) -> Number {
        let (mut sum, length) = (*one, self.limbs());
        let carry = limbs::add(&mut sum[..length], &other[..length], u32::MAX);
        self.settle(&mut sum, carry as i32);
        sum
    }

    #[inline(never)]
    pub(crate) fn subtract(&self, one: &Number, other: &Number) -> Number {
        let (mut difference, length) = (*one, self.limbs());
        let borrow = limbs::subtract(&mut difference[..length], &other[..length], u32::MAX);
        self.settle(&mut difference, -(borrow as i32));
        difference
    }

    /// `number` to the power of the modulus less 2: its inverse, or zero for zero.
    pub(crate) fn invert(&self, number: &Number) -> Number {
        let mut power = *number;
        for bit in (0..32 * self.limbs() - 1).rev() {
            power = self.square(&power);
            // The modulus is odd and ends in one bits: less 2 its bit 1 is missing.
            if bit != 1 && self.modulus[bit / 32] >> (bit % 32) & 1 == 1 {
                power = self.multiply(&power, number);
            }
        }
        power
    }

    /// All ones if `number` is zero modulo the prime, otherwise zero.
    pub(crate) fn is_zero(&self, number: &Number) -> u32 {
        let number = self.canonical(number);
        let any = number.iter().fold(0, |any, limb| any | limb);
        mask(any == 0)
    }

    /// The residue below the prime.
    pub(crate) fn canonical(&self, number: &Number) -> Number {
        let (mut canonical, length) = (*number, self.limbs());
        let borrow = limbs::subtract(&mut canonical[..length], self.modulus, u32::MAX);
        limbs::add(&mut canonical[..length], self.modulus, borrow.wrapping_neg());
        canonical
    }

    /// The residue of what has up to twice the limbs. Each limb above the field's counts as often as the
    /// residue of its weight says, from the top down; carries wait until the end.
    fn reduce(&self, product: &[u32; 2 * LIMBS_MAX]) -> Number {
        let length = self.limbs();
        let mut columns = product.map(i64::from);
        for at in (0..length).rev() {
            let high = columns[length + at];
            for (offset, is_minus) in self.radix {
                let column = &mut columns[at + offset];
                *column = if is_minus { *column - high } else { *column + high };
            }
        }
        let mut number = [0; LIMBS_MAX];
        let mut carry = 0;
        for (limb, column) in number[..length].iter_mut().zip(&columns) {
            carry += *column;
            *limb = carry as u32;
            carry >>= 32;
        }
        self.settle(&mut number, carry as i32);
        number
    }

    /// Adds `carry`, a small number, times the residue of 2^(32 · limbs).
    #[inline(never)]
    fn settle(&self, number: &mut Number, mut carry: i32) {
        // The first round carries at most one, and leaves a number that the second carries
        // nothing out of.
        for _ in 0..2 {
            let mut columns = [0; LIMBS_MAX];
            for (offset, is_minus) in self.radix {
                columns[offset] = if is_minus { -carry } else { carry };
            }
            carry = limbs::add_small(&mut number[..self.limbs()], &columns[..self.limbs()]);
        }
    }
}

/// All ones if `condition` holds, otherwise zero.
pub(crate) fn mask(condition: bool) -> u32 {
    core::hint::black_box(u32::from(condition)).wrapping_neg()
}

/// `one` where `mask` is zero, `other` where it is all ones.
#[inline(never)]
pub(crate) fn select(one: &mut Number, other: &Number, mask: u32) {
    for (limb, other) in one.iter_mut().zip(other) {
        *limb ^= (*limb ^ other) & mask;
    }
}

/// A number of `bytes`, big-endian.
pub(crate) fn from_bytes(bytes: &[u8]) -> Number {
    let mut number = [0; LIMBS_MAX];
    limbs::from_bytes(bytes, &mut number);
    number
}

/// Writes the lower limbs of `number`, as many as `bytes` holds, big-endian.
pub(crate) fn to_bytes(number: &[u32], bytes: &mut [u8]) {
    for (chunk, limb) in bytes.rchunks_mut(4).zip(number) {
        chunk.copy_from_slice(&limb.to_be_bytes()[4 - chunk.len()..]);
    }
}
