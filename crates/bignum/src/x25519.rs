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
    let mut result = canonical(&multiply(&ladder.x2, &invert(&ladder.z2)));
    let mut bytes = Zeroizing::new([0; 32]);
    for (chunk, limb) in bytes.chunks_exact_mut(4).zip(result) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    result.zeroize();
    bytes
}

/// Two neighbouring multiples of a point, as fractions x/z. Wiped when dropped.
#[derive(Zeroize, zeroize::ZeroizeOnDrop)]
struct Ladder {
    x2: Number,
    z2: Number,
    x3: Number,
    z3: Number,
}

impl Ladder {
    fn new(base: &Number) -> Self {
        let mut one = [0; LIMBS];
        one[0] = 1;
        Self { x2: one, z2: [0; LIMBS], x3: *base, z3: one }
    }

    /// Exchanges the two if `mask` is all ones.
    #[inline(never)]
    fn swap(&mut self, mask: u32) {
        let Self { x2, z2, x3, z3 } = self;
        for (one, other) in [(x2, x3), (z2, z3)] {
            for (one, other) in one.iter_mut().zip(other) {
                let difference = (*one ^ *other) & mask;
                *one ^= difference;
                *other ^= difference;
            }
        }
    }

    /// Doubles the first and adds it to the second, with the names of RFC 7748.
    #[inline(never)]
    fn step(&mut self, base: &Number) {
        let a = add(&self.x2, &self.z2);
        let b = subtract(&self.x2, &self.z2);
        let da = multiply(&subtract(&self.x3, &self.z3), &a);
        let cb = multiply(&add(&self.x3, &self.z3), &b);
        self.x3 = square(&add(&da, &cb));
        self.z3 = multiply(base, &square(&subtract(&da, &cb)));
        let aa = square(&a);
        let bb = square(&b);
        self.x2 = multiply(&aa, &bb);
        let e = subtract(&aa, &bb);
        let mut sum = aa;
        let carry = limbs::multiply_add(&mut sum, &e, 121_665);
        fold(&mut sum, carry);
        self.z2 = multiply(&e, &sum);
    }
}

#[inline(never)]
fn multiply(one: &Number, other: &Number) -> Number {
    let mut product = [0; 2 * LIMBS];
    limbs::multiply(&mut product, one, other);
    reduce(&mut product)
}

#[inline(never)]
fn square(number: &Number) -> Number {
    let mut product = [0; 2 * LIMBS];
    limbs::square(&mut product, number);
    reduce(&mut product)
}

fn reduce(product: &mut [u32; 2 * LIMBS]) -> Number {
    let (low, high) = product.split_at_mut(LIMBS);
    let carry = limbs::multiply_add(low, high, 38);
    let mut number = [0; LIMBS];
    number.copy_from_slice(low);
    fold(&mut number, carry);
    number
}

#[inline(never)]
fn add(one: &Number, other: &Number) -> Number {
    let mut sum = *one;
    let carry = limbs::add(&mut sum, other, u32::MAX);
    fold(&mut sum, carry);
    sum
}

#[inline(never)]
fn subtract(one: &Number, other: &Number) -> Number {
    let mut difference = *one;
    let borrow = limbs::subtract(&mut difference, other, u32::MAX);
    // A difference that borrows a second time is below 38 and so borrows from its lowest limb alone.
    let correction = [38, 0, 0, 0, 0, 0, 0, 0];
    let borrow = limbs::subtract(&mut difference, &correction, borrow.wrapping_neg());
    difference[0] = difference[0].wrapping_sub(38 & borrow.wrapping_neg());
    difference
}

/// Adds `carry`, below 2^18, times 2^256.
fn fold(number: &mut Number, carry: u32) {
    let correction = [38 * carry, 0, 0, 0, 0, 0, 0, 0];
    let carry = limbs::add(number, &correction, u32::MAX);
    // A sum that carries a second time leaves a number below 2^24.
    number[0] += 38 & carry.wrapping_neg();
}

/// `number` to the power of 2^255 - 21: its inverse.
fn invert(number: &Number) -> Number {
    // To the powers of 2^n - 1, for n of 1, 5, 10, 20, 40, 50, 100, 200 and 250.
    let mut five = *number;
    for _ in 1..5 {
        five = multiply(&square(&five), number);
    }
    let ten = raise(&five, 5, &five);
    let twenty = raise(&ten, 10, &ten);
    let fifty = raise(&raise(&twenty, 20, &twenty), 10, &ten);
    let hundred = raise(&fifty, 50, &fifty);
    let most = raise(&raise(&hundred, 100, &hundred), 50, &fifty);
    // The last five bits are 01011.
    let eleven = multiply(&square(&multiply(&square(&square(number)), number)), number);
    raise(&most, 5, &eleven)
}

/// Squares `number` so many times and multiplies it by `factor`.
#[inline(never)]
fn raise(number: &Number, squarings: usize, factor: &Number) -> Number {
    let mut power = *number;
    for _ in 0..squarings {
        power = square(&power);
    }
    multiply(&power, factor)
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
