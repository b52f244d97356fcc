//! Hands the linker the memory map.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg=-L{folder}");
    println!("cargo::rustc-link-arg=-Tlink.x");
    // Functions that are the same code stand there once: 2.4 KB of the protocols' generic code.
    println!("cargo::rustc-link-arg=--icf=all");
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=device.x");
}
