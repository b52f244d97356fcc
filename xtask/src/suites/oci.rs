//! The conformance suite of the OCI distribution specification: a program in Go that speaks with the registry of a hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::judged::{Outcome, Record};
use crate::demo::Player;
use crate::process;
use crate::report::Verdict;
use crate::tenure::{self, Profile};

/// The suite, which Go fetches from its module proxy.
const SUITE: &str =
    "github.com/opencontainers/distribution-spec/conformance@v0.0.0-20260831232431-97274622c111";
/// The version of the specification that it holds a registry to.
const SPECIFICATION: &str = "1.1";
const RECORD: Record = Record { named: &[], passed_min: 369 };

/// The output of `tenure login --token`.
#[derive(Deserialize)]
struct Token {
    token: String,
    url: String,
}

pub(super) fn run(root: &Path, verbose: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tenure = tenure::built(root, Profile::Debug)?;
    RECORD.judge(&outcomes(&tenure, &fetched(folder.path())?)?, verbose)
}

/// Runs the suite against a command `tenure` where it can be had, and says why it can't elsewhere.
pub(crate) fn run_if_there(tenure: &Path) -> Result<Verdict> {
    let folder = tempfile::tempdir()?;
    let suite = match fetched(folder.path()) {
        Ok(suite) => suite,
        Err(error) => return Ok(Verdict::Skipped(format!("{error:#}"))),
    };
    RECORD.judge(&outcomes(tenure, &suite)?, false).map(|()| Verdict::Passed)
}

/// The suite's program, in `folder`.
fn fetched(folder: &Path) -> Result<PathBuf> {
    let mut go = Command::new("go");
    go.args(["install", SUITE]).current_dir(folder).env("GOBIN", folder);
    let output = go.stdin(Stdio::null()).output().context("the suite needs Go")?;
    ensure!(
        output.status.success(),
        "Go can't fetch the suite: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(folder.join("conformance"))
}

/// All tests with their outcomes, against a hub of their own.
fn outcomes(tenure: &Path, suite: &Path) -> Result<BTreeMap<String, Outcome>> {
    let folder = tempfile::tempdir()?;
    let command = |words: &[&str]| {
        let mut command = Command::new(tenure);
        tenure::alone_in(command.args(words), folder.path());
        command
    };
    let local = "127.0.0.1:0";
    let words = ["hub", "--data", "hub", "--owner", "own", "--listen", local, "--pages", local];
    let hub = Player::start_silent(&mut command(&words), "the hub")?;
    let address = hub.address()?;
    let words = ["login", "--json", "--hub", &address, "--token", "suite", "--scope"];
    let token = process::capture(command(&words).arg("read,packages"))?;
    let Token { token, url } = serde_json::from_str(&token).context("the token of the hub")?;
    let registry = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
    let output = Command::new(suite)
        .current_dir(folder.path())
        .env("OCI_REGISTRY", registry)
        .env("OCI_TLS", "disabled")
        .env("OCI_USERNAME", "anybody")
        .env("OCI_PASSWORD", token)
        .env("OCI_VERSION", SPECIFICATION)
        .env("OCI_RESULTS_DIR", folder.path())
        .stdin(Stdio::null())
        .output()?;
    // It fails when a test does; without results it has failed itself.
    let text = std::fs::read_to_string(folder.path().join("junit.xml")).with_context(|| {
        format!("the suite has no results: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(text.lines().filter_map(outcome_in).collect())
}

/// The test that a line of JUnit's XML begins, as Go's encoder writes it: each element on a line of its own.
fn outcome_in(line: &str) -> Option<(String, Outcome)> {
    let attributes = line.trim_start().strip_prefix("<testcase ")?;
    let attribute = |name: &str| {
        let (_, value) = attributes.split_once(&format!("{name}=\""))?;
        value.split_once('"').map(|(value, _)| value.to_owned())
    };
    let outcome = match attribute("status")? {
        status if status == "passed" => Outcome::Passed,
        status if status == "skipped" => Outcome::Skipped,
        status => Outcome::Failed(status),
    };
    Some((attribute("name")?, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_is_read_from_its_line() {
        let line = r#"  <testcase name="OCI/blobs/head" classname="" time="0.1" status="failure">"#;
        let failed = Outcome::Failed("failure".into());
        assert_eq!(outcome_in(line), Some(("OCI/blobs/head".into(), failed)));
        assert_eq!(outcome_in("  <system-out>text</system-out>"), None);
    }
}
