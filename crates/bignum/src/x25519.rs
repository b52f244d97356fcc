//! X25519 (RFC 7748) by the Montgomery ladder, in a time that depends on no number.
//!
//! A number may be any of its residues below 2^256, which is 38 more than a multiple of the prime.

use crate::limbs;
use zeroize::{Zeroize, Zeroizing};

const LIMBS: usize = 8;

type Number = [u32; LIMBS];

/// The coordinate of the base point.
pub const BASE: [u8; 32] = {
    let mut base = [0; 32];
    base[0] = 9;
    base
};

/// The function X25519 of RFC 7748 §5.
pub fn x25519(scalar: &[u8; 32], coordinate: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    let mut scalar = Zeroizing::new(*scalar);
    scalar[0] &= 248;
    scalar[31] = scalar[31] & 127 | 64;
    let mut base = [0; LIMBS];
    for (limb, chunk) in base.iter_mut().zip(coordinate.chunks_exact(4)) {
        *limb = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    }
    base[LIMBS - 1] &= u32::MAX >> 1;
    let mut ladder = Ladder::new(&base);
    let mut swapped = 0;
    for bit in (0..255).rev() {
        let is_one = u32::from(scalar[bit / 8] >> (bit % 8) & 1);
        ladder.swap((is_one ^ swapped).wrapping_neg());
        swapped = is_one;
        ladder.step(&base);
    }
    // The lowest bits are zero: the last swap was undone.
    let mut result = ladder.quotient();
    let mut bytes = Zeroizing::new([0; 32]);
    for (chunk, limb) in bytes.chunks_exact_mut(4).zip(result) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    result.zeroize();
    bytes
}

/// Two neighbouring multiples of a point, as fractions x/z. Wiped when dropped.
///
/// All that is computed is written where it stays: on a small core to move a number costs a tenth of a product.
#[derive(Zeroize, zeroize::ZeroizeOnDrop)]
struct Ladder {
    x2: Number,
    z2: Number,
    x3: Number,
    z3: Number,
    /// Of a step.
    sum: Number,
    product: Product,
}

impl Ladder {
    fn new(base: &Number) -> Self {
        let mut one = [0; LIMBS];
        one[0] = 1;
        let zero = [0; LIMBS];
        Self { x2: one, z2: zero, x3: *base, z3: one, sum: zero, product: Product::default() }
    }

    /// Exchanges the two if `mask` is all ones.
    #[inline(never)]
    fn swap(&mut self, mask: u32) {
        let Self { x2, z2, x3, z3, .. } = self;
        for (one, other) in [(x2, x3), (z2, z3)] {
            for (one, other) in one.iter_mut().zip(other) {
                let difference = (*one ^ *other) & mask;
                *one ^= difference;
                *other ^= difference;
            }
        }
    }

    /// Doubles the first and adds it to the second: RFC 7748 §5, whose names stand beside each line.
    #[inline(never)]
    fn step(&mut self, base: &Number) {
        let Self { x2, z2, x3, z3, sum, product } = self;
        to_sum_and_difference(x2, z2, sum); // A, B
        to_sum_and_difference(x3, z3, sum); // C, D
        product.multiply(z3, x2); // DA
        product.multiply(x3, z2); // CB
        to_sum_and_difference(x3, z3, sum); // CB + DA, CB - DA
        product.square(x3);
        product.square(z3);
        product.multiply(z3, base);
        product.square(x2); // AA
        product.square(z2); // BB
        *sum = *x2;
        product.multiply(x2, z2);
        subtract(sum, z2); // E
        add(z2, sum); // AA again
        let carry = limbs::multiply_add(z2, sum, 121_665);
        fold(z2, carry);
        product.multiply(z2, sum);
    }

    /// x/z of the first.
    fn quotient(&mut self) -> Number {
        let Self { x2, z2, product, .. } = self;
        product.invert(z2);
        product.multiply(x2, z2);
        canonical(x2)
    }
}

/// Sets `one` to the sum of both and `other` to their difference.
#[inline(never)]
fn to_sum_and_difference(one: &mut Number, other: &mut Number, scratch: &mut Number) {
    *scratch = *one;
    add(one, other);
    subtract(scratch, other);
    *other = *scratch;
}

/// Where products are made. Wiped when dropped.
#[derive(Default, Zeroize, zeroize::ZeroizeOnDrop)]
struct Product([u32; 2 * LIMBS]);

impl Product {
    /// Multiplies `number` by `factor`.
    #[inline(never)]
    fn multiply(&mut self, number: &mut Number, factor: &Number) {
        limbs::multiply(&mut self.0, number, factor);
        self.reduce(number);
    }

    #[inline(never)]
    fn square(&mut self, number: &mut Number) {
        limbs::square(&mut self.0, number);
        self.reduce(number);
    }

    fn reduce(&mut self, number: &mut Number) {
        let (low, high) = self.0.split_at_mut(LIMBS);
        let carry = limbs::multiply_add(low, high, 38);
        number.copy_from_slice(low);
        fold(number, carry);
    }

    /// Raises `number` to the power of 2^255 - 21, which makes it its inverse.
    fn invert(&mut self, number: &mut Number) {
        let base = *number;
        // The powers of 2^n - 1, for n of 1, 5, 10, 20, 40, 50, 100, 200 and 250.
        for _ in 1..5 {
            self.raise(number, 1, &base);
        }
        let five = *number;
        self.raise(number, 5, &five);
        let ten = *number;
        self.raise(number, 10, &ten);
        let twenty = *number;
        self.raise(number, 20, &twenty);
        self.raise(number, 10, &ten);
        let fifty = *number;
        self.raise(number, 50, &fifty);
        let hundred = *number;
        self.raise(number, 100, &hundred);
        self.raise(number, 50, &fifty);
        // The last five bits are 01011.
        let mut eleven = base;
        self.raise(&mut eleven, 2, &base);
        self.raise(&mut eleven, 1, &base);
        self.raise(number, 5, &eleven);
    }

    /// Squares `number` so many times and multiplies it by `factor`.
    #[inline(never)]
    fn raise(&mut self, number: &mut Number, squarings: usize, factor: &Number) {
        for _ in 0..squarings {
            self.square(number);
        }
        self.multiply(number, factor);
    }
}

#[inline(never)]
fn add(sum: &mut Number, other: &Number) {
    let carry = limbs::add(sum, other, u32::MAX);
    fold(sum, carry);
}

#[inline(never)]
fn subtract(difference: &mut Number, other: &Number) {
    let borrow = limbs::subtract(difference, other, u32::MAX);
    let borrow = subtract_limb(difference, 38 & borrow.wrapping_neg());
    // A difference that borrows a second time was below 38, and so borrows from its lowest limb alone.
    difference[0] = difference[0].wrapping_sub(38 & borrow.wrapping_neg());
}

/// Adds `carry`, below 2^18, times 2^256.
#[inline(never)]
fn fold(number: &mut Number, carry: u32) {
    let carry = add_limb(number, 38 * carry);
    // A sum that carries a second time leaves a number below 2^24.
    number[0] += 38 & carry.wrapping_neg();
}

/// Adds a limb to the lowest one, and returns the carry.
fn add_limb(number: &mut Number, limb: u32) -> u32 {
    number.iter_mut().fold(limb, |carry, limb| {
        let (sum, carries) = limb.overflowing_add(carry);
        *limb = sum;
        u32::from(carries)
    })
}

/// Subtracts a limb from the lowest one, and returns the borrow.
fn subtract_limb(number: &mut Number, limb: u32) -> u32 {
    number.iter_mut().fold(limb, |borrow, limb| {
        let (difference, borrows) = limb.overflowing_sub(borrow);
        *limb = difference;
        u32::from(borrows)
    })
}

/// The residue below 2^255 - 19.
fn canonical(number: &Number) -> Number {
    let mut number = *number;
    // Below 2^255 + 19 first.
    let top = number[LIMBS - 1] >> 31;
    number[LIMBS - 1] &= u32::MAX >> 1;
    let correction = [19 * top, 0, 0, 0, 0, 0, 0, 0];
    limbs::add(&mut number, &correction, u32::MAX);
    // Then the prime once, if it fits.
    let mut prime = [u32::MAX; LIMBS];
    prime[0] -= 18;
    prime[LIMBS - 1] >>= 1;
    let borrow = limbs::subtract(&mut number, &prime, u32::MAX);
    limbs::add(&mut number, &prime, borrow.wrapping_neg());
    number
}
