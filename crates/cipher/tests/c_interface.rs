//! The C interface: its header is up to date, a C program links with it and runs, and neither
//! library can panic or allocate.
#![cfg(all(target_os = "linux", feature = "rustcrypto"))]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the C interface's crate.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/cipher-c")
}

/// Builds both libraries; where they are.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-interface");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(folder().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .unwrap();
    assert!(status.success(), "the C interface does not build");
    target.join("release")
}

fn symbols(file: &Path) -> String {
    let output = Command::new("nm").arg("-D").arg(file).output().expect("binutils' nm is there");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn header_is_generated_from_the_functions() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder().join("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let place = folder().join("include/tenure_cipher.h");
    if std::env::var_os("TENURE_UPDATE_HEADER").is_some() {
        std::fs::write(&place, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        header == committed,
        "include/tenure_cipher.h is out of date: run this test with TENURE_UPDATE_HEADER=1"
    );
}

/// That it links is the proof that no path panics: the panic handler calls a function that does
/// not exist.
#[test]
fn c_program_links_with_both_libraries_and_runs() {
    let libraries = build();
    for (name, library) in [("static", "libtenure_cipher.a"), ("shared", "libtenure_cipher.so")] {
        let program = libraries.join(format!("seal-{name}"));
        let status = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wl,--gc-sections", "-I"])
            .arg(folder().join("include"))
            .arg(folder().join("examples/seal.c"))
            .arg(libraries.join(library))
            .arg("-o")
            .arg(&program)
            .status()
            .expect("a C compiler is there");
        assert!(status.success(), "{library} does not link");
        let run = Command::new(&program).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout), "ok\n", "{library}");
    }
}

#[test]
fn shared_library_neither_panics_nor_allocates() {
    let symbols = symbols(&build().join("libtenure_cipher.so"));
    assert!(symbols.contains("T tenure_chacha20_poly1305_seal"), "{symbols}");
    for forbidden in ["panic", "malloc", "calloc", "realloc", "free", "abort", "unwind"] {
        assert!(!symbols.contains(forbidden), "`{forbidden}` among the symbols:\n{symbols}");
    }
}

/// The libraries have no std, whose macro for that they would need: they ask the processor themselves.
#[test]
fn both_libraries_ask_the_processor_for_wide_vectors_and_have_the_code_for_them() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let libraries = build();
    for library in ["libtenure_cipher.a", "libtenure_cipher.so"] {
        let mut objdump = Command::new("objdump");
        let output = objdump.arg("-d").arg(libraries.join(library)).output();
        let code = output.expect("binutils' objdump is there").stdout;
        let code = String::from_utf8_lossy(&code);
        for part in ["cpuid", "xgetbv", "%ymm", "%zmm"] {
            assert!(code.contains(part), "{library} has no {part}");
        }
    }
}
