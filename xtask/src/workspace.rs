//! The manifests' content: packages, their layers, and what they depend on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{files, process};

/// The highest layer whose crates run on bare metal.
pub(crate) const TOP_BARE_METAL_LAYER: u8 = 3;

/// A cargo package of this repository.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    /// The oldest release of Rust that compiles it.
    #[serde(default)]
    pub(crate) rust_version: Option<String>,
    /// The registries that it may go to; `None` is any, an empty list none.
    #[serde(default)]
    pub(crate) publish: Option<Vec<String>>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

/// One line of a manifest's `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]`.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The name that the manifest gives it, if it is another one.
    pub(crate) rename: Option<String>,
    /// `None`, `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// The folder, if the dependency is a package of this repository.
    pub(crate) path: Option<PathBuf>,
}

/// The products of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
    /// Features without which it is not built.
    #[serde(default, rename = "required-features")]
    pub(crate) required_features: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(default)]
    tenure: Option<TenureMetadata>,
}

#[derive(Debug, Deserialize)]
struct TenureMetadata {
    layer: Option<u8>,
    #[serde(default)]
    rooms: Vec<String>,
    #[serde(default)]
    lint: Vec<Lint>,
}

/// One way in which a workspace of its own is built, and so linted: `[[package.metadata.tenure.lint]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lint {
    /// The target triple; this machine if there is none.
    pub(crate) target: Option<String>,
    /// Features, separated by commas.
    #[serde(default)]
    pub(crate) features: String,
    /// Cargo's words for what of the package is built, such as `--lib`; all for this machine if there are
    /// none, and its library and programs for another.
    #[serde(default)]
    pub(crate) select: String,
    /// It takes peers that compile for minutes: linted by `check --peers` alone.
    #[serde(default)]
    pub(crate) peers: bool,
}

impl Package {
    /// A package in that folder, for tests.
    #[cfg(test)]
    pub(crate) fn of(name: &str, folder: PathBuf, dependencies: Vec<Dependency>) -> Self {
        Self {
            name: name.into(),
            manifest_path: folder.join("Cargo.toml"),
            dependencies,
            targets: Vec::new(),
            rust_version: None,
            publish: None,
            metadata: None,
        }
    }

    /// The layer that the manifest declares in `[package.metadata.tenure]`.
    pub(crate) fn layer(&self) -> Option<u8> {
        self.metadata.as_ref()?.tenure.as_ref()?.layer
    }

    /// The modules whose imports point down, the lowest first, as `[package.metadata.tenure]` has them.
    pub(crate) fn rooms(&self) -> &[String] {
        let tenure = self.metadata.as_ref().and_then(|metadata| metadata.tenure.as_ref());
        tenure.map_or(&[], |tenure| &tenure.rooms)
    }

    /// The ways in which it is built, if it says any.
    pub(crate) fn lints(&self) -> &[Lint] {
        let tenure = self.metadata.as_ref().and_then(|metadata| metadata.tenure.as_ref());
        tenure.map_or(&[], |tenure| &tenure.lint)
    }

    /// The folder that holds the manifest.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// Whether the crate must build where there is no operating system.
    pub(crate) fn is_bare_metal(&self) -> bool {
        self.layer().is_some_and(|layer| layer <= TOP_BARE_METAL_LAYER)
    }
}

impl Dependency {
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// The packages of the workspace in `folder`.
pub(crate) fn packages(folder: &Path) -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Answer {
        packages: Vec<Package>,
    }
    let json = process::capture(process::cargo(folder).args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let answer: Answer =
        serde_json::from_str(&json).context("cargo metadata wrote no such JSON")?;
    Ok(answer.packages)
}

/// The main workspace's crates that must build where there is no operating system.
pub(crate) fn bare_metal_packages(root: &Path) -> Result<Vec<Package>> {
    let chosen: Vec<_> = packages(root)?.into_iter().filter(Package::is_bare_metal).collect();
    if chosen.is_empty() {
        bail!("no crate declares a layer up to {TOP_BARE_METAL_LAYER}");
    }
    Ok(chosen)
}

/// The folders of all other workspaces of the repository: guests, firmware, fuzz targets, benches.
///
/// Guests and templates under `crates/` are data of a crate, and not built here.
pub(crate) fn other_workspaces(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for manifest in files::with_ending(root, &["Cargo.toml"])? {
        let folder = manifest.parent().unwrap_or(root);
        let text = files::read(&manifest)?;
        let is_template = text.contains(SDK_COPY) || text.contains(TEMPLATE_NAME);
        let is_data = folder.starts_with(root.join("crates")) && is_template;
        let is_workspace = text.lines().any(|line| line.trim() == "[workspace]");
        if folder != root && !is_data && is_workspace {
            folders.push(folder.to_path_buf());
        }
    }
    Ok(folders)
}

/// Those of [`other_workspaces`] that aren't guests: what runs on this machine or on a board.
pub(crate) fn host_workspaces(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = other_workspaces(root)?;
    folders.retain(|folder| {
        !folder.starts_with(root.join("examples")) && !folder.starts_with(root.join("sdk"))
    });
    Ok(folders)
}

/// Those of [`other_workspaces`] that hold what guests are written with, and the guests that have
/// their copy of it: `tenure build` puts it there.
pub(crate) fn guest_workspaces(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = other_workspaces(root)?;
    folders.retain(|folder| {
        let is_built_example =
            folder.starts_with(root.join("examples")) && folder.join(SDK_COPY).is_dir();
        folder.starts_with(root.join("sdk")) || is_built_example
    });
    Ok(folders)
}

/// The word in a template that the name of the project takes the place of.
const TEMPLATE_NAME: &str = "{{name}}";

/// Where a guest's copy of the SDK lies in its folder.
pub(crate) const SDK_COPY: &str = ".tenure/sdk";
