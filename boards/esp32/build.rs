//! Hands the linker the memory map that `esp-hal` makes for the chip.

fn main() {
    println!("cargo::rustc-link-arg=-Tlinkall.x");
}
