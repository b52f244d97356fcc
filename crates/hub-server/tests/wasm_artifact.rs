//! The WebAssembly of packages at the hub's registry, as others read it: by the client below `wkg`, and by `oras`.

mod world;

use std::process::Command;

// For its feature: the client of artifacts doesn't compile without TLS.
use reqwest as _;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use serde_json::{Value, json};
use tenure_hub_server::WasmArtifact;
use tenure_package::{Manifest, Package, PackageBuilder};
use tenure_testbed::skip_without_compiler;
use world::{World, digest, owner};

/// A package of a module that does nothing.
fn package() -> (Vec<u8>, Vec<u8>) {
    let wasm = wat::parse_str("(module (func (export \"entry\")))").unwrap();
    let mut manifest = Manifest::new("thermostat".parse().unwrap(), "1.2.0".parse().unwrap());
    manifest.description = "Holds a room at its temperature".into();
    (PackageBuilder::new(manifest, wasm.clone()).unwrap().sign(&owner(50)).unwrap(), wasm)
}

/// Pushes the artifact to `thermostat/wasm:1.2.0`.
fn push(world: &World, token: &str, artifact: &WasmArtifact<'_>) {
    for blob in [artifact.config.as_bytes(), artifact.wasm] {
        let path = format!("/v2/thermostat/wasm/blobs/uploads/?digest={}", digest(blob));
        assert_eq!(world.request_bytes("POST", &path, &[token], blob).status, 201);
    }
    let kind = "content-type: application/vnd.oci.image.manifest.v1+json";
    let path = "/v2/thermostat/wasm/manifests/1.2.0";
    let pushed = world.request("PUT", path, &[token, kind], &artifact.manifest);
    assert_eq!(pushed.status, 201, "{}", pushed.body);
}

/// What `wkg` asks the same client for: one layer of that type alone, and a configuration of its own type.
#[test]
fn webassembly_of_a_package_is_pulled_with_its_config_as_the_layout_has_them() {
    let mut world = World::with_fleet();
    if world.pages.is_ipv6() {
        return; // The names of artifacts have no room for such an address.
    }
    let token = world.token(&owner(1));
    let (bytes, wasm) = package();
    let package = Package::parse(&bytes).unwrap();
    let artifact = WasmArtifact::of(&package).unwrap();
    assert_eq!(WasmArtifact::of(&package), Some(artifact.clone()), "it is the same each time");
    push(&world, &token, &artifact);

    let secret = token.strip_prefix("authorization: Bearer ").unwrap();
    let image: Reference = format!("{}/thermostat/wasm:1.2.0", world.pages).parse().unwrap();
    let auth = RegistryAuth::Basic("x".into(), secret.into());
    let protocol = ClientProtocol::Http;
    // Its client wants a provider of TLS, though no certificate is seen here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(ClientConfig { protocol, ..ClientConfig::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pulled = runtime.block_on(client.pull(&image, &auth, vec!["application/wasm"])).unwrap();
    assert_eq!(pulled.layers.len(), 1);
    assert_eq!(pulled.layers[0].data, wasm);
    assert_eq!(pulled.config.media_type, "application/vnd.wasm.config.v0+json");
    let config: Value = serde_json::from_slice(&pulled.config.data).unwrap();
    assert_eq!(
        config,
        json!({
            "created": "1970-01-01T00:00:00Z",
            "author": owner(50).verifying_key().to_string(),
            "architecture": "wasm",
            "os": "wasip1",
            "layerDigests": [digest(&wasm)],
        })
    );
    let manifest = pulled.manifest.unwrap();
    let media_type = manifest.media_type.as_deref();
    assert_eq!(media_type, Some("application/vnd.oci.image.manifest.v1+json"));
    assert_eq!(manifest.annotations.unwrap()["org.opencontainers.image.version"], "1.2.0");
    // The list of packages has what devices run alone.
    assert_eq!(world.get("/v1/packages", &[&token]).json()["items"], json!([]));
}

#[test]
fn oras_pulls_the_webassembly_into_a_file_of_its_name() {
    if Command::new("oras").arg("version").output().is_err() {
        return skip_without_compiler("oras, a client of registries");
    }
    let mut world = World::with_fleet();
    if world.pages.is_ipv6() {
        return;
    }
    let token = world.token(&owner(1));
    let (bytes, wasm) = package();
    push(&world, &token, &WasmArtifact::of(&Package::parse(&bytes).unwrap()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let secret = token.strip_prefix("authorization: Bearer ").unwrap();
    let image = format!("{}/thermostat/wasm:1.2.0", world.pages);
    let mut oras = Command::new("oras");
    oras.args(["pull", "--plain-http", "--username", "x", "--password", secret, &image]);
    let output = oras.arg("--output").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(folder.path().join("thermostat.wasm")).unwrap(), wasm);
}

/// A package of native code alone has nothing that others could run.
#[test]
fn package_without_webassembly_has_no_such_artifact() {
    let manifest = Manifest::new("blink".parse().unwrap(), "1.0.0".parse().unwrap());
    let manifest = Manifest { code: vec![tenure_package::CodeKind::Thumb], ..manifest };
    let bytes = PackageBuilder::with_code(manifest, &[vec![1; 64]]).unwrap();
    let bytes = bytes.sign(&owner(50)).unwrap();
    assert_eq!(WasmArtifact::of(&Package::parse(&bytes).unwrap()), None);
}
