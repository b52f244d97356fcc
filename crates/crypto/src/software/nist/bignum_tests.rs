use super::super::rustcrypto;
use crate::SecurityError;

#[test]
fn signatures_are_those_of_rustcrypto_which_derives_nonces_as_rfc_6979_says() {
    for seed in 1..20u8 {
        let message = &[seed; 40][..usize::from(seed)];
        let (mut ours, mut theirs) = ([0; 104], [0; 104]);
        let length = super::p256::sign(&[seed; 32], message, &mut ours).expect("a signature");
        rustcrypto::p256::sign(&[seed; 32], message, &mut theirs).expect("a signature");
        assert_eq!(ours, theirs, "P-256, {seed}");
        let mut public = [0; 65];
        super::p256::public_key(&[seed; 32], &mut public).expect("a key");
        let digest = crate::HashAlgorithm::Sha256.digest(&[message]);
        assert_eq!(super::p256::verify(&public, &digest, &ours[..length]), Ok(()));
        let cut = super::p256::verify(&public, &digest, &ours[..length - 1]);
        assert_eq!(cut, Err(SecurityError::BadSignature));
        super::p384::sign(&[seed; 48], message, &mut ours).expect("a signature");
        rustcrypto::p384::sign(&[seed; 48], message, &mut theirs).expect("a signature");
        assert_eq!(ours, theirs, "P-384, {seed}");
    }
}

#[test]
fn both_ends_agree_with_rustcrypto_at_the_other() {
    let (mut ours, mut theirs) = ([0; 65], [0; 65]);
    super::p256::public_key(&[1; 32], &mut ours).expect("a key");
    rustcrypto::p256::public_key(&[2; 32], &mut theirs).expect("a key");
    let one = super::p256::agree(&[1; 32], &theirs).expect("a point");
    let other = rustcrypto::p256::agree(&[2; 32], &ours).expect("a point");
    assert_eq!(one.as_bytes(), other.as_bytes());
}

#[test]
fn keys_out_of_range_sign_nothing() {
    for key in [[0; 32], [0xff; 32]] {
        let signed = super::p256::sign(&key, b"message", &mut [0; 104]);
        assert_eq!(signed, Err(SecurityError::InvalidSecretKey));
    }
}
