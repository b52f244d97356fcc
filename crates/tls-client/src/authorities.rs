//! Authorities that vouch for servers, parsed once for all connections.

use tenure_crypto::{Sha256, sha256};
use tenure_tls::x509::Anchor;

/// Authorities, from their certificates.
#[derive(Debug, Default)]
pub struct Authorities {
    list: Vec<Authority>,
    digest: [u8; 32],
}

/// The parts of an authority's certificate that count: see [`Anchor`].
#[derive(Debug)]
struct Authority {
    name: Box<[u8]>,
    key_info: Box<[u8]>,
    name_constraints: Option<Box<[u8]>>,
}

impl Authorities {
    /// The authorities in these certificates, in DER. Those that can't be used are left out.
    pub fn new(certificates: &[Vec<u8>]) -> Self {
        let anchors = certificates.iter().filter_map(|der| Anchor::from_certificate(der).ok());
        let list: Vec<Authority> = anchors.map(Authority::of).collect();
        let mut digests: Vec<[u8; 32]> = list.iter().map(Authority::digest).collect();
        // The order in which files name them means nothing.
        digests.sort_unstable();
        digests.dedup();
        let digest = sha256(&[digests.as_flattened()]).0;
        Self { list, digest }
    }

    /// The same, as TLS judges by them.
    pub fn anchors(&self) -> Vec<Anchor<'_>> {
        self.list.iter().map(Authority::anchor).collect()
    }

    /// A digest of all of them.
    pub(crate) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl Authority {
    fn of(anchor: Anchor<'_>) -> Self {
        Self {
            name: anchor.name.into(),
            key_info: anchor.key_info.into(),
            name_constraints: anchor.name_constraints.map(Into::into),
        }
    }

    fn anchor(&self) -> Anchor<'_> {
        Anchor {
            name: &self.name,
            key_info: &self.key_info,
            name_constraints: self.name_constraints.as_deref(),
        }
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let constraints = self.name_constraints.as_deref();
        for part in [Some(&*self.name), Some(&*self.key_info), constraints].into_iter().flatten() {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finish().0
    }
}
