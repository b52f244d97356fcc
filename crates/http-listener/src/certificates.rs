//! The certificate by which a server proves itself over TLS, read from files, and again when they change.
//!
//! Invariants:
//! - A certificate is shown only with the key that belongs to it.
//! - Files that can't be read, or don't fit together, change nothing: the last pair that fitted is shown on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The protocol that is spoken inside (RFC 7301 §6).
const ALPN: &[u8] = b"http/1.1";

/// A certificate with its key, as the files have them. Copies are the same certificate.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Files,
    shown: Arc<Shown>,
    config: Arc<ServerConfig>,
    seen: Mutex<Seen>,
}

/// The files, both in PEM.
#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The pair that the next connection is shown.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

/// The bytes of the certificate's file, and of the key's.
type Bytes = (Vec<u8>, Vec<u8>);

/// The files as they were seen last.
struct Seen {
    /// None if one couldn't be read.
    bytes: Option<Bytes>,
    fit: Fit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// They are shown.
    Yes,
    /// They may be half written: the next look says.
    NotYet,
    /// They don't, and that was told.
    No,
}

/// The outcome of a look at the files.
#[derive(Debug)]
enum Look {
    Same,
    Taken,
    Unfit(CertificateError),
}

/// Why a certificate can't be shown.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file can't be read.
    #[error("can't read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error(
        "{0} holds no certificate: one begins with `-----BEGIN CERTIFICATE-----` (PEM), the server's own stands first"
    )]
    NoCertificate(PathBuf),
    /// There is no key.
    #[error(
        "{0} holds no private key: one begins with `-----BEGIN PRIVATE KEY-----` (PEM, not encrypted)"
    )]
    NoKey(PathBuf),
    /// They don't belong together, or aren't of a kind that is known here.
    #[error("the certificate in {certificate} can't be shown with the key in {key}: {source}")]
    Unfit {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
}

impl Certificates {
    /// Reads the chain of certificates in `certificate`, the server's own first, and its key in `key`, both in PEM.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let files = Files { certificate: certificate.into(), key: key.into() };
        let bytes = files.read()?;
        let shown = Arc::new(Shown(RwLock::new(Arc::new(files.pair(&bytes)?))));
        let config = config(shown.clone()).map_err(|source| files.unfit(source))?;
        let seen = Mutex::new(Seen { bytes: Some(bytes), fit: Fit::Yes });
        Ok(Self(Arc::new(Inner { files, shown, config: Arc::new(config), seen })))
    }

    /// How connections are accepted.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.clone()
    }

    /// Looks at the files again and again, as long as the server runs.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let certificates = self.clone();
            // A file may be on a disk that is slow.
            let looked = tokio::task::spawn_blocking(move || certificates.look());
            let file = self.0.files.certificate.display();
            match looked.await {
                Ok(Look::Same) => {}
                Ok(Look::Taken) => tracing::info!(%file, "took a new certificate"),
                Ok(Look::Unfit(error)) => {
                    tracing::warn!(%error, "goes on with the certificate of before");
                }
                Err(_) => return,
            }
        }
    }

    /// Takes what the files hold, if that changed. What doesn't fit is told once, and not before it is seen twice:
    /// two files are written one after the other.
    fn look(&self) -> Look {
        let Inner { files, shown, seen, .. } = &*self.0;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let read = files.read();
        let is_same = read.as_ref().ok() == seen.bytes.as_ref();
        if is_same && seen.fit != Fit::NotYet {
            return Look::Same;
        }
        if !is_same {
            seen.bytes = read.as_ref().ok().cloned();
        }
        match read.and_then(|bytes| files.pair(&bytes)) {
            Ok(pair) => {
                *shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                seen.fit = Fit::Yes;
                Look::Taken
            }
            Err(error) if is_same => {
                seen.fit = Fit::No;
                Look::Unfit(error)
            }
            Err(_) => {
                seen.fit = Fit::NotYet;
                Look::Same
            }
        }
    }
}

impl Files {
    fn read(&self) -> Result<Bytes, CertificateError> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|source| CertificateError::File { path: path.clone(), source })
        };
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    /// The chain and its key, if they belong together.
    fn pair(&self, (certificate, key): &Bytes) -> Result<CertifiedKey, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain =
            chain.ok_or_else(|| CertificateError::NoCertificate(self.certificate.clone()))?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| CertificateError::NoKey(self.key.clone()))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|source| self.unfit(source))
    }

    fn unfit(&self, source: rustls::Error) -> CertificateError {
        let Self { certificate, key } = self;
        CertificateError::Unfit { certificate: certificate.clone(), key: key.clone(), source }
    }
}

/// TLS 1.3 and 1.2, as rustls thinks them safe, without certificates of clients.
fn config(shown: Arc<Shown>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Keys stay out of logs.
impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen").field("fit", &self.fit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate and its key as files have them.
    fn made() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["hub.example".into()]).unwrap();
        (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }

        fn read(&self, certificate: &str, key: &str) -> Result<Certificates, String> {
            let paths = (self.write("c.pem", certificate), self.write("k.pem", key));
            Certificates::read(&paths.0, &paths.1).map_err(|error| {
                error.to_string().replace(&self.0.path().display().to_string(), "DIR")
            })
        }
    }

    fn shown(certificates: &Certificates) -> Arc<CertifiedKey> {
        certificates.0.shown.0.read().unwrap().clone()
    }

    fn is_shown(certificates: &Certificates, pem: &str) -> bool {
        let own = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        shown(certificates).cert.first() == Some(&own)
    }

    #[test]
    fn pair_that_does_not_do_is_refused_with_the_file_that_is_to_blame() {
        let folder = Folder::new();
        let ((certificate, key), (_, other_key)) = (made(), made());
        assert!(folder.read(&certificate, &key).is_ok());
        for (certificate, key, says) in [
            ("", &*key, "DIR/c.pem holds no certificate"),
            (&*key, &key, "DIR/c.pem holds no certificate"),
            (&certificate, "", "DIR/k.pem holds no private key"),
            (&certificate, &certificate, "DIR/k.pem holds no private key"),
            (
                &certificate,
                &other_key,
                "the certificate in DIR/c.pem can't be shown with the key in DIR/k.pem",
            ),
        ] {
            let error = folder.read(certificate, key).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let missing = folder.0.path().join("none.pem");
        let error = Certificates::read(&missing, &missing).unwrap_err();
        assert!(matches!(error, CertificateError::File { path, .. } if path == missing));
    }

    #[test]
    fn files_that_change_are_taken_once_they_fit_and_those_that_do_not_are_told_once() {
        let folder = Folder::new();
        let ((first, first_key), (second, second_key)) = (made(), made());
        let certificates = folder.read(&first, &first_key).unwrap();
        assert!(matches!(certificates.look(), Look::Same));
        // One file is new, and the other will be.
        folder.write("c.pem", &second);
        assert!(matches!(certificates.look(), Look::Same));
        assert!(is_shown(&certificates, &first));
        folder.write("k.pem", &second_key);
        assert!(matches!(certificates.look(), Look::Taken));
        assert!(is_shown(&certificates, &second));
        assert!(matches!(certificates.look(), Look::Same));
        std::fs::remove_file(folder.0.path().join("k.pem")).unwrap();
        assert!(matches!(certificates.look(), Look::Same));
        assert!(matches!(certificates.look(), Look::Unfit(CertificateError::File { .. })));
        assert!(matches!(certificates.look(), Look::Same));
        assert!(is_shown(&certificates, &second));
        folder.write("c.pem", &first);
        folder.write("k.pem", &first_key);
        assert!(matches!(certificates.look(), Look::Taken));
        assert!(is_shown(&certificates, &first));
    }
}
