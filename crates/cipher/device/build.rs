//! Hands the linker the memory map of the machine that QEMU emulates.

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    let script = if target.starts_with("riscv") { "riscv.x" } else { "arm.x" };
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rustc-link-arg=-T{folder}/{script}");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rustc-check-cfg=cfg(tenure_thumb, values(\"v6m\", \"v7m\"))");
    match target.split('-').next() {
        Some("thumbv6m") => println!("cargo::rustc-cfg=tenure_thumb=\"v6m\""),
        Some("thumbv7m") => println!("cargo::rustc-cfg=tenure_thumb=\"v7m\""),
        _ => {}
    }
}
