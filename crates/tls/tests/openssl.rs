//! Interoperation with OpenSSL 3, the usual one: its server and our client.

mod common;

use common::openssl::{Server, chain, openssl, root};
use common::{GROUPS, Seen, client_config, converse, now};
use tenure_crypto::{
    Group, PrivateKey, RsaPrivateKey, SIGNATURE_BYTES_MAX, Security as _, SecurityError,
};
use tenure_tls::x509::{Anchor, CertificateError, ServerName, parse_private_key};
use tenure_tls::{Client, Error, Identity, PreSharedKey, Suite, Trust};

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

fn is_page(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.received).contains("</HTML>")
}

#[test]
fn every_suite_and_group_fetches_a_page() {
    let folder = chain("ec-P-256");
    let (root, server) =
        (root(&folder), Server::start(&folder, &["-groups", "X25519:P-256:P-384"]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    for suite in Suite::ALL {
        for group in [Group::X25519, Group::Secp256r1, Group::Secp384r1] {
            let mut config = client_config(&anchors);
            let (suites, groups) = ([*suite], [group]);
            config.suites = &suites;
            config.groups = &groups;
            let mut buffer = [0; 20_000];
            let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
            let seen = converse(&mut client, server.connect(), REQUEST, is_page);
            let seen = seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
            assert!(is_page(&seen), "{suite:?} {group:?}");
            assert_eq!((client.suite(), client.group()), (Some(*suite), Some(group)));
            assert_eq!(seen.certificates, 2);
        }
    }
}

#[test]
fn every_kind_of_certificate_is_verified() {
    for kind in ["ec-P-256", "ec-P-384", "ed25519", "rsa-2048", "rsa-3072", "rsa-4096"] {
        let folder = chain(kind);
        let (root, server) = (root(&folder), Server::start(&folder, &[]));
        let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
        let config = client_config(&anchors);
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let seen = converse(&mut client, server.connect(), REQUEST, is_page);
        assert!(is_page(&seen.unwrap_or_else(|error| panic!("{kind}: {error}"))), "{kind}");
    }
}

#[test]
fn a_server_that_wants_another_group_gets_it_by_a_retry() {
    let folder = chain("ec-P-256");
    let (root, server) = (root(&folder), Server::start(&folder, &["-groups", "P-384"]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let config = client_config(&anchors);
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen));
    assert_eq!(client.group(), Some(Group::Secp384r1));
}

#[test]
fn a_small_buffer_is_kept_to_by_a_fragment_length() {
    let folder = chain("ec-P-256");
    let (root, server) = (root(&folder), Server::start(&folder, &[]));
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let mut config = client_config(&anchors);
    config.groups = &GROUPS[..1];
    let mut buffer = [0; 2_200];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && seen.received.len() > 2_200);
}

#[test]
fn a_ticket_resumes() {
    let folder = chain("ec-P-256");
    let root = root(&folder);
    let server = Server::start(&folder, &[]);
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let mut config = client_config(&anchors);
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, |seen| {
        is_page(seen) && !seen.tickets.is_empty()
    });
    drop(client);
    let ticket = seen.expect("a page").tickets.remove(0);
    config.pre_shared_key = Some(PreSharedKey {
        identity: &ticket.identity,
        key: &ticket.key,
        suite: ticket.suite,
        is_external: false,
        obfuscated_age: ticket.age_add,
        early_data_bytes_max: ticket.early_data_bytes_max,
    });
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && client.is_resumed());
    assert_eq!(seen.certificates, 0);
}

#[test]
fn an_external_key_needs_no_certificate() {
    let folder = chain("ec-P-256");
    let arguments = ["-psk", "00112233445566778899aabbccddeeff", "-psk_identity", "device 7"];
    let server = Server::start(&folder, &arguments);
    let mut config = client_config(&[]);
    config.pre_shared_key = Some(PreSharedKey {
        identity: b"device 7",
        key: b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    });
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen) && client.is_resumed());
}

#[test]
fn a_pinned_key_is_trusted_whatever_its_certificate_says() {
    let folder = chain("ec-P-256");
    let server = Server::start(&folder, &[]);
    let key = std::fs::read(folder.path().join("leaf.spki")).expect("a key");
    let mut config = client_config(&[]);
    config.server_name = ServerName::Dns("another.test");
    let mut buffer = [0; 20_000];
    for (keys, outcome) in [([&key[..]], true), ([&key[1..]], false)] {
        let mut config = config;
        config.trust = Trust::Keys(&keys);
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let seen = converse(&mut client, server.connect(), REQUEST, is_page);
        assert_eq!(seen.is_ok(), outcome);
        if let Err(error) = seen {
            assert!(matches!(error, Error::Certificate(_)));
        }
    }
}

#[test]
fn key_that_is_too_short_is_a_fault_of_the_certificate_and_not_of_the_protocol() {
    let folder = chain("rsa-1024");
    let server = Server::start(&folder, &["-cipher", "DEFAULT:@SECLEVEL=0"]);
    let key = std::fs::read(folder.path().join("leaf.spki")).expect("a key");
    let keys = [&key[..]];
    let mut config = client_config(&[]);
    config.trust = Trust::Keys(&keys);
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page);
    assert_eq!(seen.err(), Some(Error::Certificate(CertificateError::UnsupportedKey)));
}

#[test]
fn rsa_key_signs_what_openssl_verifies() {
    for bits in ["2048", "3072", "4096"] {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        openssl(at, &format!("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:{bits} -out key"));
        openssl(at, "pkey -in key -pubout -out public");
        openssl(at, "pkey -in key -outform DER -out pkcs8");
        openssl(at, "rsa -in key -traditional -outform DER -out pkcs1");
        std::fs::write(at.join("message"), b"to be signed").expect("a file");
        for form in ["pkcs8", "pkcs1"] {
            let der = std::fs::read(at.join(form)).expect("a key");
            let key = parse_private_key(&der).expect("an RSA key");
            let mut signature = [0; SIGNATURE_BYTES_MAX];
            let signed = common::security().sign(&key, b"to be signed", &mut signature);
            let length = signed.expect("a signature");
            std::fs::write(at.join("signature"), &signature[..length]).expect("a file");
            openssl(
                at,
                "dgst -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest -verify public \
                 -signature signature message",
            );
        }
    }
}

#[test]
fn rsa_key_with_a_changed_number_signs_nothing() {
    let folder = chain("rsa-2048");
    openssl(folder.path(), "rsa -in leaf.key -traditional -outform DER -out pkcs1");
    let der = std::fs::read(folder.path().join("pkcs1")).expect("a key");
    let PrivateKey::Rsa(key) = parse_private_key(&der).expect("an RSA key") else {
        panic!("another kind of key");
    };
    let sign = |key| {
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let signed = common::security().sign(&PrivateKey::Rsa(key), b"message", &mut signature);
        (signed, signature)
    };
    assert_eq!(sign(key).0, Ok(256));
    let changed = |number: &[u8]| {
        let mut number = number.to_vec();
        number[40] ^= 4;
        number
    };
    let numbers = [key.p, key.q, key.p_exponent, key.q_exponent, key.q_inverse].map(changed);
    let other = changed(key.modulus);
    for key in [
        RsaPrivateKey { p: &numbers[0], ..key },
        RsaPrivateKey { q: &numbers[1], ..key },
        RsaPrivateKey { p_exponent: &numbers[2], ..key },
        RsaPrivateKey { q_exponent: &numbers[3], ..key },
        RsaPrivateKey { q_inverse: &numbers[4], ..key },
        RsaPrivateKey { modulus: &other, ..key },
        RsaPrivateKey { exponent: 5, ..key },
        RsaPrivateKey { p: &key.p[1..], ..key },
        RsaPrivateKey { q: &[], ..key },
        RsaPrivateKey { modulus: &[], ..key },
        RsaPrivateKey { modulus: &key.modulus[8..], ..key },
    ] {
        let (signed, signature) = sign(key);
        assert_eq!(signed, Err(SecurityError::InvalidSecretKey));
        assert_eq!(signature, [0; SIGNATURE_BYTES_MAX], "a wrong signature tells the primes");
    }
}

#[test]
fn client_proves_itself_by_an_rsa_key() {
    let folder = chain("rsa-2048");
    let (root, server) =
        (root(&folder), Server::start(&folder, &["-Verify", "2", "-CAfile", "root.pem"]));
    for name in ["leaf", "middle"] {
        openssl(folder.path(), &format!("x509 -in {name}.pem -outform DER -out {name}.der"));
    }
    openssl(folder.path(), "pkey -in leaf.key -outform DER -out leaf.key.der");
    let [leaf, middle, key] = ["leaf.der", "middle.der", "leaf.key.der"]
        .map(|name| std::fs::read(folder.path().join(name)).expect("a file"));
    let chain = [&leaf[..], &middle[..]];
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let mut config = client_config(&anchors);
    let key = parse_private_key(&key).expect("a key");
    config.identity = Some(Identity { chain: &chain, key });
    let mut buffer = [0; 20_000];
    let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
    let seen = converse(&mut client, server.connect(), REQUEST, is_page).expect("a page");
    assert!(is_page(&seen));
}
