//! The operations beside those of RustCrypto.

use super::super::rustcrypto;
use crate::SecurityError;

#[test]
fn signatures_are_those_of_rustcrypto_which_derives_nonces_as_rfc_6979_says() {
    for seed in 1..20u8 {
        let message = &[seed; 40][..usize::from(seed)];
        let (mut ours, mut theirs) = ([0; 104], [0; 104]);
        super::p256::sign(&[seed; 32], message, &mut ours).expect("a signature");
        rustcrypto::p256::sign(&[seed; 32], message, &mut theirs).expect("a signature");
        assert_eq!(ours, theirs, "P-256, {seed}");
        super::p384::sign(&[seed; 48], message, &mut ours).expect("a signature");
        rustcrypto::p384::sign(&[seed; 48], message, &mut theirs).expect("a signature");
        assert_eq!(ours, theirs, "P-384, {seed}");
    }
}

/// Checks that both ends agree, RustCrypto at the other, and what was signed verifies.
macro_rules! check_curve {
    ($curve:ident, $scalar_bytes:literal, $hash:ident) => {{
        const PUBLIC_BYTES: usize = 1 + 2 * $scalar_bytes;
        let (mut ours, mut theirs) = ([0; PUBLIC_BYTES], [0; PUBLIC_BYTES]);
        super::$curve::public_key(&[1; $scalar_bytes], &mut ours).expect("a key");
        rustcrypto::$curve::public_key(&[2; $scalar_bytes], &mut theirs).expect("a key");
        let one = super::$curve::agree(&[1; $scalar_bytes], &theirs).expect("a point");
        let other = rustcrypto::$curve::agree(&[2; $scalar_bytes], &ours).expect("a point");
        assert_eq!(one.as_bytes(), other.as_bytes());
        let mut signature = [0; 104];
        let length = super::$curve::sign(&[1; $scalar_bytes], b"message", &mut signature);
        let digest = crate::HashAlgorithm::$hash.digest(&[b"message"]);
        let verify = |length| super::$curve::verify(&ours, &digest, &signature[..length]);
        let length = length.expect("a signature");
        assert_eq!(verify(length), Ok(()));
        assert_eq!(verify(length - 1), Err(SecurityError::BadSignature));
    }};
}

#[test]
fn both_ends_agree_with_rustcrypto_at_the_other() {
    check_curve!(p256, 32, Sha256);
    check_curve!(p384, 48, Sha384);
}

#[test]
fn keys_out_of_range_sign_nothing() {
    for key in [[0; 32], [0xff; 32]] {
        let signed = super::p256::sign(&key, b"message", &mut [0; 104]);
        assert_eq!(signed, Err(SecurityError::InvalidSecretKey));
    }
}
