//! Hands the linker the memory map.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for (binary, map) in
        [("tenure-board-qemu-riscv32", "memory.x"), ("tenure-loader-qemu-riscv32", "loader.x")]
    {
        println!("cargo::rustc-link-arg-bin={binary}=-T{folder}/{map}");
        println!("cargo::rerun-if-changed={map}");
    }
}
