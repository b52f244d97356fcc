//! Hands the linker the memory map of the machine that QEMU emulates, and what is written in C.

use std::path::Path;
use std::process::Command;

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // Under user emulation the linker's own map does.
    let script = if target.starts_with("riscv32") {
        Some("riscv.x")
    } else {
        target.starts_with("thumb").then_some("arm.x")
    };
    if let Some(script) = script {
        println!("cargo::rustc-link-arg=-T{folder}/{script}");
        println!("cargo::rerun-if-changed={script}");
    }
    println!("cargo::rustc-check-cfg=cfg(tenure_thumb, values(\"v6m\", \"v7m\"))");
    match target.split('-').next() {
        Some("thumbv6m") => println!("cargo::rustc-cfg=tenure_thumb=\"v6m\""),
        Some("thumbv7m") => println!("cargo::rustc-cfg=tenure_thumb=\"v7m\""),
        _ => {}
    }
    if std::env::var_os("CARGO_FEATURE_GAP8").is_some() {
        compile_gap8(Path::new(&folder));
    }
}

/// The runtime's names for the image of that feature. `CLANG` says which compiler.
fn compile_gap8(folder: &Path) {
    let object = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("gap8.o");
    let source = folder.join("../gap8/tenure_gap8.c");
    let status = Command::new(std::env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
        .args(["--target=riscv32", "-march=rv32imac", "-mabi=ilp32", "-ffreestanding", "-O2"])
        .args(["-Wall", "-Wextra", "-Werror", "-c", "-I"])
        .arg(folder.join("gap8"))
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "clang could not compile gap8.c");
    println!("cargo::rustc-link-arg-bin=tenure-cipher-gap8={}", object.display());
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", folder.join("gap8").display());
    println!("cargo::rerun-if-env-changed=CLANG");
}
