//! BoGo, the tests of BoringSSL's own TLS: its runner speaks to `crates/tls/examples/bogo.rs` as a peer that breaks rules.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::judged::{Outcome, Record};
use crate::{process, toolchain};

/// With the snapshot of BoringSSL that docs/suites.md names.
const RECORD: Record = Record { named: NAMED, passed_min: 509 };

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
            "EncryptedExtensionsWithKeyShare-TLS13",
            "GarbageCertificate-*-TLS13",
            "Resume-Server-BinderWrongLength*",
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
        "RFC 8446 allows it: versions of records and in the old place of a ServerHello, two shares of a group, a key that is left out after a retry, a ticket of \
         another suite with the same hash, no change_cipher_spec for a client without a session id",
        &[
            "CheckRecordVersion-TLS13",
            "DuplicateKeyShares-TLS13",
            "EmptySessionID-TLS13",
            "HelloRetryRequestVersionMismatch-TLS13",
            "Resume-Server-OmitAllPSKsOnSecondClientHello",
            "Resume-Server-UnofferedCipher-TLS13",
            "Server-JDK11-NoWorkaround-3",
            "ServerBogusVersion",
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
    tests: BTreeMap<String, Ended>,
}

#[derive(Deserialize)]
struct Ended {
    actual: String,
    #[serde(default)]
    error: String,
}

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    let results = results(root, from)?;
    let steady = results.into_iter().filter(|(name, _)| !UNSTEADY.contains(&name.as_str()));
    let outcomes = steady.map(|(name, ended)| {
        let outcome = match &*ended.actual {
            "PASS" => Outcome::Passed,
            "SKIP" => Outcome::Skipped,
            _ => Outcome::Failed(ended.error),
        };
        (name, outcome)
    });
    RECORD.judge(&outcomes.collect(), verbose)
}

/// The outcomes of all tests, by the runner in `from`, a checkout of BoringSSL.
fn results(root: &Path, from: &Path) -> Result<BTreeMap<String, Ended>> {
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
