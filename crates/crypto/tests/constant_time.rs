//! No branch and no address depends on a secret of TLS: valgrind says so of the optimised program `examples/secrets.rs`.
//!
//! `constant_time.supp` names the branches on what is public: whether a key is valid, and the letters of public keys and
//! signatures.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testbed::skip_without_tool;

/// The operations with secrets that `examples/secrets.rs` knows.
const OPERATIONS: [&str; 13] = [
    "x25519",
    "secp256r1",
    "secp384r1",
    "X25519MLKEM768",
    "P-256",
    "P-384",
    "Ed25519",
    "RSA",
    "ChaCha20-Poly1305",
    "AES-128-GCM",
    "AES-256-GCM",
    "HKDF and HMAC",
    "small processors",
];

/// Builds the program as a release; `None` where valgrind is missing.
fn build() -> Option<PathBuf> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip_without_tool("valgrind (Debian: valgrind)");
        return None;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("secrets");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--features", "all", "--example", "secrets"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the program does not build");
    Some(target.join("release/examples/secrets"))
}

/// The findings of valgrind in the operation `name`.
fn findings(program: &Path, name: &str) -> Option<String> {
    let output = Command::new("valgrind")
        .args(["--error-exitcode=99", "--quiet", "--read-inline-info=no"])
        .arg(concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/tests/constant_time.supp"))
        .arg(program)
        .arg(name)
        .output()
        .expect("valgrind starts");
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => None,
        Some(99) => Some(report),
        other => panic!("{name} ended with {other:?}: {report}"),
    }
}

#[test]
fn operations_with_secrets_never_branch_on_them() {
    let Some(program) = build() else { return };
    assert!(findings(&program, "leak").is_some(), "a branch on a secret was not found");
    let found: Vec<_> = OPERATIONS.iter().filter_map(|name| findings(&program, name)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
