//! RSASSA-PSS signatures, made (RFC 8017 §8.1.1): no branch and no address depends on the key.

use tenure_bignum::RsaNumbers;
use tenure_bignum::limbs::from_bytes;
use zeroize::{Zeroize, Zeroizing};

use super::{BITS_MAX, BITS_MIN, Claim, Padding, bit_length, verify};
use crate::{Hash, HashAlgorithm, RsaPrivateKey, SecurityError};

/// The only hash that keys sign with here.
const HASH: HashAlgorithm = HashAlgorithm::Sha256;
/// The length of its digest.
const DIGEST_BYTES: usize = 32;
/// The length of the salt (RFC 8446 §4.2.3).
pub(in super::super) const SALT_BYTES: usize = DIGEST_BYTES;

/// Signs the message that has `digest`, with `salt`, and returns the length of the signature.
pub(in super::super) fn sign(
    key: &RsaPrivateKey<'_>,
    digest: &[u8],
    salt: &[u8; SALT_BYTES],
    signature: &mut [u8],
) -> Result<usize, SecurityError> {
    let bytes = key.modulus.len();
    let bits = bit_length(key.modulus);
    // Primes of a length that fills limbs, as all keys of these sizes have.
    if !(BITS_MIN..=BITS_MAX).contains(&bits) || !bits.is_multiple_of(64) {
        return Err(SecurityError::InvalidSecretKey);
    }
    let signature = signature.get_mut(..bytes).ok_or(SecurityError::BufferTooSmall)?;
    encode(digest, salt, signature);
    let made = if bytes <= BITS_MIN / 8 {
        with_room::<{ RsaNumbers::work_limbs(BITS_MIN) }, { BITS_MIN / 32 }>(key, signature)
    } else {
        with_room::<{ RsaNumbers::work_limbs(BITS_MAX) }, { BITS_MAX / 32 }>(key, signature)
    };
    // A power that was disturbed would tell the primes to whoever sees it.
    let claim = Claim {
        padding: Padding::Pss,
        modulus: key.modulus,
        exponent: key.exponent,
        hash: HASH,
        digest,
        signature,
    };
    if made.and_then(|()| verify(&claim)).is_err() {
        signature.zeroize();
        return Err(SecurityError::InvalidSecretKey);
    }
    Ok(bytes)
}

/// EMSA-PSS (RFC 8017 §9.1.1) for a modulus of whole bytes: its top bit is left free.
fn encode(digest: &[u8], salt: &[u8; SALT_BYTES], encoded: &mut [u8]) {
    let seed = HASH.digest(&[&[0; 8], digest, salt]);
    let Some((last, front)) = encoded.split_last_mut() else { return };
    *last = 0xbc;
    let (masked, place) = front.split_at_mut(front.len() - DIGEST_BYTES);
    place.copy_from_slice(&seed);
    let padding = masked.len() - DIGEST_BYTES - 1;
    masked[..padding].fill(0);
    masked[padding] = 1;
    masked[padding + 1..].copy_from_slice(salt);
    for (counter, chunk) in masked.chunks_mut(DIGEST_BYTES).enumerate() {
        let mut block = Hash::new(HASH);
        block.update(&seed);
        block.update(&(counter as u32).to_be_bytes());
        chunk.iter_mut().zip(block.finish().iter()).for_each(|(byte, mask)| *byte ^= mask);
    }
    masked[0] &= 0x7f;
}

/// The private power of `signature` in its place, in `WORK` limbs and twice those of the modulus. A function for each
/// size, so that short keys take a short stack.
#[inline(never)]
fn with_room<const WORK: usize, const LIMBS: usize>(
    key: &RsaPrivateKey<'_>,
    signature: &mut [u8],
) -> Result<(), SecurityError> {
    let limbs = signature.len() / 4;
    let mut room = Zeroizing::new([0; WORK]);
    let mut number = [0; LIMBS];
    let number = &mut number[..limbs];
    from_bytes(signature, number);
    let numbers = RsaNumbers {
        p: key.p,
        q: key.q,
        p_exponent: key.p_exponent,
        q_exponent: key.q_exponent,
        q_inverse: key.q_inverse,
    };
    numbers.power(number, &mut *room).map_err(|_| SecurityError::InvalidSecretKey)?;
    for (chunk, limb) in signature.rchunks_mut(4).zip(number.iter()) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
    number.zeroize();
    Ok(())
}
