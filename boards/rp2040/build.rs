//! Hands the linker the memory map of each program.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let maps = [
        ("tenure-loader-rp2040", "loader"),
        ("tenure-board-rp2040", "slot-a"),
        ("tenure-board-rp2040-b", "slot-b"),
    ];
    for (binary, map) in maps {
        println!("cargo::rustc-link-arg-bin={binary}=-L{folder}/maps/{map}");
        println!("cargo::rustc-link-arg-bin={binary}=-L{folder}/maps");
        println!("cargo::rustc-link-arg-bin={binary}=-Tlink.x");
    }
    println!("cargo::rerun-if-changed=maps");
}
