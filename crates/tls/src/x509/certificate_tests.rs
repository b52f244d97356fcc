//! Encodings of signature algorithms that verifiers are obliged to take, and others.

extern crate std;

use std::vec::Vec;

use super::*;

/// A value with `tag` and the `parts` as its content.
fn value<const N: usize>(tag: u8, parts: [&[u8]; N]) -> Vec<u8> {
    let content = parts.concat();
    [&[tag, content.len() as u8], &content[..]].concat()
}

const NULL_VALUE: &[u8] = &[NULL, 0];

fn rsa(number: u8) -> Vec<u8> {
    value(OBJECT_IDENTIFIER, [&RSA_ENCRYPTION[..8], &[number]])
}

#[test]
fn parameters_of_rsa_signatures_are_null_or_absent() {
    for parameters in [NULL_VALUE, &[]] {
        let algorithm = value(SEQUENCE, [&rsa(11), parameters]);
        let expected = SignatureAlgorithm::RsaPkcs1(HashAlgorithm::Sha256);
        assert_eq!(signature_algorithm(&algorithm), Ok(expected));
    }
    let algorithm = value(SEQUENCE, [&rsa(11), NULL_VALUE, NULL_VALUE]);
    assert!(signature_algorithm(&algorithm).is_err());
}

/// RFC 8446 §4.4.2.4.
#[test]
fn signature_over_md5_or_sha_1_is_a_bad_certificate() {
    let ecdsa_with_sha1 = value(OBJECT_IDENTIFIER, [&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]]);
    // md5WithRSAEncryption and sha1WithRSAEncryption.
    let broken = [
        value(SEQUENCE, [&rsa(4), NULL_VALUE]),
        value(SEQUENCE, [&rsa(5), NULL_VALUE]),
        value(SEQUENCE, [&ecdsa_with_sha1]),
    ];
    for algorithm in broken {
        assert_eq!(signature_algorithm(&algorithm), Err(CertificateError::BrokenHash));
    }
    assert_eq!(CertificateError::BrokenHash.alert(), crate::Alert::BAD_CERTIFICATE);
    // SHA-224 is only unknown.
    let unknown = value(SEQUENCE, [&rsa(14), NULL_VALUE]);
    let unsupported = CertificateError::UnsupportedSignatureAlgorithm;
    assert_eq!(signature_algorithm(&unknown), Err(unsupported));
}

#[test]
fn parameters_of_pss_have_their_trailer_or_not_and_null_or_not() {
    let algorithm = |null: &[u8], salt: u8, trailer: &[u8]| {
        let sha256 = [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
        let hash = value(SEQUENCE, [&value(OBJECT_IDENTIFIER, [&sha256]), null]);
        let mask = value(SEQUENCE, [&rsa(8), &hash]);
        let parameters = [
            &value(explicit(0), [&hash])[..],
            &value(explicit(1), [&mask]),
            &value(explicit(2), [&[INTEGER, 1, salt]]),
            trailer,
        ];
        let parameters = value(SEQUENCE, parameters);
        signature_algorithm(&value(SEQUENCE, [&rsa(10), &parameters]))
    };
    let expected = Ok(SignatureAlgorithm::RsaPss(HashAlgorithm::Sha256));
    let trailer = value(explicit(3), [&[INTEGER, 1, 1]]);
    for null in [NULL_VALUE, &[]] {
        assert_eq!(algorithm(null, 32, &[]), expected);
        assert_eq!(algorithm(null, 32, &trailer), expected);
    }
    assert!(algorithm(NULL_VALUE, 20, &[]).is_err());
    let another = value(explicit(3), [&[INTEGER, 1, 2]]);
    assert!(algorithm(NULL_VALUE, 32, &another).is_err());
    // A length in two bytes where one does is no DER (RFC 8446 §4.2.3).
    let long = [explicit(3), 0x81, 3, INTEGER, 1, 1];
    assert!(algorithm(NULL_VALUE, 32, &long).is_err());
}

/// RFC 8446 §4.2.3: `rsa_pss_rsae` is by keys that are named rsaEncryption; those named RSASSA-PSS aren't spoken.
#[test]
fn rsa_key_has_the_name_rsa_encryption() {
    let key = |name: u8| {
        let modulus = value(INTEGER, [&[0x7f; 100]]);
        let numbers = value(SEQUENCE, [&modulus, &[INTEGER, 1, 3]]);
        let kind = value(SEQUENCE, [&rsa(name), NULL_VALUE]);
        value(SEQUENCE, [&kind, &value(BIT_STRING, [&[0], &numbers])])
    };
    assert!(matches!(parse_public_key(&key(1)), Ok(PublicKeyRef::Rsa { exponent: 3, .. })));
    assert_eq!(parse_public_key(&key(10)).err(), Some(CertificateError::UnsupportedKey));
}
