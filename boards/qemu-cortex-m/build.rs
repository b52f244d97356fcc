//! Hands the linker the memory maps.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for (binary, map) in
        [("tenure-board-qemu-cortex-m", "firmware"), ("tenure-loader-qemu-cortex-m", "loader")]
    {
        println!("cargo::rustc-link-arg-bin={binary}=-L{folder}/maps/{map}");
        println!("cargo::rustc-link-arg-bin={binary}=-Tlink.x");
    }
    println!("cargo::rerun-if-changed=maps");
}
