//! An image as a folder of blobs by their digests (OCI image layout 1.0), and as one file of the same, which `docker load`
//! takes by a list of its own.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use oci_spec::image::{
    ANNOTATION_CREATED, ANNOTATION_DESCRIPTION, ANNOTATION_LICENSES, ANNOTATION_REF_NAME,
    ANNOTATION_REVISION, ANNOTATION_TITLE, ANNOTATION_VERSION, Arch, ConfigBuilder, Descriptor,
    Digest, HistoryBuilder, ImageConfiguration, ImageConfigurationBuilder, ImageIndex,
    ImageIndexBuilder, ImageManifest, ImageManifestBuilder, MediaType, OciLayout, OciLayoutBuilder,
    Os, PlatformBuilder, RootFsBuilder, SCHEMA_VERSION,
};
use serde::Serialize;
use serde_json::{Value, json};
use tenure_crypto::sha256;

use super::layer::{Entry, archive, compressed};
use super::{DATA, HEALTH, NAME, PORTS, PROGRAM, Source, USER, VERSION, reference};

/// The version of the layout.
const LAYOUT_VERSION: &str = "1.0.0";
const LAYOUT: &str = "oci-layout";
const INDEX: &str = "index.json";
/// The name of the whole image, for containerd, podman and Docker.
const ANNOTATION_IMAGE_NAME: &str = "io.containerd.image.name";
/// How often and how long Docker asks whether the hub lives, in nanoseconds.
const HEALTH_EVERY_NS: u64 = 10_000_000_000;
const HEALTH_TIMEOUT_NS: u64 = 5_000_000_000;
const HEALTH_START_NS: u64 = 30_000_000_000;

/// An image in memory.
pub(super) struct Image {
    /// The digest of its manifest.
    pub(super) digest: String,
    /// The layout's files, by their paths in it.
    files: BTreeMap<String, Vec<u8>>,
    /// The same list for `docker load`.
    list: Vec<u8>,
    unix_s: u64,
}

impl Image {
    /// An image of one layer, with these files.
    pub(super) fn of(entries: &[Entry], source: &Source) -> Result<Self> {
        let mut files = BTreeMap::new();
        let archive = archive(entries, source.unix_s)?;
        let layer = blob(&mut files, MediaType::ImageLayerGzip, compressed(&archive)?)?;
        let configuration = json_of(&configuration(&digest_of(&archive), source)?)?;
        let configuration = blob(&mut files, MediaType::ImageConfig, configuration)?;
        let list = json!([{
            "Config": path_of(configuration.digest()),
            "RepoTags": [reference()],
            "Layers": [path_of(layer.digest())],
        }]);
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageManifest)
            .config(configuration)
            .layers(vec![layer])
            .annotations(annotations(source))
            .build()?;
        let mut manifest = blob(&mut files, MediaType::ImageManifest, json_of(&manifest)?)?;
        let digest = manifest.digest().to_string();
        let platform = PlatformBuilder::default().architecture(architecture()).os(Os::Linux);
        manifest.set_platform(Some(platform.build()?));
        let names = [(ANNOTATION_IMAGE_NAME, reference()), (ANNOTATION_REF_NAME, VERSION.into())];
        let names = names.map(|(key, value)| (key.to_string(), value));
        manifest.set_annotations(Some(HashMap::from(names)));
        let index = ImageIndexBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageIndex)
            .manifests(vec![manifest])
            .build()?;
        files.insert(INDEX.into(), json_of(&index)?);
        let layout = OciLayoutBuilder::default().image_layout_version(LAYOUT_VERSION).build()?;
        files.insert(LAYOUT.into(), json_of(&layout)?);
        Ok(Self { digest, files, list: json_of(&list)?, unix_s: source.unix_s })
    }

    /// Writes the layout to a folder, which is emptied before, and to a file.
    pub(super) fn write(&self, layout: &Path, file: &Path) -> Result<()> {
        if layout.exists() {
            fs::remove_dir_all(layout)
                .with_context(|| format!("cannot empty {}", layout.display()))?;
        }
        for (path, bytes) in &self.files {
            let path = layout.join(path);
            let folder = path.parent().context("a file without a folder")?;
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, bytes))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut entries = vec![
            Entry::folder("blobs", 0o755, 0),
            Entry::folder("blobs/sha256", 0o755, 0),
            Entry::file("manifest.json", 0o644, self.list.clone()),
        ];
        let files = self.files.iter();
        entries.extend(files.map(|(path, bytes)| Entry::file(path, 0o644, bytes.clone())));
        fs::write(file, archive(&entries, self.unix_s)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Adds a blob to the files of a layout.
fn blob(
    files: &mut BTreeMap<String, Vec<u8>>,
    kind: MediaType,
    bytes: Vec<u8>,
) -> Result<Descriptor> {
    let digest: Digest = digest_of(&bytes).parse()?;
    let descriptor = Descriptor::new(kind, bytes.len() as u64, digest);
    files.insert(path_of(descriptor.digest()), bytes);
    Ok(descriptor)
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = sha256(&[bytes]);
    let digits: String = digest.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// The place of a blob in a layout (OCI image layout, "Blobs").
fn path_of(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm(), digest.digest())
}

/// JSON with its keys in order: the values have maps without one.
fn json_of(value: &impl Serialize) -> Result<Vec<u8>> {
    let value: Value = serde_json::to_value(value)?;
    Ok(serde_json::to_vec(&value)?)
}

/// This machine's architecture, as images name it.
fn architecture() -> Arch {
    match std::env::consts::ARCH {
        "x86_64" => Arch::Amd64,
        "aarch64" => Arch::ARM64,
        other => Arch::Other(other.into()),
    }
}

/// How the image is run. The health isn't OCI's: Docker and podman read it there.
fn configuration(archive: &str, source: &Source) -> Result<Value> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let program = format!("/{PROGRAM}");
    let config = ConfigBuilder::default()
        .user(format!("{USER}:{USER}"))
        .exposed_ports(words(&PORTS))
        .env(words(&["PATH=/usr/local/bin"]))
        .entrypoint(words(&[program.as_str(), "hub"]))
        .cmd(words(&["--help"]))
        .volumes(vec![format!("/{DATA}")])
        .working_dir(format!("/{DATA}"))
        .labels(annotations(source))
        .stop_signal("SIGTERM")
        .build()?;
    let history = HistoryBuilder::default().created(source.time()).created_by("cargo xtask image");
    let rootfs = RootFsBuilder::default().typ("layers").diff_ids(vec![archive.to_string()]);
    let configuration = ImageConfigurationBuilder::default()
        .created(source.time())
        .architecture(architecture())
        .os(Os::Linux)
        .config(config)
        .rootfs(rootfs.build()?)
        .history(vec![history.build()?])
        .build()?;
    let mut configuration = serde_json::to_value(configuration)?;
    let asked = [&["CMD", program.as_str()][..], &HEALTH].concat();
    configuration["config"]["Healthcheck"] = json!({
        "Test": asked,
        "Interval": HEALTH_EVERY_NS,
        "Timeout": HEALTH_TIMEOUT_NS,
        "StartPeriod": HEALTH_START_NS,
    });
    Ok(configuration)
}

fn annotations(source: &Source) -> HashMap<String, String> {
    let mut pairs = vec![
        (ANNOTATION_TITLE, "Tenure hub".to_string()),
        (ANNOTATION_DESCRIPTION, "The directory of a fleet of devices that run Tenure".into()),
        (ANNOTATION_LICENSES, env!("CARGO_PKG_LICENSE").into()),
        (ANNOTATION_VERSION, VERSION.into()),
        (ANNOTATION_CREATED, source.time()),
    ];
    pairs.extend(source.revision.iter().map(|revision| (ANNOTATION_REVISION, revision.clone())));
    pairs.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// Reads a layout as its users do, and checks each blob by its digest and length, and the layer by what is compressed in it.
/// Returns the archive of the layer, and the configuration.
pub(super) fn check(layout: &Path) -> Result<(Vec<u8>, ImageConfiguration)> {
    let version = OciLayout::from_file(layout.join(LAYOUT))?;
    ensure!(version.image_layout_version() == LAYOUT_VERSION, "a layout of another version");
    let index = ImageIndex::from_file(layout.join(INDEX))?;
    let [manifest] = &index.manifests()[..] else { bail!("no image, or several") };
    let names = manifest.annotations().as_ref();
    let name = names.and_then(|names| names.get(ANNOTATION_IMAGE_NAME));
    ensure!(name.is_some_and(|name| name.starts_with(NAME)), "the image has no name");
    let manifest = ImageManifest::from_reader(&checked(layout, manifest)?[..])?;
    let configuration = checked(layout, manifest.config())?;
    let configuration = ImageConfiguration::from_reader(&configuration[..])?;
    let [layer] = &manifest.layers()[..] else { bail!("no layer, or several") };
    let mut archive = Vec::new();
    GzDecoder::new(&checked(layout, layer)?[..]).read_to_end(&mut archive)?;
    let known = configuration.rootfs().diff_ids();
    ensure!(*known == [digest_of(&archive)], "the layer isn't the one of the configuration");
    Ok((archive, configuration))
}

/// A blob that is as its descriptor says.
fn checked(layout: &Path, descriptor: &Descriptor) -> Result<Vec<u8>> {
    let path = layout.join(path_of(descriptor.digest()));
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() as u64 == descriptor.size(), "{} has another length", path.display());
    let digest = digest_of(&bytes);
    ensure!(digest == descriptor.digest().as_ref(), "{} has another digest", path.display());
    Ok(bytes)
}
