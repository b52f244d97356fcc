//! RSA's private operation, by the Chinese remainder theorem (RFC 8017 §5.1.2): two powers modulo numbers of half the
//! length.

use zeroize::Zeroize;

use crate::limbs::{self, from_bytes};
use crate::{Invalid, Montgomery};

/// The entries of a table of powers, one for each value of a window of the exponent.
const ENTRIES: usize = 16;
const WINDOW_BITS: usize = 4;
/// How many bytes of an exponent's prime a limb holds.
const LIMB_BYTES: usize = 4;

/// A private key, each number big-endian without leading zeros; its primes are of one length.
#[derive(Clone, Copy)]
pub struct RsaNumbers<'a> {
    /// One prime.
    pub p: &'a [u8],
    /// The other.
    pub q: &'a [u8],
    /// The private exponent modulo p - 1.
    pub p_exponent: &'a [u8],
    /// The private exponent modulo q - 1.
    pub q_exponent: &'a [u8],
    /// The inverse of q modulo p.
    pub q_inverse: &'a [u8],
}

impl RsaNumbers<'_> {
    /// As many limbs of work as [`Self::power`] needs for a modulus of `bits`.
    pub const fn work_limbs(bits: usize) -> usize {
        (ENTRIES + 7) * bits / 2 / 32
    }

    /// The private power of `number`, which is below the product of the primes and has twice their limbs, in its
    /// place. The time depends on the lengths alone. `work` has [`Self::work_limbs`], and is wiped.
    ///
    /// The result must be checked by the public power: that of a key that isn't one is any number, and that of one that
    /// was disturbed tells the primes.
    ///
    /// # Errors
    /// [`Invalid`] if the primes are even, or of another length than half of `number`, all bits counted.
    pub fn power(&self, number: &mut [u32], work: &mut [u32]) -> Result<(), Invalid> {
        let limbs = number.len() / 2;
        let is_prime = |prime: &[u8]| {
            let ends = prime.first().is_some_and(|it| it & 0x80 != 0)
                && prime.last().is_some_and(|it| it & 1 == 1);
            ends && prime.len() == limbs * LIMB_BYTES
        };
        let numbers = [self.p_exponent, self.q_exponent, self.q_inverse];
        let are_short = numbers.iter().all(|it| it.len() <= limbs * LIMB_BYTES);
        let is_room = limbs > 0 && work.len() >= (ENTRIES + 7) * limbs;
        if !is_prime(self.p) || !is_prime(self.q) || !are_short || !is_room {
            return Err(Invalid);
        }
        self.combine(number, work, limbs);
        work.zeroize();
        Ok(())
    }

    fn combine(&self, number: &mut [u32], work: &mut [u32], limbs: usize) {
        let (one, rest) = work.split_at_mut(limbs);
        let (other, rest) = rest.split_at_mut(limbs);
        let (prime, rest) = rest.split_at_mut(limbs);
        let (exponent, rest) = rest.split_at_mut(limbs);
        // Modulo q, then modulo p.
        from_bytes(self.q, prime);
        from_bytes(self.q_exponent, exponent);
        power(prime, exponent, number, other, rest);
        from_bytes(self.p, prime);
        from_bytes(self.p_exponent, exponent);
        power(prime, exponent, number, one, rest);
        // How often q fits into the difference, modulo p.
        let modulo = Montgomery::new(prime);
        let (radix, rest) = rest.split_at_mut(limbs);
        let (residue, rest) = rest.split_at_mut(limbs);
        let product = &mut rest[..2 * limbs];
        modulo.square_of_full_radix(radix, product);
        product[..limbs].copy_from_slice(other);
        product[limbs..].fill(0);
        modulo.reduce(residue, product);
        modulo.multiply(residue, radix, product);
        let borrow = limbs::subtract(one, residue, u32::MAX);
        limbs::add(one, modulo.modulus(), borrow.wrapping_neg());
        from_bytes(self.q_inverse, residue);
        modulo.multiply(residue, radix, product);
        modulo.multiply(one, residue, product);
        // So often, and what is left.
        from_bytes(self.q, residue);
        limbs::multiply(number, residue, one);
        let (low, high) = number.split_at_mut(limbs);
        let mut carry = limbs::add(low, other, u32::MAX);
        for limb in high {
            let (sum, overflow) = limb.overflowing_add(carry);
            *limb = sum;
            carry = u32::from(overflow);
        }
    }
}

/// `number`, which has twice the limbs, to the power of `exponent` modulo `prime`, which has all bits, to `power`. No
/// branch and no address depends on the exponent.
fn power(prime: &[u32], exponent: &[u32], number: &[u32], power: &mut [u32], work: &mut [u32]) {
    let limbs = prime.len();
    let modulo = Montgomery::new(prime);
    let (product, rest) = work.split_at_mut(2 * limbs);
    let (entry, table) = rest.split_at_mut(limbs);
    let table = &mut table[..ENTRIES * limbs];
    // The square of the radix stands at the place of the last power until the others are made.
    modulo.square_of_full_radix(entry, product);
    // 1 and the number, in Montgomery's form.
    table[..limbs].fill(0);
    table[0] = 1;
    modulo.multiply(&mut table[..limbs], entry, product);
    product.copy_from_slice(number);
    modulo.reduce(power, product);
    modulo.multiply(power, entry, product);
    modulo.multiply(power, entry, product);
    for at in 1..ENTRIES {
        let (made, place) = table.split_at_mut(at * limbs);
        let place = &mut place[..limbs];
        place.copy_from_slice(&made[(at - 1) * limbs..]);
        modulo.multiply(place, power, product);
    }
    power.copy_from_slice(&table[..limbs]);
    for at in (0..32 * limbs / WINDOW_BITS).rev() {
        for _ in 0..WINDOW_BITS {
            modulo.square(power, product);
        }
        let digit =
            exponent[at * WINDOW_BITS / 32] >> (at * WINDOW_BITS % 32) & (ENTRIES as u32 - 1);
        look_up(table, digit, entry);
        modulo.multiply(power, entry, product);
    }
    modulo.leave(power, product);
}

/// The entry `digit` of `table` to `entry`; all entries are read.
fn look_up(table: &[u32], digit: u32, entry: &mut [u32]) {
    entry.fill(0);
    for (at, candidate) in table.chunks_exact(entry.len()).enumerate() {
        // All ones where both are the same: only then does the difference less one borrow.
        let difference = core::hint::black_box(digit ^ at as u32);
        let mask = (difference.wrapping_sub(1) & !difference) >> 31;
        let mask = core::hint::black_box(mask).wrapping_neg();
        for (limb, other) in entry.iter_mut().zip(candidate) {
            *limb |= other & mask;
        }
    }
}
