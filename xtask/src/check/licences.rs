//! All dependencies come from crates.io, and those of what is linked here or for a board have a licence that
//! `deny.toml` lets in.
//!
//! Whether a vulnerability is known of one depends on the day and not on the code: `cargo deny check advisories`
//! looks that up before a release (`docs/releasing.md`).

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::report::Verdict;
use crate::{files, process, toolchain, workspace};

const RULES: &str = "deny.toml";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `deny.toml` that is read here.
#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences of one package, beside those of all.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

/// A package that was resolved.
#[derive(Deserialize)]
struct Resolved {
    name: String,
    /// An expression of SPDX.
    license: Option<String>,
}

pub(super) fn check(root: &Path) -> Result<Verdict> {
    let rules: Rules = toml::from_str(&files::read(&root.join(RULES))?).context(RULES)?;
    let mut faults = Vec::new();
    for lock in files::with_ending(root, &["Cargo.lock"])? {
        let shown = files::shown(&lock, root).to_string();
        let foreign = foreign_sources(&files::read(&lock)?).with_context(|| shown.clone())?;
        faults.extend(foreign.into_iter().map(|it| format!("{shown}: {it}")));
    }
    let boards = root.join("boards");
    let of_boards = workspace::host_workspaces(root)?;
    let of_boards = of_boards.iter().filter(|folder| folder.starts_with(&boards));
    for folder in of_boards.map(std::path::PathBuf::as_path).chain([root]) {
        let shown = files::shown(&folder.join("Cargo.toml"), root).to_string();
        for package in resolved(folder)? {
            if !is_allowed(&package, &rules.licenses)? {
                let licence = package.license.as_deref().unwrap_or("no licence");
                let name = package.name;
                faults
                    .push(format!("{shown}: `{name}` has {licence}, which {RULES} doesn't let in"));
            }
        }
    }
    if !faults.is_empty() {
        bail!("dependencies:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// Whether one of the licences that the package offers is let in. Some old packages write `/` for `OR`.
fn is_allowed(package: &Resolved, rules: &Licences) -> Result<bool> {
    let Some(licence) = &package.license else { return Ok(false) };
    let of_package = rules.exceptions.iter().filter(|one| one.package == package.name);
    let allowed = rules.allow.iter().chain(of_package.flat_map(|one| &one.allow));
    let parse = |name| Licensee::parse(name).map_err(|error| anyhow::anyhow!("{error}"));
    let allowed = allowed.map(|name| parse(name)).collect::<Result<Vec<_>>>().context(RULES)?;
    let Ok(offered) = Expression::parse_mode(licence, ParseMode::LAX) else { return Ok(false) };
    Ok(offered.evaluate(|licence| allowed.iter().any(|one| one.satisfies(licence))))
}

/// The packages in a `Cargo.lock` that come from elsewhere than this repository and crates.io.
fn foreign_sources(lock: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Lock {
        #[serde(default)]
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        source: Option<String>,
    }
    let lock: Lock = toml::from_str(lock)?;
    let foreign = lock.package.into_iter().filter_map(|package| {
        let source = package.source.filter(|source| source != CRATES_IO)?;
        Some(format!("`{}` comes from {source}", package.name))
    });
    Ok(foreign.collect())
}

/// All packages that the workspace in `folder` is built of, on this machine or for its board.
fn resolved(folder: &Path) -> Result<Vec<Resolved>> {
    #[derive(Deserialize)]
    struct Answer {
        packages: Vec<Resolved>,
    }
    let packages = workspace::packages(folder)?;
    let mut targets = packages.iter().flat_map(workspace::Package::lints);
    let target = targets.find_map(|lint| lint.target.clone()).map_or_else(toolchain::host, Ok)?;
    let mut command = process::cargo(folder);
    command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &target]);
    let answer: Answer = serde_json::from_str(&process::capture(&mut command)?)
        .context("cargo metadata wrote no such JSON")?;
    Ok(answer.packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_is_let_in_by_one_alternative_or_by_all_parts() {
        let exception = Exception { package: "tool".into(), allow: vec!["MPL-2.0".into()] };
        let allow = vec!["MIT".into(), "Unicode-3.0".into()];
        let rules = Licences { allow, exceptions: vec![exception] };
        let of = |name: &str, licence: Option<&str>| {
            let license = licence.map(str::to_owned);
            is_allowed(&Resolved { name: name.to_owned(), license }, &rules).unwrap()
        };
        let is_allowed = |licence| of("one", licence);
        assert!(of("tool", Some("MPL-2.0")) && !is_allowed(Some("MPL-2.0")));
        assert!(is_allowed(Some("GPL-3.0-only OR MIT")) && is_allowed(Some("GPL-3.0/MIT")));
        assert!(is_allowed(Some("MIT AND Unicode-3.0")));
        assert!(!is_allowed(Some("MIT AND GPL-3.0-only")) && !is_allowed(Some("ISC")));
        assert!(!is_allowed(Some("nonsense")) && !is_allowed(None));
    }

    #[test]
    fn package_from_a_branch_of_somebodys_is_named() {
        let lock = format!(
            "[[package]]\nname = \"ours\"\n[[package]]\nname = \"good\"\nsource = \"{CRATES_IO}\"\n\
             [[package]]\nname = \"fork\"\nsource = \"git+https://example.com/fork#1\"\n"
        );
        let foreign = foreign_sources(&lock).unwrap();
        assert_eq!(foreign, ["`fork` comes from git+https://example.com/fork#1"]);
    }
}
