//! The authorities of the system: each can be an anchor, or is named with the reason.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tenure_testbed::skip_without_tool;
use tenure_tls::x509::{Anchor, CertificateError};

/// The bundle of Debian's package `ca-certificates`.
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Roots that can't be anchors, by a part of the name that their subject has, with the reason.
const REFUSED: [(&str, CertificateError); 0] = [];

#[test]
fn every_root_of_the_system_is_an_anchor_or_is_named() {
    if !Path::new(BUNDLE).exists() {
        return skip_without_tool(&format!("{BUNDLE} (Debian: ca-certificates)"));
    }
    let roots: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(BUNDLE).and_then(Iterator::collect);
    let roots = roots.expect("a bundle");
    assert!(roots.len() > 100, "{} roots", roots.len());
    let named = |der: &[u8]| {
        let has = |name: &str| der.windows(name.len()).any(|it| it == name.as_bytes());
        REFUSED.iter().find(|(name, _)| has(name)).map(|(_, error)| *error)
    };
    let wrong: Vec<_> = roots
        .iter()
        .enumerate()
        .map(|(index, der)| (index + 1, Anchor::from_certificate(der).err(), named(der)))
        .filter(|(_, error, expected)| error != expected)
        .collect();
    assert!(wrong.is_empty(), "(place, refusal, expected): {wrong:?}");
}
