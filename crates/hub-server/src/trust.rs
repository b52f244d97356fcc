//! TLS towards servers: whose certificates the hub takes, and with which versions.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// These certificate authorities, or those of this computer where none are named. What can't be read among them is left out.
pub(crate) fn authorities(named: Option<Vec<CertificateDer<'static>>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let certificates = named.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(certificates);
    roots
}

/// TLS 1.2 or 1.3 to a server whose certificate is from one of `roots`, without one of the hub's own.
///
/// # Errors
/// The cryptography knows none of these versions.
pub(crate) fn client(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
