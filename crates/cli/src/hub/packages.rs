//! `tenure push` and `tenure pull`: packages to the hub's registry and from it.

use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_hub_server::{Artifact, WasmArtifact, registry_digest};
use tenure_package::{PACKAGE_BYTES_MAX, Package};
use tenure_wire::Digest;
use tenure_wire::hub::Response;

use crate::home::Home;
use crate::hub::session::{HubSession, PART_BYTES, header, reason};
use crate::machine::install::progress;
use crate::make::build::package_at;
use crate::make::package::read_package;
use crate::reach::client::Client;
use crate::reach::network::UNREADABLE;
use crate::reach::whom::Where;
use crate::terminal::output::Output;
use crate::whole_file;

/// Push a package to the hub's registry.
///
/// The hub keeps it by its digest and serves it to `tenure pull` and, with a token, to any client of OCI
/// registries. It takes it only if its tenant signed it.
///
/// Example: tenure push thermostat.tenure --to house/thermostat:1.2.0 --hub hub.example:7369
#[derive(clap::Args)]
pub struct PushArguments {
    /// The package, as `tenure build` makes it, or the folder of a project, which is built first.
    #[arg(value_name = "PACKAGE")]
    package: PathBuf,
    /// The repository and tag; by default the package's name and version.
    #[arg(long, value_name = "REPOSITORY[:TAG]")]
    to: Option<String>,
    /// Push its WebAssembly by itself, too, to REPOSITORY/wasm with the same tag, as `wkg` and `oras` pull it.
    #[arg(long)]
    wasm: bool,
    /// Push as a tenant, to repositories of your own, at a hub that has a receipt of yours.
    #[arg(long)]
    tenant: bool,
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

/// Fetch a package from the hub's registry.
///
/// A transfer that broke off goes on where it stopped. The file appears once it is whole and signed by its tenant.
///
/// Example: tenure pull house/thermostat:1.2.0 --to thermostat.tenure
#[derive(clap::Args)]
pub struct PullArguments {
    /// The package: REPOSITORY:TAG, or REPOSITORY@sha256:… of its manifest.
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Pull as a tenant, what you pushed as one.
    #[arg(long)]
    tenant: bool,
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

/// A package's place in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference {
    repository: String,
    /// A tag, or a digest.
    name: String,
}

impl Reference {
    /// Reads `REPOSITORY:TAG` or `REPOSITORY@DIGEST`; without either the tag is `otherwise`.
    fn parse(text: &str, otherwise: Option<&str>) -> anyhow::Result<Self> {
        let split = text.split_once('@').or_else(|| text.split_once(':'));
        let (repository, name) = split
            .or_else(|| Some((text, otherwise?)))
            .with_context(|| format!("say which one: {text}:TAG, or {text}@sha256:…"))?;
        Ok(Self { repository: repository.into(), name: name.into() })
    }

    fn manifest(&self) -> String {
        format!("/v2/{}/manifests/{}", self.repository, self.name)
    }
}

fn session(
    client: &mut Client,
    home: &Home,
    hub: &Option<String>,
    as_tenant: bool,
) -> anyhow::Result<HubSession> {
    let key = if as_tenant { home.tenant_key()? } else { home.owner_key()? };
    HubSession::open(client, &Where { device: None, hub: hub.clone(), via: None }, key)
}

/// Runs `tenure push`.
///
/// # Errors
/// The package can't be read or isn't one, or the hub refuses it.
pub fn push(arguments: &PushArguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let bytes = read_package(&package_at(&arguments.package, &home)?)?;
    let package = Package::parse(&bytes)?;
    let (name, version) = (package.manifest().name.to_string(), package.manifest().version);
    let to = arguments.to.clone().unwrap_or(name);
    let to = Reference::parse(&to, Some(&version.to_string()))?;
    let wasm = arguments.wasm.then(|| {
        let none = "the package has no WebAssembly; leave --wasm out";
        WasmArtifact::of(&package).context(none)
    });
    let wasm = wasm.transpose()?;
    let mut client = Client::new(&home)?;
    let mut hub = session(&mut client, &home, &arguments.hub, arguments.tenant)?;
    let digest = push_to(&mut client, &mut hub, &to, (&package, &bytes), output)?;
    let Reference { repository, name } = &to;
    let mut text = format!("pushed {repository}:{name}\n  {repository}@{digest}");
    let mut object = json!({
        "repository": repository,
        "tag": name,
        "digest": digest,
        "package": package.digest().to_string(),
        "bytes": bytes.len(),
    });
    if let Some(wasm) = wasm {
        let to = Reference { repository: format!("{repository}/wasm"), name: name.clone() };
        let digest = push_wasm(&mut client, &mut hub, &to, &wasm)?;
        let Reference { repository, name } = &to;
        text += &format!("\npushed {repository}:{name}\n  {repository}@{digest}");
        object["wasm"] = json!({ "repository": repository, "tag": name, "digest": digest });
    }
    output.line(&text, &object);
    Ok(())
}

/// Pushes a package to the repository of its name, with its version as the tag.
///
/// # Errors
/// The hub can't be reached, or refuses it.
pub fn push_package(
    client: &mut Client,
    hub: &mut HubSession,
    package: &Package<'_>,
    bytes: &[u8],
    output: &Output,
) -> anyhow::Result<()> {
    let manifest = package.manifest();
    let to =
        Reference { repository: manifest.name.to_string(), name: manifest.version.to_string() };
    push_to(client, hub, &to, (package, bytes), output).map(drop)
}

/// Pushes a package with its bytes; returns the digest of its manifest.
fn push_to(
    client: &mut Client,
    hub: &mut HubSession,
    to: &Reference,
    (package, bytes): (&Package<'_>, &[u8]),
    output: &Output,
) -> anyhow::Result<String> {
    let artifact = Artifact::of(package, bytes);
    push_blob(client, hub, &to.repository, Artifact::CONFIG, &Output::silent())?;
    push_blob(client, hub, &to.repository, bytes, output)?;
    let kind = [("content-type", Artifact::MANIFEST_TYPE.to_string())];
    let manifest = artifact.manifest.as_bytes();
    hub.ask(client, "PUT", &to.manifest(), &kind, manifest)?;
    Ok(registry_digest(manifest))
}

/// Pushes the WebAssembly of a package by itself; returns the digest of its manifest.
fn push_wasm(
    client: &mut Client,
    hub: &mut HubSession,
    to: &Reference,
    artifact: &WasmArtifact<'_>,
) -> anyhow::Result<String> {
    let WasmArtifact { manifest, config, wasm } = artifact;
    for blob in [config.as_bytes(), *wasm] {
        push_blob(client, hub, &to.repository, blob, &Output::silent())?;
    }
    let kind = [("content-type", Artifact::MANIFEST_TYPE.to_string())];
    hub.ask(client, "PUT", &to.manifest(), &kind, manifest.as_bytes())?;
    Ok(registry_digest(manifest.as_bytes()))
}

/// Fetches the package with this digest from whichever repository of the user's it is in.
///
/// # Errors
/// The hub has no such package or can't be reached, or what it sent isn't the package.
pub fn fetch_package(
    client: &mut Client,
    hub: &mut HubSession,
    digest: Digest,
) -> anyhow::Result<Vec<u8>> {
    let path = format!("/v1/packages/{digest}");
    let mut bytes = Vec::new();
    loop {
        let first = bytes.len();
        let range = [("range", format!("bytes={first}-{}", first + PART_BYTES - 1))];
        let part = hub.ask(client, "GET", &path, &range, &[])?;
        let whole = header(&part, "content-range").and_then(|range| range.rsplit_once('/'));
        let whole = whole.and_then(|(_, whole)| whole.parse::<usize>().ok());
        let whole = whole.filter(|whole| *whole <= PACKAGE_BYTES_MAX && !part.body.is_empty());
        let whole = whole.context(UNREADABLE)?;
        bytes.extend_from_slice(&part.body);
        if bytes.len() >= whole {
            break;
        }
    }
    let package = Package::parse(&bytes)?;
    package.verify()?;
    if package.digest() != digest {
        bail!("the hub sent another package than the one with that digest");
    }
    Ok(bytes)
}

/// Pushes a blob in parts, unless the hub has it.
fn push_blob(
    client: &mut Client,
    hub: &mut HubSession,
    repository: &str,
    bytes: &[u8],
    output: &Output,
) -> anyhow::Result<()> {
    let digest = registry_digest(bytes);
    let known = format!("/v2/{repository}/blobs/{digest}");
    if hub.request(client, "HEAD", &known, &[], &[])?.status == 200 {
        return Ok(());
    }
    let path = format!("/v2/{repository}/blobs/uploads/");
    let begun = hub.ask(client, "POST", &path, &[], &[])?;
    let place = header(&begun, "location").context("the hub begins no upload")?.to_string();
    let mut sent = 0;
    for part in bytes.chunks(PART_BYTES) {
        let range = [("content-range", format!("{sent}-{}", sent + part.len() - 1))];
        hub.ask(client, "PATCH", &place, &range, part)?;
        sent += part.len();
        progress(output, sent, bytes.len());
    }
    hub.ask(client, "PUT", &format!("{place}?digest={digest}"), &[], &[])?;
    Ok(())
}

/// Runs `tenure pull`.
///
/// # Errors
/// The hub has no such package or can't be reached, or what it sent is no package.
pub fn pull(arguments: &PullArguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let reference = Reference::parse(&arguments.reference, None)?;
    let mut client = Client::new(&home)?;
    let mut hub = session(&mut client, &home, &arguments.hub, arguments.tenant)?;
    let manifest = hub.ask(&mut client, "GET", &reference.manifest(), &[], &[])?;
    if reference.name.contains(':') && registry_digest(&manifest.body) != reference.name {
        bail!("the hub sent another manifest than the one with that digest");
    }
    let layer = layer_of(&manifest.body)?;
    let part = arguments.to.with_extension("part");
    let bytes = fetch(&mut client, &mut hub, &reference.repository, &layer, &part, output)?;
    let package = Package::parse(&bytes).and_then(|package| package.verify().map(|()| package));
    let package = package.with_context(|| arguments.reference.clone())?;
    let failed = || format!("can't write {}", arguments.to.display());
    std::fs::rename(&part, &arguments.to).with_context(failed)?;
    let (name, version) = (&package.manifest().name, package.manifest().version);
    output.line(
        &format!("{name} {version} in {}", arguments.to.display()),
        &json!({
            "file": arguments.to.display().to_string(),
            "package": package.digest().to_string(),
            "tenant": package.tenant().to_string(),
            "version": version,
        }),
    );
    Ok(())
}

/// The one layer of a package's manifest.
struct Layer {
    digest: String,
    bytes: usize,
}

fn layer_of(manifest: &[u8]) -> anyhow::Result<Layer> {
    let manifest: Value = serde_json::from_slice(manifest).context("the manifest")?;
    let layer = &manifest["layers"][0];
    let bytes = layer["size"].as_u64().and_then(|size| usize::try_from(size).ok());
    match (layer["digest"].as_str(), bytes) {
        (Some(digest), Some(bytes)) if bytes <= PACKAGE_BYTES_MAX => {
            Ok(Layer { digest: digest.into(), bytes })
        }
        _ => bail!("the manifest is no package's"),
    }
}

/// Fetches a blob to the file `part`, from where an earlier transfer stopped, and returns it.
fn fetch(
    client: &mut Client,
    hub: &mut HubSession,
    repository: &str,
    layer: &Layer,
    part: &Path,
    output: &Output,
) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("can't write {}", part.display());
    let mut file = whole_file::open_to_continue(part).with_context(failed)?;
    let mut bytes = Vec::new();
    (&file).take(layer.bytes as u64 + 1).read_to_end(&mut bytes).with_context(failed)?;
    if bytes.len() > layer.bytes {
        bytes.clear();
    }
    file.set_len(bytes.len() as u64).with_context(failed)?;
    file.seek(std::io::SeekFrom::End(0)).with_context(failed)?;
    let path = format!("/v2/{repository}/blobs/{}", layer.digest);
    while bytes.len() < layer.bytes {
        let last = (bytes.len() + PART_BYTES).min(layer.bytes) - 1;
        let range = [("range", format!("bytes={}-{last}", bytes.len()))];
        let response: Response = hub.ask(client, "GET", &path, &range, &[])?;
        if response.status != 206 || response.body.len() != last + 1 - bytes.len() {
            bail!("the hub sent another part than the one asked for: {}", reason(&response));
        }
        file.write_all(&response.body).with_context(failed)?;
        bytes.extend_from_slice(&response.body);
        progress(output, bytes.len(), layer.bytes);
    }
    file.sync_all().with_context(failed)?;
    if registry_digest(&bytes) != layer.digest {
        // The bytes that were there before may have been another package's.
        std::fs::remove_file(part).with_context(failed)?;
        bail!("what was fetched doesn't have its digest; pull it again");
    }
    Ok(bytes)
}
