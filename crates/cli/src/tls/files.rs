//! Certificates and keys in files: PEM, or DER if there is no PEM in them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use tenure_tls::x509::{Anchor, parse_private_key, parse_public_key};

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
pub(crate) fn certificates(path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
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
pub(crate) fn private_key(path: &Path) -> anyhow::Result<zeroize::Zeroizing<Vec<u8>>> {
    let read = || {
        let bytes = zeroize::Zeroizing::new(std::fs::read(path)?);
        let sections = sections(&bytes)?;
        let key = sections.into_iter().find(|it| is_private_key(it.0));
        let key = key.map_or(bytes, |(_, der)| zeroize::Zeroizing::new(der));
        parse_private_key(&key).map_err(|error| {
            anyhow::anyhow!(
                "{error}; it takes P-256, P-384, Ed25519 and RSA of 2,048 to 4,096 bits without a passphrase, as from \
                 `openssl genpkey -algorithm ed25519`"
            )
        })?;
        Ok::<_, anyhow::Error>(key)
    };
    read().with_context(|| format!("can't use the key in {}", path.display()))
}

fn is_private_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::EcPrivateKey | SectionKind::RsaPrivateKey)
}

/// The public key in a file, as `SubjectPublicKeyInfo`: as it is, or out of a certificate.
pub(crate) fn public_key(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let bytes = std::fs::read(path)?;
        let first = sections(&bytes)?.into_iter().next();
        let der = first.map_or(bytes, |(_, der)| der);
        if parse_public_key(&der).is_ok() {
            return Ok(der);
        }
        // Of a certificate the key alone counts, as of an authority.
        let certificate = Anchor::from_certificate(&der)
            .map_err(|error| anyhow::anyhow!("neither a public key nor a certificate: {error}"))?;
        Ok::<_, anyhow::Error>(certificate.key_info.to_vec())
    };
    read().with_context(|| format!("can't use the key in {}", path.display()))
}

/// Authorities, which [`Anchor`]s are made of.
pub(crate) struct Authorities {
    certificates: Vec<Vec<u8>>,
    /// Those of the system that can't be used, and why.
    left_out: Vec<String>,
}

impl Authorities {
    /// Those of `paths`, or of the system if there are none.
    ///
    /// # Errors
    /// A file can't be read, or one of `paths` has a certificate that can't be used. The system's
    /// bundle may have some: [`Self::left_out`].
    pub(crate) fn load(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut authorities = Self { certificates: Vec::new(), left_out: Vec::new() };
        let bundle = if paths.is_empty() { Some(system_bundle()?) } else { None };
        for path in paths.iter().chain(&bundle) {
            for (index, der) in certificates(path)?.into_iter().enumerate() {
                match Anchor::from_certificate(&der) {
                    Ok(_) => authorities.certificates.push(der),
                    Err(error) => {
                        let place = format!("{}, certificate {}", path.display(), index + 1);
                        if bundle.is_none() {
                            bail!("{place}: {error}");
                        }
                        authorities.left_out.push(format!("{place}: {error}"));
                    }
                }
            }
        }
        if let ([], [reason, ..]) = (&authorities.certificates[..], &authorities.left_out[..]) {
            bail!("no authority can be used: {reason}");
        }
        Ok(authorities)
    }

    /// The authorities of the system that can't be used, each with the reason.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Their certificates, in DER.
    pub(crate) fn certificates(self) -> Vec<Vec<u8>> {
        self.certificates
    }

    pub(super) fn anchors(&self) -> Vec<Anchor<'_>> {
        self.certificates.iter().filter_map(|der| Anchor::from_certificate(der).ok()).collect()
    }
}

/// The file of `SSL_CERT_FILE`, and no other if that is set: it narrows trust. Otherwise the first of
/// the usual places that is there.
fn system_bundle() -> anyhow::Result<PathBuf> {
    if let Some(own) = std::env::var_os("SSL_CERT_FILE") {
        anyhow::ensure!(!own.is_empty(), "SSL_CERT_FILE is empty; set it to a file, or not at all");
        return Ok(own.into());
    }
    // Not `exists`: a bundle that may not be read is an error, and not another bundle.
    let mut bundles = SYSTEM_BUNDLES.iter().map(Path::new);
    let bundle = bundles.find(|path| path.symlink_metadata().is_ok()).context(
        "this system has no bundle of authorities in the usual places; name one with --ca",
    )?;
    Ok(bundle.to_path_buf())
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
