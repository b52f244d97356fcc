//! Hands the linker the memory map, and says when the certificates changed.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bins=-L{folder}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=memory.x");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(format!("{out}/none"), []).expect("a file");
    // The paths stay the same from one run to the next, the authority doesn't.
    for name in ["TENURE_ANCHOR", "TENURE_LEAF", "TENURE_MIDDLE", "TENURE_KEY"] {
        println!("cargo::rerun-if-env-changed={name}");
        match std::env::var(name) {
            Ok(file) => println!("cargo::rerun-if-changed={file}"),
            Err(_) => println!("cargo::rustc-env={name}={out}/none"),
        }
    }
    for (name, default) in [("TENURE_BUFFER", "3072"), ("TENURE_DATE", "1800000000")] {
        println!("cargo::rerun-if-env-changed={name}");
        if std::env::var(name).is_err() {
            println!("cargo::rustc-env={name}={default}");
        }
    }
}
