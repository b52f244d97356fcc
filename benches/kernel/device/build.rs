//! Assembles the guest, and hands the linker the machine's memory map.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    println!("cargo::rustc-link-arg=-T{}/../../vm/device/riscv.x", folder.display());
    println!("cargo::rerun-if-changed=../../vm/device/riscv.x");
    println!("cargo::rerun-if-changed=guest.wat");
    fs::write(out.join("guest.wasm"), wat::parse_file(folder.join("guest.wat")).unwrap()).unwrap();
}
