//! RSA signatures, verified (RFC 8017 §8.1.2, §8.2.2): a public operation, so its time may vary.

#[cfg(feature = "rsa-signing")]
pub(super) mod sign;

use tenure_bignum::Montgomery;
use tenure_bignum::limbs::from_bytes;

use crate::{Hash, HashAlgorithm, HashValue, SecurityError};

const BITS_MIN: usize = 2048;
const BITS_MAX: usize = 4096;
/// The numbers that a power takes, each as long as the modulus: see [`public_power`].
const NUMBERS: usize = 5;

/// How a digest is padded.
#[derive(Clone, Copy)]
pub(super) enum Padding {
    /// RSASSA-PKCS1-v1_5.
    Pkcs1,
    /// RSASSA-PSS, with a salt as long as the digest.
    Pss,
}

/// A signature with what it is checked against.
pub(super) struct Claim<'a> {
    pub(super) padding: Padding,
    pub(super) modulus: &'a [u8],
    pub(super) exponent: u32,
    pub(super) hash: HashAlgorithm,
    pub(super) digest: &'a [u8],
    pub(super) signature: &'a [u8],
}

/// Checks the signature.
pub(super) fn verify(claim: &Claim<'_>) -> Result<(), SecurityError> {
    if claim.modulus.len() <= BITS_MIN / 8 {
        with_room::<{ NUMBERS * BITS_MIN / 32 }>(claim)
    } else {
        with_room::<{ NUMBERS * BITS_MAX / 32 }>(claim)
    }
}

/// A function for each size, so that short keys take a short stack.
#[inline(never)]
fn with_room<const LIMBS: usize>(claim: &Claim<'_>) -> Result<(), SecurityError> {
    verify_in(&mut [0; LIMBS], claim)
}

fn verify_in(room: &mut [u32], claim: &Claim<'_>) -> Result<(), SecurityError> {
    let encoded = Encoded {
        limbs: public_power(room, claim.modulus, claim.exponent, claim.signature)?,
        bytes: claim.modulus.len(),
    };
    let is_right = match claim.padding {
        Padding::Pkcs1 => is_pkcs1(&encoded, claim.hash, claim.digest),
        Padding::Pss => is_pss(&encoded, bit_length(claim.modulus), claim.hash, claim.digest),
    };
    if is_right { Ok(()) } else { Err(SecurityError::BadSignature) }
}

/// A number as bytes, most significant first.
struct Encoded<'a> {
    limbs: &'a [u32],
    bytes: usize,
}

impl Encoded<'_> {
    fn byte(&self, at: usize) -> u8 {
        let place = self.bytes - 1 - at;
        (self.limbs[place / 4] >> (8 * (place % 4))) as u8
    }
}

/// Whether `encoded` is EMSA-PKCS1-v1_5 of `digest` (RFC 8017 §9.2).
fn is_pkcs1(encoded: &Encoded<'_>, hash: HashAlgorithm, digest: &[u8]) -> bool {
    let prefix = digest_info(hash);
    let tail = prefix.iter().chain(digest);
    let padding = encoded.bytes - prefix.len() - digest.len();
    let head = (0..padding).map(|at| match at {
        0 => 0,
        1 => 1,
        _ if at == padding - 1 => 0,
        _ => 0xff,
    });
    head.chain(tail.copied()).enumerate().all(|(at, byte)| encoded.byte(at) == byte)
}

/// Whether `encoded` is EMSA-PSS of `digest` (RFC 8017 §9.1.2), which works on one bit less than the modulus
/// has.
fn is_pss(encoded: &Encoded<'_>, modulus_bits: usize, hash: HashAlgorithm, digest: &[u8]) -> bool {
    let bits = modulus_bits - 1;
    let start = encoded.bytes - bits.div_ceil(8);
    let top_mask = 0xffu8 >> (8 * bits.div_ceil(8) - bits);
    let seed_start = encoded.bytes - 1 - digest.len();
    let salt_start = seed_start - digest.len();
    let is_framed = (0..start).all(|at| encoded.byte(at) == 0)
        && encoded.byte(start) & !top_mask == 0
        && encoded.byte(encoded.bytes - 1) == 0xbc;
    let mut seed = HashValue::zeros(hash);
    seed.iter_mut().zip(seed_start..).for_each(|(byte, at)| *byte = encoded.byte(at));
    let (mut salt, mut is_padded) = (HashValue::zeros(hash), true);
    // MGF1 of the seed (RFC 8017 §B.2.1) lies over the padding and the salt.
    for (counter, at) in (start..seed_start).step_by(digest.len()).enumerate() {
        let mut block = Hash::new(hash);
        block.update(&seed);
        block.update(&(counter as u32).to_be_bytes());
        for (mask, at) in block.finish().iter().zip(at..seed_start) {
            let mut byte = encoded.byte(at) ^ mask;
            if at == start {
                byte &= top_mask;
            }
            match at.checked_sub(salt_start) {
                Some(place) => salt[place] = byte,
                None => is_padded &= byte == u8::from(at == salt_start - 1),
            }
        }
    }
    let expected = hash.digest(&[&[0; 8], digest, &salt]);
    is_framed && is_padded && *expected == *seed
}

/// The prefix of the digest in a PKCS#1 signature: the DER of `DigestInfo` (RFC 8017 §9.2).
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

/// `signature` to the power of `exponent` modulo `modulus`, in limbs at the front of `room`, which holds
/// [`NUMBERS`] as long.
fn public_power<'a>(
    room: &'a mut [u32],
    modulus: &[u8],
    exponent: u32,
    signature: &[u8],
) -> Result<&'a [u32], SecurityError> {
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
    let limbs = bits.div_ceil(32);
    let (power, rest) = room.split_at_mut(limbs);
    let (base, rest) = rest.split_at_mut(limbs);
    let (modulus_limbs, rest) = rest.split_at_mut(limbs);
    let work = &mut rest[..2 * limbs];
    from_bytes(modulus, modulus_limbs);
    from_bytes(signature, base);
    Montgomery::new(modulus_limbs).power(power, base, exponent, work);
    Ok(power)
}
