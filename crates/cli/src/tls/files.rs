//! Certificates and keys in files: PEM, or DER if there is no PEM in them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use tenure_tls::x509::{Anchor, Certificate, parse_private_key, parse_public_key};

/// The bundles of authorities of common systems.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

type Section = (SectionKind, Vec<u8>);

/// The sections of a PEM file; none if it is no PEM.
fn sections(bytes: &[u8]) -> anyhow::Result<Vec<Section>> {
    let sections: Result<Vec<Section>, _> = Section::pem_slice_iter(bytes).collect();
    sections.map_err(|error| anyhow::anyhow!("the PEM is damaged: {error:?}"))
}

/// The certificates in a file, in their order.
pub(super) fn certificates(path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = || {
        let bytes = std::fs::read(path)?;
        let sections = sections(&bytes)?;
        if sections.is_empty() {
            return Ok(vec![bytes]);
        }
        let certificates = sections.into_iter().filter(|it| it.0 == SectionKind::Certificate);
        Ok::<_, anyhow::Error>(certificates.map(|(_, der)| der).collect())
    };
    let found = read().with_context(|| format!("can't read {}", path.display()))?;
    if found.is_empty() {
        bail!("{} has no certificate", path.display());
    }
    Ok(found)
}

/// The private key in a file, in DER; it is checked to be one that signs here.
pub(super) fn private_key(path: &Path) -> anyhow::Result<zeroize::Zeroizing<Vec<u8>>> {
    let read = || {
        let bytes = zeroize::Zeroizing::new(std::fs::read(path)?);
        let sections = sections(&bytes)?;
        let is_key =
            |kind: SectionKind| matches!(kind, SectionKind::PrivateKey | SectionKind::EcPrivateKey);
        let key = sections.into_iter().find(|it| is_key(it.0));
        let key = key.map_or(bytes, |(_, der)| zeroize::Zeroizing::new(der));
        parse_private_key(&key).map_err(|error| {
            anyhow::anyhow!(
                "{error}; it takes P-256, P-384 and Ed25519 without a passphrase, \
                 as from `openssl genpkey -algorithm ed25519`"
            )
        })?;
        Ok::<_, anyhow::Error>(key)
    };
    read().with_context(|| format!("can't use the key in {}", path.display()))
}

/// The public key in a file, as `SubjectPublicKeyInfo`: as it is, or out of a certificate.
pub(super) fn public_key(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let bytes = std::fs::read(path)?;
        let first = sections(&bytes)?.into_iter().next();
        let der = first.map_or(bytes, |(_, der)| der);
        if parse_public_key(&der).is_ok() {
            return Ok(der);
        }
        let certificate = Certificate::parse(&der)
            .map_err(|error| anyhow::anyhow!("neither a public key nor a certificate: {error}"))?;
        Ok::<_, anyhow::Error>(certificate.key_info.to_vec())
    };
    read().with_context(|| format!("can't use the key in {}", path.display()))
}

/// Authorities, which [`Anchor`]s are made of.
pub(super) struct Authorities(Vec<Vec<u8>>);

impl Authorities {
    /// Those of `paths`, or of the system if there are none.
    pub(super) fn load(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let mut authorities = Vec::new();
        if paths.is_empty() {
            let mut bundles = own.into_iter().chain(SYSTEM_BUNDLES.map(PathBuf::from));
            let bundle = bundles.find(|path| path.is_file()).context(
                "this system has no bundle of authorities in the usual places; name one with --ca",
            )?;
            // Some of a system's authorities have keys that aren't supported: they are left out below.
            return Ok(Self(certificates(&bundle)?));
        }
        for path in paths {
            for der in certificates(path)? {
                Anchor::from_certificate(&der)
                    .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
                authorities.push(der);
            }
        }
        Ok(Self(authorities))
    }

    pub(super) fn anchors(&self) -> Vec<Anchor<'_>> {
        self.0.iter().filter_map(|der| Anchor::from_certificate(der).ok()).collect()
    }
}

/// `der` as a PEM section.
pub(super) fn pem_of_certificate(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - group.len()));
            for place in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
                text.push(if place <= group.len() { char::from(digit) } else { '=' });
            }
        }
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}
