//! No branch and no address depends on a key or a text: valgrind says so of the optimized library.
//!
//! valgrind 3 knows no AVX-512, so what it sees on x86 is the AVX2 and the portable backend. (On
//! small cores the bare-metal checks count instructions for different keys, see `machines`.)
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testbed::skip_without_tool;

/// Builds the C library, with an additional compiler flag, and the program that hides secrets.
/// `None` where valgrind or its header is missing.
fn build(flag: &str) -> Option<PathBuf> {
    let missing = Command::new("valgrind").arg("--version").output().is_err()
        || !Path::new("/usr/include/valgrind/memcheck.h").exists();
    if missing {
        skip_without_tool("valgrind (Debian: valgrind)");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/cipher-c");
    let name = if flag.is_empty() { "native" } else { "portable" };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("constant-time-{name}"));
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", flag)
        .status()
        .unwrap();
    assert!(status.success());
    let program = target.join("secrets");
    let status = Command::new("cc")
        .arg("-I")
        .arg(folder.join("include"))
        .arg(folder.join("examples/secrets.c"))
        .arg(target.join("release/libtenure_cipher.a"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler is there");
    assert!(status.success());
    Some(program)
}

/// Whether valgrind finds anything; what it says.
fn run(program: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("valgrind")
        .args(["--error-exitcode=99", "--quiet"])
        .arg(program)
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code() == Some(99), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn native_backend_never_branches_on_a_secret() {
    let Some(program) = build("") else { return };
    let (found, report) = run(&program, &[]);
    assert!(!found, "{report}");
}

#[test]
fn portable_backend_never_branches_on_a_secret() {
    let Some(program) = build("--cfg tenure_portable") else { return };
    let (found, report) = run(&program, &[]);
    assert!(!found, "{report}");
    // The check itself works: a branch on the key is found.
    assert!(run(&program, &["leak"]).0);
}
