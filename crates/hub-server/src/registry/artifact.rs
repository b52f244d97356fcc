//! A package as an artifact of a registry (image spec 1.1, "Guidelines for Artifact Usage").

use serde_json::json;
use tenure_package::Package;

use super::{PACKAGE_TYPE, digest_of, manifests::MANIFEST_TYPE};

/// Three blobs are pushed for a package: [`Self::CONFIG`], the package's bytes, and this manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The manifest, in JSON.
    pub manifest: String,
}

impl Artifact {
    /// The empty configuration, a blob of its own.
    pub const CONFIG: &'static [u8] = b"{}";
    /// The type of the manifest.
    pub const MANIFEST_TYPE: &'static str = MANIFEST_TYPE;

    /// The artifact of `package`, whose bytes are `bytes`. The same package has always the same one.
    pub fn of(package: &Package<'_>, bytes: &[u8]) -> Self {
        let manifest = package.manifest();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": PACKAGE_TYPE,
            "config": {
                "mediaType": "application/vnd.oci.empty.v1+json",
                "digest": digest_of(Self::CONFIG),
                "size": Self::CONFIG.len(),
            },
            "layers": [{
                "mediaType": PACKAGE_TYPE,
                "digest": digest_of(bytes),
                "size": bytes.len(),
                "annotations": { "org.opencontainers.image.title": format!("{}.tenure", manifest.name) },
            }],
            "annotations": {
                "org.opencontainers.image.title": manifest.name.as_str(),
                "org.opencontainers.image.version": manifest.version.to_string(),
                "org.opencontainers.image.description": manifest.description,
            },
        });
        Self { manifest: manifest.to_string() }
    }
}
