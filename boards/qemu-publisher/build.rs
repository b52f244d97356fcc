//! Hands the linker the memory map.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg=-L{folder}");
    println!("cargo::rustc-link-arg=-Tlink.x");
    // Functions that are the same code stand there once.
    println!("cargo::rustc-link-arg=--icf=all");
    println!("cargo::rerun-if-changed=memory.x");
    // Never set here: files of the board with memory protection are shared.
    println!("cargo::rustc-check-cfg=cfg(memory_protection)");
}
