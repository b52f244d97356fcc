//! Hands the linker the memory map of the machine that QEMU emulates.

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
}
