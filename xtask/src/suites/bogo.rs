//! BoGo, the tests of BoringSSL's own TLS: its runner speaks to `crates/tls/examples/bogo.rs` as a peer that breaks rules.
//!
//! A test that fails, unless [`NAMED`] has it with a reason, has failed. So has an entry there that nothing needs any more,
//! and the whole, if fewer tests pass than did before: the shim skips what isn't here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::report::Reported;
use crate::{process, toolchain};

/// The tests that pass with the snapshot of BoringSSL that docs/suites.md names.
const PASSED_MIN: usize = 514;

/// The tests that fail, by their reasons, which stand in docs/suites.md as well. A star stands for any text.
const NAMED: &[(&str, &[&str])] = &[
    (
        "TLS 1.2 is not spoken: the runner's server finds no suite, and says so in its own way",
        &["Downgrade-TLS*-Client-TLS", "MinimumVersion-Client*", "NoSSL3-Client-Unsolicited"],
    ),
    (
        "extensions that aren't spoken are not read",
        &[
            "DuplicateCertCompressionExt-TLS13",
            "EMS-Forbidden-TLS13",
            "ExtensionTrailingData-CertificateAuthorities-*",
            "ExtensionTrailingData-TrustAnchors-*",
            "GREASE-Server-TLS13",
            "PAKE-Extension-Duplicate",
            "RejectEmptyCertificateAuthorities-*",
            "RenegotiationInfo-Forbidden-TLS13",
            "TLS-ECH-Server-ECHInner*",
            "TLS13-Client-EmptyTicketFlags",
            "TLS13-Client-NonminimalTicketFlags",
            "TrustAnchors-EmptyID-ClientHello",
        ],
    ),
    (
        "another alert than BoringSSL's, where RFC 8446 names that or none",
        &[
            "DuplicateExtension*",
            "GarbageCertificate-*-TLS13",
            "Resume-Server-Extra*",
            "SendWarningAlerts-TLS13",
            "SkipEarlyData-SecondClientHelloEarlyData-TLS13",
            "TLS13-HRR-InvalidCompressionMethod",
            "TrailingMessageData-TLS13-*Finished-TLS",
            "UnencryptedEncryptedExtensions",
        ],
    ),
    (
        "a client whose algorithm the server doesn't verify shows no certificate (RFC 8446 §4.4.2)",
        &["Client-SignDefault-ECDSA_SHA1-TLS13", "Client-SignDefault-RSA_PKCS1_*-TLS13"],
    ),
    (
        "an RSA key signs by PSS with SHA-256 alone",
        &[
            "*-SignDefault-RSA_PSS_SHA384-TLS13",
            "*-SignDefault-RSA_PSS_SHA512-TLS13",
            "*Auth-SignatureType-TLS13",
        ],
    ),
    (
        "RFC 8446 allows it: versions of records, two shares of a group, a key that is left out after a retry, a ticket of \
         another suite with the same hash, no change_cipher_spec for a client without a session id",
        &[
            "CheckRecordVersion-TLS13",
            "DuplicateKeyShares-TLS13",
            "EmptySessionID-TLS13",
            "Resume-Server-OmitAllPSKsOnSecondClientHello",
            "Resume-Server-UnofferedCipher-TLS13",
            "Server-JDK11-NoWorkaround-3",
        ],
    ),
    ("a client makes one key share", &["MLKEMKeyShareIncluded*", "NotJustMLKEMKeyShare-*"]),
    ("Ed25519 is always spoken", &["Ed25519DefaultDisable-*", "*-VerifyDefault-Ed25519-TLS13"]),
    (
        "more warnings and more refused early data are taken than there",
        &["SendUserCanceledAlerts-TooMany-TLS13", "SkipEarlyData-TooMuchData-TLS13"],
    ),
    (
        "the keeper of a ticket knows its application protocol, the client does not",
        &["EarlyData-BadALPNMismatch-Client-TLS13"],
    ),
    (
        "the shim always asks for a server by its name, and offers nothing but certificates of X.509",
        &[
            "ServerCertificateType-Server-RejectsDefaultOnly-TLS13",
            "UnsolicitedServerNameAck-TLS-TLS13",
        ],
    ),
];

/// The tests whose outcome is a matter of time: each KeyUpdate is answered when it has come, and the runner counts the answers.
const UNSTEADY: &[&str] = &["KeyUpdate-Requested"];

/// The file that the runner writes.
#[derive(Deserialize)]
struct Results {
    tests: BTreeMap<String, Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    actual: String,
    #[serde(default)]
    error: String,
}

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    let mut results = results(root, from)?;
    results.retain(|name, _| !UNSTEADY.contains(&name.as_str()));
    let count = |actual| results.values().filter(|it| it.actual == actual).count();
    let (passed, skipped) = (count("PASS"), count("SKIP"));
    let failing = results.iter().filter(|(_, it)| it.actual != "PASS" && it.actual != "SKIP");
    let (mut failures, mut named) = (Vec::new(), BTreeMap::<&str, Vec<(&str, &Outcome)>>::new());
    for (name, outcome) in failing {
        match pattern_of(name) {
            Some((_, pattern)) => named.entry(pattern).or_default().push((name, outcome)),
            None => failures.push(format!("{name}: {}", outcome.error)),
        }
    }
    for (reason, patterns) in NAMED {
        let of_reason = patterns.iter().filter_map(|pattern| named.get(pattern)).flatten();
        println!("{} fail: {reason}", of_reason.clone().count());
        if verbose {
            of_reason.for_each(|(name, outcome)| println!("  {name}: {}", outcome.error));
        }
        let unused = patterns.iter().filter(|pattern| !named.contains_key(**pattern));
        failures.extend(unused.map(|it| format!("{it}: is named as a failure, and is none")));
    }
    if passed < PASSED_MIN {
        failures.push(format!("{passed} passed, and {PASSED_MIN} did before"));
    }
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    let differing: usize = named.values().map(Vec::len).sum();
    println!(
        "{} tests: {passed} passed, {differing} fail for a reason, {} failed, {skipped} need what isn't here",
        results.len(),
        failures.len()
    );
    if failures.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

/// The outcomes of all tests, by the runner in `from`, a checkout of BoringSSL.
fn results(root: &Path, from: &Path) -> Result<BTreeMap<String, Outcome>> {
    let runner = from.join("ssl/test/runner");
    ensure!(
        runner.join("runner.go").is_file(),
        "{} is no checkout of BoringSSL: it has no ssl/test/runner/runner.go",
        from.display()
    );
    process::run(process::cargo(root).args([
        "build",
        "--quiet",
        "-p",
        "tenure-tls",
        "--example",
        "bogo",
    ]))?;
    let shim = toolchain::target_folder(root).join("debug/examples/bogo");
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("runner");
    // The runner is one test of Go.
    let mut build = Command::new("go");
    build.current_dir(&runner).args(["test", "-c", "-o"]).arg(&program).arg(".");
    let built = process::run(&mut build);
    built.context("the runner needs Go, and modules that Go fetches")?;
    let file = folder.path().join("results.json");
    let output = Command::new(&program)
        .current_dir(&runner)
        .args(["-pipe", "-allow-unimplemented", "-loose-errors", "-shim-path"])
        .arg(&shim)
        .arg("-json-output")
        .arg(&file)
        .output()
        .context("the runner doesn't start")?;
    // It fails when a test does; without results it has failed itself.
    let text = std::fs::read_to_string(&file).with_context(|| {
        format!("the runner has no results: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let results: Results = serde_json::from_str(&text).context("the runner's results")?;
    ensure!(!results.tests.is_empty(), "the runner ran no test");
    Ok(results.tests)
}

/// The entry of [`NAMED`] that `name` belongs to: its reason and its pattern.
fn pattern_of(name: &str) -> Option<(&'static str, &'static str)> {
    NAMED.iter().find_map(|(reason, patterns)| {
        let pattern = patterns.iter().find(|pattern| matches(pattern, name))?;
        Some((*reason, *pattern))
    })
}

/// Whether `name` is what `pattern` says, in which a star stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, is_match) in [
            ("Hello", "Hello", true),
            ("Hello", "HelloRetry", false),
            ("Hello*", "Hello", true),
            ("Hello*-TLS13", "HelloRetry-Cookie-TLS13", true),
            ("Hello*-TLS13", "HelloRetry-TLS13-Split", false),
            ("*-Server-*13", "EarlyData-Server-TLS13", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} and {name}");
        }
    }
}
