//! Hands the linker the memory map, and says when the anchor changed.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bins=-L{folder}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=memory.x");
    // The path stays the same from one run to the next, the authority doesn't.
    println!("cargo::rerun-if-env-changed=TENURE_ANCHOR");
    if let Ok(anchor) = std::env::var("TENURE_ANCHOR") {
        println!("cargo::rerun-if-changed={anchor}");
    } else {
        let out = std::env::var("OUT_DIR").expect("cargo sets it");
        std::fs::write(format!("{out}/none"), []).expect("a file");
        println!("cargo::rustc-env=TENURE_ANCHOR={out}/none");
    }
    for (name, default) in [("TENURE_BUFFER", "3072"), ("TENURE_DATE", "1800000000")] {
        println!("cargo::rerun-if-env-changed={name}");
        if std::env::var(name).is_err() {
            println!("cargo::rustc-env={name}={default}");
        }
    }
}
