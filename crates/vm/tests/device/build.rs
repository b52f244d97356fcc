//! Hands the linker the machine's memory map.

use std::env;

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let script = match env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it").as_str() {
        "riscv32" => "riscv.x",
        _ => "arm.x",
    };
    println!("cargo::rustc-link-arg=-T{folder}/{script}");
    println!("cargo::rerun-if-changed={script}");
}
