//! Hands the linker the memory maps, and says which cores have memory protection.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for (binary, map) in
        [("tenure-board-qemu-cortex-m", "firmware"), ("tenure-loader-qemu-cortex-m", "loader")]
    {
        println!("cargo::rustc-link-arg-bin={binary}=-L{folder}/maps/{map}");
        println!("cargo::rustc-link-arg-bin={binary}=-Tlink.x");
    }
    println!("cargo::rerun-if-changed=maps");
    println!("cargo::rustc-check-cfg=cfg(memory_protection)");
    let target = std::env::var("TARGET").expect("cargo sets it");
    // An M0+ may have an MPU of the same kind, but an ARMv6-M core can't tell what a program tried.
    if target.starts_with("thumbv7m") {
        println!("cargo::rustc-cfg=memory_protection");
    }
}
