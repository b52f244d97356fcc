//! A package as an artifact of a registry (image spec 1.1, "Guidelines for Artifact Usage").

use serde_json::json;
use tenure_package::{CodeKind, Package};

use super::{PACKAGE_TYPE, digest_of, manifests::MANIFEST_TYPE};

/// The types of the configuration and of the layer of what holds WebAssembly (CNCF TAG Runtime, "Wasm OCI Artifact layout").
const WASM_CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
const WASM_LAYER_TYPE: &str = "application/wasm";

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

/// The WebAssembly of a package as an artifact that other tools read, `wkg` and `oras` among them (CNCF TAG Runtime, "Wasm OCI
/// Artifact layout"). Pushed for it are the configuration, the WebAssembly, and this manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmArtifact<'a> {
    /// The manifest, in JSON.
    pub manifest: String,
    /// The configuration, in JSON.
    pub config: String,
    /// The one layer.
    pub wasm: &'a [u8],
}

impl<'a> WasmArtifact<'a> {
    /// That of `package`, if it carries WebAssembly. The same package has always the same one.
    pub fn of(package: &Package<'a>) -> Option<Self> {
        let wasm = package.code(CodeKind::WebAssembly)?;
        let manifest = package.manifest();
        let config = json!({
            // No package says when it was made, and the layout wants a moment.
            "created": "1970-01-01T00:00:00Z",
            "author": package.tenant().to_string(),
            "architecture": "wasm",
            // What the layout has for a module, whatever it imports.
            "os": "wasip1",
            "layerDigests": [digest_of(wasm)],
        });
        let config = config.to_string();
        let artifact = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {
                "mediaType": WASM_CONFIG_TYPE,
                "digest": digest_of(config.as_bytes()),
                "size": config.len(),
            },
            "layers": [{
                "mediaType": WASM_LAYER_TYPE,
                "digest": digest_of(wasm),
                "size": wasm.len(),
                "annotations": { "org.opencontainers.image.title": format!("{}.wasm", manifest.name) },
            }],
            "annotations": {
                "org.opencontainers.image.title": manifest.name.as_str(),
                "org.opencontainers.image.version": manifest.version.to_string(),
                "org.opencontainers.image.description": manifest.description,
            },
        });
        Some(Self { manifest: artifact.to_string(), config, wasm })
    }
}
