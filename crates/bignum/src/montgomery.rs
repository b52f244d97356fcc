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

    pub(crate) fn modulus(&self) -> &'a [u32] {
        self.modulus
    }

    fn length(&self) -> usize {
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
    pub(crate) fn reduce(&self, number: &mut [u32], work: &mut [u32]) {
        let length = self.length();
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
        let top = self.modulus[self.length() - 1];
        self.square_of_radix_over(32 * self.length() - top.leading_zeros() as usize, number, work);
    }

    /// The same for a modulus that has all bits of its limbs, and may be secret.
    pub(crate) fn square_of_full_radix(&self, number: &mut [u32], work: &mut [u32]) {
        self.square_of_radix_over(32 * self.length(), number, work);
    }

    /// The same for a modulus of `bits`.
    fn square_of_radix_over(&self, bits: usize, number: &mut [u32], work: &mut [u32]) {
        let length = self.length();
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

    /// `base` to the power of `exponent`, neither in Montgomery's form, to `power`. `work` has twice the limbs;
    /// `base` is left in Montgomery's form.
    ///
    /// # Panics
    /// If the exponent is zero.
    pub fn power(&self, power: &mut [u32], base: &mut [u32], exponent: u32, work: &mut [u32]) {
        self.square_of_radix(power, work);
        self.multiply(base, power, work);
        power.copy_from_slice(base);
        for bit in (0..exponent.ilog2()).rev() {
            self.square(power, work);
            if exponent >> bit & 1 == 1 {
                self.multiply(power, base, work);
            }
        }
        self.leave(power, work);
    }

    /// Takes `number` out of Montgomery's form; `work` has twice the limbs.
    pub(crate) fn leave(&self, number: &mut [u32], work: &mut [u32]) {
        let (low, high) = work.split_at_mut(self.length());
        low.copy_from_slice(number);
        high.fill(0);
        self.reduce(number, work);
    }

    /// The inverse of `number`, which is not zero, modulo the modulus, a prime; neither is in Montgomery's form.
    /// The time depends on the number: it must be public. `other`, `one` and `zero` have as many limbs, and are
    /// overwritten.
    pub fn invert_public(
        &self,
        number: &mut [u32],
        other: &mut [u32],
        one: &mut [u32],
        zero: &mut [u32],
    ) {
        // All the way, `number` is `one` and `other` is `zero` times the number as it came, modulo the modulus, until
        // `number` is 0 and `other` their greatest common divisor, 1.
        other.copy_from_slice(self.modulus);
        one.fill(0);
        one[0] = 1;
        zero.fill(0);
        while number.iter().any(|limb| *limb != 0) {
            if number[0] & 1 == 0 {
                halve(number, 0);
                let odd = (one[0] & 1).wrapping_neg();
                let top = limbs::add(one, self.modulus, odd);
                halve(one, top);
                continue;
            }
            if number.iter().rev().lt(other.iter().rev()) {
                number.swap_with_slice(other);
                one.swap_with_slice(zero);
            }
            limbs::subtract(number, other, u32::MAX);
            let borrow = limbs::subtract(one, zero, u32::MAX);
            limbs::add(one, self.modulus, borrow.wrapping_neg());
        }
        number.copy_from_slice(zero);
    }

    /// The inverse of `number` if the modulus is a prime; both in Montgomery's form. `base` and `work`
    /// have one and two times the limbs.
    pub fn invert(&self, number: &mut [u32], base: &mut [u32], work: &mut [u32]) {
        base.copy_from_slice(number);
        let length = self.length();
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

/// Divides `number`, with `top` above it, by two.
#[inline(never)]
fn halve(number: &mut [u32], mut top: u32) {
    for limb in number.iter_mut().rev() {
        (*limb, top) = (*limb >> 1 | top << 31, *limb & 1);
    }
}
