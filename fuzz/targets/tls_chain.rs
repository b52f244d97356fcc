//! Certificates, keys in DER and chains of what the input says, whose signatures all verify: what is accepted
//! here is accepted by rustls-webpki, but for names that it can't compare with a constraint.
#![no_main]
#![forbid(unsafe_code)]

#[path = "tls_chain/plain.rs"]
mod plain;

use core::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use plain::{DATE_S, Plain, ROOT};
use rustls_pki_types::alg_id::*;
use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm, UnixTime,
};
use tenure_tls::x509::{
    self, Anchor, Certificate, Purpose, ServerName, parse_private_key, parse_public_key,
};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// The longest chain that is tried.
const CERTIFICATES_MAX: usize = 5;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let mut chain = Vec::new();
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first_chunk::<2>()
        && chain.len() < CERTIFICATES_MAX
    {
        let length = usize::from(u16::from_be_bytes(*head)).min(after.len());
        let (certificate, after) = after.split_at(length);
        chain.push(certificate);
        rest = after;
    }
    let Some((leaf, issuers)) = chain.split_first() else { return Corpus::Reject };
    chain.iter().for_each(|certificate| look_at(certificate));
    let root = Anchor::from_certificate(ROOT).expect("the anchor");
    let name = ServerName::Dns("server.test");
    let date = Some(x509::UnixTime(DATE_S));
    let ours =
        x509::verify_chain(&mut Plain::new(), &chain, &[root], Purpose::Server, Some(name), date);
    if ours.is_ok() {
        match theirs(leaf, issuers) {
            // It knows no constraints on mailboxes, URIs and directory names, which RFC 5280 does.
            Err(webpki::Error::NameConstraintViolation)
                if chain.iter().any(|der| has_unjudged_name(der)) => {}
            // It knows no years before 1970, which RFC 5280 does.
            Err(webpki::Error::BadDerTime) if chain.iter().any(|der| is_old(der)) => {}
            judged => judged.expect("an accepted chain is accepted by rustls-webpki"),
        }
    }
    Corpus::Keep
});

/// Whether a certificate was valid before 1970.
fn is_old(der: &[u8]) -> bool {
    Certificate::parse(der).is_ok_and(|it| it.validity.not_before < x509::UnixTime(0))
}

/// Whether a certificate may have a mailbox, a URI or a directory name among its names or constraints: the tag of one.
fn has_unjudged_name(der: &[u8]) -> bool {
    der.contains(&0x81) && der.contains(&b'@') || der.contains(&0x86) || der.contains(&0xa4)
}

/// Everything that can be asked of a certificate, a key or an anchor.
fn look_at(bytes: &[u8]) {
    let _ = parse_public_key(bytes);
    let _ = parse_private_key(bytes);
    let _ = Anchor::from_certificate(bytes);
    let Ok(certificate) = Certificate::parse(bytes) else { return };
    let _ = parse_public_key(certificate.key_info);
    let _ = (certificate.is_authority(), certificate.common_name());
    let _ = certificate.issuer_common_name();
    let _ = certificate.alternative_names().count();
}

/// rustls-webpki's judgement of the same chain.
fn theirs(leaf: &[u8], issuers: &[&[u8]]) -> Result<(), webpki::Error> {
    let root = CertificateDer::from(ROOT);
    let root = [anchor_from_trusted_cert(&root)?];
    let leaf = CertificateDer::from(leaf);
    let issuers: Vec<_> = issuers.iter().map(|der| CertificateDer::from(*der)).collect();
    let date = UnixTime::since_unix_epoch(Duration::from_secs(DATE_S as u64));
    let leaf = EndEntityCert::try_from(&leaf)?;
    let usage = KeyUsage::server_auth();
    leaf.verify_for_usage(ALGORITHMS, &root, &issuers, date, usage, None, None)?;
    leaf.verify_is_valid_for_subject_name(&"server.test".try_into().expect("a name"))
}

/// A signature algorithm, by its key and its own identifier, under which everything verifies.
#[derive(Debug)]
struct Lenient(AlgorithmIdentifier, AlgorithmIdentifier);

impl SignatureVerificationAlgorithm for Lenient {
    fn verify_signature(&self, _: &[u8], _: &[u8], _: &[u8]) -> Result<(), InvalidSignature> {
        Ok(())
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.0
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.1
    }
}

/// `sha256WithRSAEncryption` and its kin with absent parameters (RFC 4055 §5).
const fn rsa_pkcs1_without_parameters(der: &'static [u8; 11]) -> Lenient {
    Lenient(RSA_ENCRYPTION, AlgorithmIdentifier::from_slice(der))
}

const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    &Lenient(ECDSA_P256, ECDSA_SHA256),
    &Lenient(ECDSA_P256, ECDSA_SHA384),
    &Lenient(ECDSA_P256, ECDSA_SHA512),
    &Lenient(ECDSA_P384, ECDSA_SHA256),
    &Lenient(ECDSA_P384, ECDSA_SHA384),
    &Lenient(ECDSA_P384, ECDSA_SHA512),
    &Lenient(ED25519, ED25519),
    &Lenient(RSA_ENCRYPTION, RSA_PKCS1_SHA256),
    &Lenient(RSA_ENCRYPTION, RSA_PKCS1_SHA384),
    &Lenient(RSA_ENCRYPTION, RSA_PKCS1_SHA512),
    &rsa_pkcs1_without_parameters(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"),
    &rsa_pkcs1_without_parameters(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"),
    &rsa_pkcs1_without_parameters(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"),
    &Lenient(RSA_ENCRYPTION, RSA_PSS_SHA256),
    &Lenient(RSA_ENCRYPTION, RSA_PSS_SHA384),
    &Lenient(RSA_ENCRYPTION, RSA_PSS_SHA512),
];
