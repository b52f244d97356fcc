//! RSA signatures, verified (RFC 8017 §8.1.2, §8.2.2): a public operation, so its time may vary.
//!
//! Numbers are little-endian limbs of 32 bits; a power is taken by Montgomery multiplication (CIOS:
//! Koç, Acar, Kaliski 1996), which needs no division and four numbers of memory.

use crate::{DIGEST_BYTES_MAX, Hash, HashAlgorithm, SecurityError};

const BITS_MIN: usize = 2048;
const BITS_MAX: usize = 4096;
const BYTES_MAX: usize = BITS_MAX / 8;
const LIMBS_MAX: usize = BITS_MAX / 32;

type Number = [u32; LIMBS_MAX];

/// Checks an RSASSA-PKCS1-v1_5 signature of what has `digest`.
pub(super) fn verify_pkcs1(
    modulus: &[u8],
    exponent: u32,
    hash: HashAlgorithm,
    digest: &[u8],
    signature: &[u8],
) -> Result<(), SecurityError> {
    let mut encoded = [0; BYTES_MAX];
    let encoded = public_power(modulus, exponent, signature, &mut encoded)?;
    let prefix = digest_info(hash);
    let padding = encoded.len() - prefix.len() - digest.len();
    let (head, tail) = encoded.split_at(padding);
    let (info, found) = tail.split_at(prefix.len());
    let [0, 1, ones @ .., 0] = head else { return Err(SecurityError::BadSignature) };
    if ones.iter().all(|byte| *byte == 0xff) && info == prefix && found == digest {
        Ok(())
    } else {
        Err(SecurityError::BadSignature)
    }
}

/// Checks an RSASSA-PSS signature of what has `digest`, with a salt as long as that.
pub(super) fn verify_pss(
    modulus: &[u8],
    exponent: u32,
    hash: HashAlgorithm,
    digest: &[u8],
    signature: &[u8],
) -> Result<(), SecurityError> {
    let mut encoded = [0; BYTES_MAX];
    let encoded = public_power(modulus, exponent, signature, &mut encoded)?;
    // RFC 8017 §9.1.2 works on one bit less than the modulus has.
    let bits = bit_length(modulus) - 1;
    let encoded = if bits.is_multiple_of(8) {
        match encoded.split_first_mut() {
            Some((0, rest)) => rest,
            _ => return Err(SecurityError::BadSignature),
        }
    } else {
        encoded
    };
    let top_mask = 0xffu8 >> (8 * encoded.len() - bits);
    let digest_bytes = digest.len();
    let (rest, trailer) = encoded.split_at_mut(encoded.len() - 1);
    let (masked, mask_seed) = rest.split_at_mut(rest.len() - digest_bytes);
    if trailer != [0xbc] || masked[0] & !top_mask != 0 {
        return Err(SecurityError::BadSignature);
    }
    unmask(hash, mask_seed, masked);
    masked[0] &= top_mask;
    let (padding, salt) = masked.split_at(masked.len() - digest_bytes);
    let Some((1, zeros)) = padding.split_last() else { return Err(SecurityError::BadSignature) };
    let expected = hash.digest(&[&[0; 8], digest, salt]);
    if zeros.iter().all(|byte| *byte == 0) && *expected == *mask_seed {
        Ok(())
    } else {
        Err(SecurityError::BadSignature)
    }
}

/// XORs MGF1 of `seed` (RFC 8017 §B.2.1) over `masked`.
fn unmask(hash: HashAlgorithm, seed: &[u8], masked: &mut [u8]) {
    debug_assert!(seed.len() <= DIGEST_BYTES_MAX);
    for (counter, chunk) in masked.chunks_mut(hash.digest_bytes()).enumerate() {
        let mut block = Hash::new(hash);
        block.update(seed);
        block.update(&(counter as u32).to_be_bytes());
        chunk.iter_mut().zip(&*block.finish()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// What stands before the digest in a PKCS#1 signature: the DER of `DigestInfo` (RFC 8017 §9.2).
const fn digest_info(hash: HashAlgorithm) -> &'static [u8] {
    match hash {
        HashAlgorithm::Sha256 => {
            b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
        }
        #[cfg(feature = "sha512")]
        HashAlgorithm::Sha384 => {
            b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x05\x00\x04\x30"
        }
        #[cfg(feature = "sha512")]
        HashAlgorithm::Sha512 => {
            b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40"
        }
    }
}

fn bit_length(modulus: &[u8]) -> usize {
    match modulus.first() {
        Some(first) => 8 * modulus.len() - first.leading_zeros() as usize,
        None => 0,
    }
}

/// `signature` to the power of `exponent` modulo `modulus`, as long as the modulus, in `into`.
fn public_power<'a>(
    modulus: &[u8],
    exponent: u32,
    signature: &[u8],
    into: &'a mut [u8; BYTES_MAX],
) -> Result<&'a mut [u8], SecurityError> {
    let bits = bit_length(modulus);
    let is_odd = modulus.last().is_some_and(|last| last & 1 == 1);
    if !(BITS_MIN..=BITS_MAX).contains(&bits) || modulus[0] == 0 || !is_odd {
        return Err(SecurityError::InvalidPublicKey);
    }
    if exponent < 3 || exponent & 1 == 0 {
        return Err(SecurityError::InvalidPublicKey);
    }
    if signature.len() != modulus.len() || signature >= modulus {
        return Err(SecurityError::BadSignature);
    }
    let field = Montgomery::new(modulus, bits);
    let base = from_bytes(signature);
    let mut power = field.power(&base, exponent);
    let bytes = &mut into[..modulus.len()];
    for (chunk, limb) in bytes.rchunks_mut(4).zip(power.iter_mut()) {
        let limb = limb.to_be_bytes();
        chunk.copy_from_slice(&limb[4 - chunk.len()..]);
    }
    Ok(bytes)
}

fn from_bytes(bytes: &[u8]) -> Number {
    let mut number = [0; LIMBS_MAX];
    for (limb, chunk) in number.iter_mut().zip(bytes.rchunks(4)) {
        *limb = chunk.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    }
    number
}

/// Arithmetic modulo an odd number, in Montgomery's form: `x` stands as `x · 2^(32 · limbs)`.
struct Montgomery {
    modulus: Number,
    limbs: usize,
    /// The negated inverse of the modulus modulo 2^32.
    inverse: u32,
    /// Two to the power of its bits: what [`Self::one`] begins with.
    bits: usize,
}

impl Montgomery {
    fn new(modulus: &[u8], bits: usize) -> Self {
        let modulus = from_bytes(modulus);
        // Newton's iteration doubles the bits that are right; an odd number is its own inverse
        // modulo 8.
        let mut inverse = modulus[0];
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        Self { modulus, limbs: bits.div_ceil(32), inverse: inverse.wrapping_neg(), bits }
    }

    /// `base` to the power of `exponent`, neither in Montgomery's form.
    fn power(&self, base: &Number, exponent: u32) -> Number {
        let to_form = self.square_of_radix();
        let mut form = [0; LIMBS_MAX];
        self.multiply(base, &to_form, &mut form);
        let (mut power, mut next) = (form, [0; LIMBS_MAX]);
        let top = 31 - exponent.leading_zeros();
        for bit in (1..top).rev() {
            self.multiply(&power, &power, &mut next);
            core::mem::swap(&mut power, &mut next);
            if exponent >> bit & 1 == 1 {
                self.multiply(&power, &form, &mut next);
                core::mem::swap(&mut power, &mut next);
            }
        }
        self.multiply(&power, &power, &mut next);
        // The exponent is odd: its last multiplication, by the base itself, also leaves the form.
        self.multiply(&next, base, &mut power);
        power
    }

    /// 2^(64 · limbs): multiplying by it enters Montgomery's form.
    fn square_of_radix(&self) -> Number {
        let mut number = self.one();
        // 2^doublings in Montgomery's form, squared until it is 2^(32 · limbs).
        let squarings = (32 * self.limbs).trailing_zeros();
        for _ in 0..(32 * self.limbs) >> squarings {
            self.double(&mut number);
        }
        let mut next = [0; LIMBS_MAX];
        for _ in 0..squarings {
            self.multiply(&number, &number, &mut next);
            core::mem::swap(&mut number, &mut next);
        }
        number
    }

    /// One in Montgomery's form: 2^(32 · limbs) modulo the modulus.
    fn one(&self) -> Number {
        // 2^bits less the modulus, which has that many bits, is below it.
        let mut number = [0; LIMBS_MAX];
        let mut carry = 1;
        for (limb, modulus) in number.iter_mut().zip(&self.modulus[..self.limbs]) {
            let sum = u64::from(!modulus) + carry;
            *limb = sum as u32;
            carry = sum >> 32;
        }
        if !self.bits.is_multiple_of(32) {
            number[self.limbs - 1] &= (1 << (self.bits % 32)) - 1;
        }
        for _ in self.bits..32 * self.limbs {
            self.double(&mut number);
        }
        number
    }

    fn double(&self, number: &mut Number) {
        let mut carry = 0;
        for limb in &mut number[..self.limbs] {
            let doubled = *limb << 1 | carry;
            carry = *limb >> 31;
            *limb = doubled;
        }
        self.reduce_once(number, carry);
    }

    /// `one · other · 2^-(32 · limbs)` modulo the modulus, in `into`.
    fn multiply(&self, one: &Number, other: &Number, into: &mut Number) {
        let limbs = self.limbs;
        let (other, modulus) = (&other[..limbs], &self.modulus[..limbs]);
        let into_limbs = &mut into[..limbs];
        into_limbs.fill(0);
        let mut top = 0u32;
        for factor in &one[..limbs] {
            let first = u64::from(*factor) * u64::from(other[0]) + u64::from(into_limbs[0]);
            let quotient = (first as u32).wrapping_mul(self.inverse);
            let reduced = u64::from(quotient) * u64::from(modulus[0]) + u64::from(first as u32);
            let (mut carry, mut reduction) = (first >> 32, reduced >> 32);
            for at in 1..limbs {
                let sum =
                    u64::from(*factor) * u64::from(other[at]) + u64::from(into_limbs[at]) + carry;
                carry = sum >> 32;
                let sum = u64::from(quotient) * u64::from(modulus[at])
                    + u64::from(sum as u32)
                    + reduction;
                reduction = sum >> 32;
                into_limbs[at - 1] = sum as u32;
            }
            let sum = u64::from(top) + carry + reduction;
            into_limbs[limbs - 1] = sum as u32;
            top = (sum >> 32) as u32;
        }
        self.reduce_once(into, top);
    }

    /// Subtracts the modulus once from `number`, with `top` above it, if it is as large.
    fn reduce_once(&self, number: &mut Number, top: u32) {
        let modulus = &self.modulus[..self.limbs];
        let number = &mut number[..self.limbs];
        if top == 0 && number.iter().rev().lt(modulus.iter().rev()) {
            return;
        }
        let mut borrow = false;
        for (limb, modulus) in number.iter_mut().zip(modulus) {
            let (difference, first) = limb.overflowing_sub(*modulus);
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
    }
}
