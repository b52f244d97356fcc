//! Arithmetic modulo the primes of NIST's curves. The time of every function depends on the field alone.
//!
//! A number may be any of its residues below 2^(32 · limbs): only [`Field::canonical`] chooses the
//! smallest.

use crate::limbs::{self, Radix};

/// The limbs of the largest field.
pub(crate) const LIMBS_MAX: usize = if cfg!(feature = "p384") { 12 } else { 8 };

/// Limbs of 32 bits, least significant first; those above the field's are zero.
pub(crate) type Number = [u32; LIMBS_MAX];

/// A prime just below 2^(32 · limbs).
pub(crate) struct Field {
    pub(crate) modulus: &'static [u32],
    /// The residue of 2^(32 · limbs).
    pub(crate) radix: Radix,
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
        self.subtract_modulus(&mut sum, carry);
        sum
    }

    #[inline(never)]
    pub(crate) fn subtract(&self, one: &Number, other: &Number) -> Number {
        let (mut difference, length) = (*one, self.limbs());
        let borrow = limbs::subtract(&mut difference[..length], &other[..length], u32::MAX);
        // The difference lacks less than the modulus twice.
        let carry = limbs::add(&mut difference[..length], self.modulus, borrow.wrapping_neg());
        let mask = (borrow ^ carry).wrapping_neg();
        limbs::add(&mut difference[..length], self.modulus, mask);
        difference
    }

    /// `number · 2^bits`, of up to three bits.
    #[inline(never)]
    pub(crate) fn shift(&self, number: &Number, bits: u32) -> Number {
        let mut shifted = [0; LIMBS_MAX];
        let mut below = 0;
        for (to, limb) in shifted.iter_mut().zip(&number[..self.limbs()]) {
            *to = limb << bits | below;
            below = limb >> (32 - bits);
        }
        self.settle(&mut shifted, below as i32);
        shifted
    }

    /// Brings `number`, with `carry`, 0 or 1, above it, below 2^(32 · limbs): it is less than that and the
    /// modulus twice.
    fn subtract_modulus(&self, number: &mut Number, carry: u32) {
        let number = &mut number[..self.limbs()];
        let borrow = limbs::subtract(number, self.modulus, carry.wrapping_neg());
        limbs::subtract(number, self.modulus, (carry ^ borrow).wrapping_neg());
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

    /// The residue of what has up to twice the limbs. Carries wait until the end.
    fn reduce(&self, product: &[u32; 2 * LIMBS_MAX]) -> Number {
        let length = self.limbs();
        let mut number = [0; LIMBS_MAX];
        let carry = if length == P256_LIMBS {
            reduce_p256(product, &mut number)
        } else {
            let mut columns = product.map(i64::from);
            limbs::fold(&mut columns[..2 * length], &self.radix);
            let mut carry = 0;
            for (limb, column) in number[..length].iter_mut().zip(&columns) {
                carry += *column;
                *limb = carry as u32;
                carry >>= 32;
            }
            carry as i32
        };
        self.settle(&mut number, carry);
        number
    }

    /// Adds `carry`, a small number, times the residue of 2^(32 · limbs).
    #[inline(never)]
    fn settle(&self, number: &mut Number, mut carry: i32) {
        // The first round carries at most one, and leaves a number that the second carries
        // nothing out of.
        for _ in 0..2 {
            let mut columns = [0; LIMBS_MAX];
            let Radix { plus, minus, either, either_is_minus } = self.radix;
            columns[0] = carry;
            columns[plus] = carry;
            columns[minus] = -carry;
            columns[either] = if either_is_minus { -carry } else { carry };
            carry = limbs::add_small(&mut number[..self.limbs()], &columns[..self.limbs()]);
        }
    }
}

/// The limbs of the one field that has its own reduction.
const P256_LIMBS: usize = 8;

/// The residue of a product of two numbers of P-256, as SP 800-186 §G.1.2 has it: which of the upper limbs count for
/// each of the lower. Returns what is above them.
fn reduce_p256(product: &[u32; 2 * LIMBS_MAX], number: &mut Number) -> i32 {
    let limb = |index: usize| i64::from(product[index]);
    let [c8, c9, c10, c11, c12, c13, c14, c15] = core::array::from_fn(|index| limb(8 + index));
    let mut carry = 0;
    let mut next = |index: usize, upper: i64| {
        carry += limb(index) + upper;
        number[index] = carry as u32;
        carry >>= 32;
    };
    next(0, c8 + c9 - c11 - c12 - c13 - c14);
    next(1, c9 + c10 - c12 - c13 - c14 - c15);
    next(2, c10 + c11 - c13 - c14 - c15);
    next(3, 2 * (c11 + c12) + c13 - c15 - c8 - c9);
    next(4, 2 * (c12 + c13) + c14 - c9 - c10);
    next(5, 2 * (c13 + c14) + c15 - c10 - c11);
    next(6, 2 * (c14 + c15) + c14 + c13 - c8 - c9);
    next(7, 2 * c15 + c15 + c8 - c10 - c11 - c12 - c13);
    carry as i32
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
