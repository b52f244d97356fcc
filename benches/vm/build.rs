//! Compiles the guests, to wasm and natively.

use std::{env, path::Path, process::Command};

const GUESTS: [&str; 5] = ["mark", "fib", "sha256", "sieve", "crc32"];

fn main() {
    println!("cargo::rerun-if-changed=guests");
    println!("cargo::rerun-if-env-changed=TENURE_CLANG");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let clang = env::var("TENURE_CLANG").unwrap_or("clang-22".into());
    for guest in GUESTS {
        let source = format!("guests/{guest}.c");
        let status = Command::new(&clang)
            .args(["--target=wasm32", "-O2", "-nostdlib", "-ffreestanding"])
            .args([
                "-Wl,--no-entry",
                "-Wl,--export=run",
                "-Wl,-z,stack-size=1024",
                "-Wl,--strip-all",
            ])
            .arg("-o")
            .arg(Path::new(&out).join(format!("{guest}.wasm")))
            .arg(&source)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{clang} could not compile {source}");
        cc::Build::new()
            .file(&source)
            .opt_level(2)
            .define("run", format!("native_{guest}").as_str())
            .warnings(false)
            .compile(&format!("native_{guest}"));
    }
}
