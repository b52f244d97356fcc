//! The layers' arrows point strictly down, and are those that `ARCHITECTURE.md` shows.
//!
//! `sdk` and `examples` are guests and know the rest only through the host calls; `xtask` may read the
//! descriptions on layer 0, and use the Linux board, what flashes firmware and the test bed, and nothing knows
//! it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::files;
use crate::report::Verdict;
use crate::workspace::{self, Package};

const DOCUMENT: &str = "ARCHITECTURE.md";
/// The crate that only tests use, and `xtask`, which runs them.
const TESTBED: &str = "crates/testbed";
/// The figures of benchmarks.
const BENCH_REPORT: &str = "benches/report";
/// The highest layer that `xtask` may use, so that it stays quick to build.
const XTASK_LAYER_MAX: u8 = 0;
/// The crates that it may use beside: the medium of `xtask mesh` is raw frames on this computer, `xtask board`
/// flashes what a loader starts, docs/generated/limits.md has the limits of kernel and package, which the Linux
/// board brings along anyway, and `xtask suites` judges certificates by TLS.
const XTASK_BESIDE: [&str; 6] = [
    "tenure-board-linux",
    "tenure-boot",
    "tenure-crypto",
    "tenure-kernel",
    "tenure-package",
    "tenure-tls",
];

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let mut packages = workspace::packages(root)?;
    for folder in workspace::other_workspaces(root)? {
        packages.extend(workspace::packages(&folder)?);
    }
    let nodes: Vec<Node> = packages.iter().map(|package| Node::new(package, root)).collect();
    let mut violations = violations(&nodes);
    violations.extend(document_faults(&nodes, &files::read(&root.join(DOCUMENT))?));
    if !violations.is_empty() {
        bail!("the layering is broken:\n  {}", violations.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The part of the repository that a package belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    /// The crates and the boards.
    Host,
    Sdk,
    Examples,
    Xtask,
    /// `crates/testbed` and `benches/report`: tests, benchmarks and `xtask` use them, and no product.
    Testbed,
    /// Fuzz targets, benches: they use whatever they try, and nothing else uses them.
    Trial,
}

struct Node {
    name: String,
    zone: Zone,
    layer: Option<u8>,
    /// Folder in the repository, to resolve the arrows of other packages.
    folder: String,
    arrows: Vec<Arrow>,
}

struct Arrow {
    folder: String,
    is_dev: bool,
}

impl Node {
    fn new(package: &Package, root: &Path) -> Self {
        let relative =
            |folder: &Path| folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        let folder = relative(package.folder());
        let arrows = package
            .dependencies
            .iter()
            .filter_map(|dependency| {
                let path = dependency.path.as_deref()?;
                let path = without_copy(path, package.folder(), root);
                Some(Arrow { folder: relative(&path), is_dev: dependency.is_dev() })
            })
            .collect();
        let zone = Zone::of(&folder, package.layer());
        Node { name: package.name.clone(), zone, layer: package.layer(), folder, arrows }
    }
}

/// A guest's copy of the SDK stands for the SDK.
fn without_copy(path: &Path, package: &Path, root: &Path) -> PathBuf {
    match path.strip_prefix(package.join(workspace::SDK_COPY)) {
        Ok(rest) => root.join("sdk").join(rest),
        Err(_) => path.to_path_buf(),
    }
}

impl Zone {
    /// A package among the examples that declares a layer is no guest.
    ///
    /// A package within the folder of a crate or a board tries that on a machine of its own.
    fn of(folder: &str, layer: Option<u8>) -> Self {
        let depth = folder.split('/').count();
        match folder.split('/').next().unwrap_or_default() {
            _ if folder == TESTBED || folder == BENCH_REPORT => Zone::Testbed,
            "crates" | "boards" if depth > 2 => Zone::Trial,
            "crates" | "boards" | "bindings" => Zone::Host,
            "sdk" => Zone::Sdk,
            "examples" if layer.is_some() => Zone::Host,
            "examples" => Zone::Examples,
            "xtask" => Zone::Xtask,
            _ => Zone::Trial,
        }
    }
}

fn violations(nodes: &[Node]) -> Vec<String> {
    let mut found = Vec::new();
    for node in nodes {
        found.extend(declaration_fault(node));
        for arrow in &node.arrows {
            let Some(target) = nodes.iter().find(|other| other.folder == arrow.folder) else {
                let (name, folder) = (&node.name, &arrow.folder);
                found.push(format!("{name} uses {folder}, which is in no workspace here"));
                continue;
            };
            if let Some(rule) = arrow_fault(node, target, arrow.is_dev) {
                found.push(format!("{} uses {}: {rule}", node.name, target.name));
            }
        }
    }
    found
}

fn declaration_fault(node: &Node) -> Option<String> {
    let undeclared = node.zone == Zone::Host && node.layer.is_none();
    undeclared
        .then(|| format!("{} declares no layer ([package.metadata.tenure] layer = N)", node.name))
}

/// Where the table of the layers, with rows like `` | 2 | `kernel` | its job | `wire hal` | ``, differs from
/// the manifests.
fn document_faults(nodes: &[Node], document: &str) -> Vec<String> {
    let rows: Vec<Row> = document.lines().filter_map(Row::parse).collect();
    let mut faults = Vec::new();
    for (layer, node) in nodes.iter().filter_map(|node| Some((node.layer?, node))) {
        let name = node.short_name();
        match rows.iter().find(|row| (row.layer, row.name) == (layer, name)) {
            None => faults.push(format!("{DOCUMENT} does not show `{name}` on layer {layer}")),
            Some(row) => faults.extend(row.uses_fault(&node.uses(nodes))),
        }
    }
    for Row { name, .. } in rows {
        if !nodes.iter().any(|node| node.short_name() == name) {
            faults.push(format!("{DOCUMENT} shows `{name}`, which does not exist"));
        }
    }
    faults
}

impl Node {
    fn short_name(&self) -> &str {
        self.name.trim_start_matches("tenure-")
    }

    /// The crates that its product uses directly, sorted.
    fn uses<'a>(&self, nodes: &'a [Node]) -> Vec<&'a str> {
        let folders = self.arrows.iter().filter(|arrow| !arrow.is_dev).map(|arrow| &arrow.folder);
        let targets = folders.filter_map(|folder| nodes.iter().find(|node| node.folder == *folder));
        let mut names: Vec<_> =
            targets.filter(|node| node.layer.is_some()).map(Node::short_name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A row of the table of the layers.
struct Row<'a> {
    layer: u8,
    name: &'a str,
    /// The crates named in its last column.
    uses: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let layer = cells.next()?.parse().ok()?;
        let name = cells.next()?.split('`').nth(1)?;
        let uses = cells.nth(1)?.split('`').nth(1).unwrap_or_default();
        Some(Self { layer, name, uses: uses.split_whitespace().collect() })
    }

    fn uses_fault(&self, uses: &[&str]) -> Option<String> {
        let mut shown = self.uses.clone();
        shown.sort_unstable();
        let (name, all) = (self.name, uses.join(" "));
        (shown != uses).then(|| format!("{DOCUMENT}: `{name}` uses `{all}`"))
    }
}

/// The rule that an arrow from `node` to `target` breaks.
fn arrow_fault(node: &Node, target: &Node, is_dev: bool) -> Option<String> {
    match (node.zone, target.zone) {
        (Zone::Trial, Zone::Trial) => None,
        (Zone::Trial | Zone::Testbed | Zone::Xtask, Zone::Testbed) => None,
        (_, Zone::Testbed) if is_dev => None,
        (_, Zone::Testbed) => Some("only tests may use the test bed".into()),
        (Zone::Testbed, Zone::Host) => None,
        (_, Zone::Xtask | Zone::Trial) => Some("nothing may use the developer's tools".into()),
        (Zone::Trial, _) => None,
        (Zone::Xtask, Zone::Host) => target
            .layer
            .is_some_and(|layer| {
                layer > XTASK_LAYER_MAX && !XTASK_BESIDE.contains(&target.name.as_str())
            })
            .then(|| {
                format!(
                    "xtask may use layer {XTASK_LAYER_MAX} and {} only",
                    XTASK_BESIDE.join(", ")
                )
            }),
        (Zone::Sdk, Zone::Sdk) | (Zone::Examples, Zone::Sdk) => None,
        (Zone::Sdk | Zone::Examples, _) => Some("guests know only what sdk/ gives".into()),
        (_, Zone::Sdk | Zone::Examples) => Some("no part of the host may use a guest's".into()),
        (Zone::Host, Zone::Host) => {
            let (from, to) = (node.layer?, target.layer?);
            // A test may drive a crate with its neighbours, but not with what stands on it.
            let points_down = if is_dev { to <= from } else { to < from };
            (!points_down).then(|| format!("layer {from} points at layer {to}"))
        }
    }
}

#[cfg(test)]
mod tests;
