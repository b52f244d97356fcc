//! Arithmetic modulo any odd number in Montgomery's form, where `x` stands as `x · 2^(32 · limbs)`: the
//! orders of curves, and RSA. The time depends on the modulus, never on what is multiplied.

use crate::limbs;
/// An odd modulus; its numbers have as many limbs as it.
pub struct Montgomery<'a> {
    modulus: &'a [u32],
    /// The negated inverse of the modulus modulo 2^32.
    inverse: u32,
}

impl<'a> Montgomery<'a> {
    /// Arithmetic modulo `modulus`, which is odd and has a limb at least.
    pub fn new(modulus: &'a [u32]) -> Self {
        // Newton's iteration doubles the bits that are right; an odd number is its own inverse
        // modulo 8.
        let mut inverse = modulus[0];
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        Self { modulus, inverse: inverse.wrapping_neg() }
    }

    fn limbs(&self) -> usize {
        self.modulus.len()
    }

    /// `number · other · 2^(-32 · limbs)` to `number`; `work` has twice the limbs.
    #[inline(never)]
    pub fn multiply(&self, number: &mut [u32], other: &[u32], work: &mut [u32]) {
        limbs::multiply(work, number, other);
        self.reduce(number, work);
    }

    /// `number² · 2^(-32 · limbs)` to `number`; `work` has twice the limbs.
    #[inline(never)]
    pub fn square(&self, number: &mut [u32], work: &mut [u32]) {
        limbs::square(work, number);
        self.reduce(number, work);
    }

    /// `work · 2^(-32 · limbs)` to `number`, below the modulus if `work` is below its product with
    /// 2^(32 · limbs).
    fn reduce(&self, number: &mut [u32], work: &mut [u32]) {
        let length = self.limbs();
        let mut top = 0;
        for at in 0..length {
            let quotient = work[at].wrapping_mul(self.inverse);
            let carry = limbs::multiply_add(&mut work[at..at + length], self.modulus, quotient);
            let sum = u64::from(work[at + length]) + u64::from(carry) + u64::from(top);
            work[at + length] = sum as u32;
            top = (sum >> 32) as u32;
        }
        number.copy_from_slice(&work[length..]);
        self.reduce_once(number, top);
    }

    /// Subtracts the modulus once from `number`, with `top` above it, if it is as large.
    fn reduce_once(&self, number: &mut [u32], top: u32) {
        let borrow = limbs::subtract(number, self.modulus, u32::MAX);
        // Too much was subtracted if the borrow finds nothing above.
        limbs::add(number, self.modulus, (borrow & !top & 1).wrapping_neg());
    }

    /// `number + other`.
    pub fn add(&self, number: &mut [u32], other: &[u32]) {
        let top = limbs::add(number, other, u32::MAX);
        self.reduce_once(number, top);
    }

    /// 2^(64 · limbs), by which a product enters Montgomery's form, to `number`.
    pub fn square_of_radix(&self, number: &mut [u32], work: &mut [u32]) {
        let length = self.limbs();
        let bits = 32 * length - self.modulus[length - 1].leading_zeros() as usize;
        // 2^bits less the modulus, which has that many bits, is below it.
        number.fill(0);
        limbs::subtract(number, self.modulus, u32::MAX);
        if !bits.is_multiple_of(32) {
            number[length - 1] &= (1 << (bits % 32)) - 1;
        }
        // 2^(2 · limbs) in Montgomery's form becomes 2^(32 · limbs) by four squarings. A squaring costs as
        // much as 1.6 doublings a limb.
        const SQUARINGS: usize = 4;
        let doublings = (32 * length - bits) + ((32 * length) >> SQUARINGS);
        for _ in 0..doublings {
            let top = number[length - 1] >> 31;
            for at in (1..length).rev() {
                number[at] = number[at] << 1 | number[at - 1] >> 31;
            }
            number[0] <<= 1;
            self.reduce_once(number, top);
        }
        for _ in 0..SQUARINGS {
            self.square(number, work);
        }
    }

    /// The inverse of `number` if the modulus is a prime; both in Montgomery's form. `base` and `work`
    /// have one and two times the limbs.
    pub fn invert(&self, number: &mut [u32], base: &mut [u32], work: &mut [u32]) {
        base.copy_from_slice(number);
        let length = self.limbs();
        for bit in (0..32 * length - 1).rev() {
            self.square(number, work);
            // Less 2, borrowed where the lowest limb ends in 0 or 1.
            let limb = match bit / 32 {
                0 => self.modulus[0].wrapping_sub(2),
                at => self.modulus[at],
            };
            if limb >> (bit % 32) & 1 == 1 {
                self.multiply(number, base, work);
            }
        }
    }
}
