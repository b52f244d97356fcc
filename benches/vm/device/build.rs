//! Compiles the guests, to wasm and natively, and hands the linker the machine's memory map.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use tenure_compile::{Bounds, C_FLAGS, Options, to_c};
use tenure_vm::{Image, Limits, NoHostFunctions, translate};

const GUESTS: [&str; 5] = ["mark", "fib", "sha256", "sieve", "crc32"];

fn main() {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    println!("cargo::rustc-link-arg=-T{}/riscv.x", folder.display());
    println!("cargo::rerun-if-changed=riscv.x");
    println!("cargo::rerun-if-changed=../guests");
    println!("cargo::rerun-if-env-changed=TENURE_CLANG");
    let clang = env::var("TENURE_CLANG").unwrap_or("clang-22".into());
    for guest in GUESTS {
        let source = folder.join("../guests").join(format!("{guest}.c"));
        let wasm = [
            "--target=wasm32",
            "-O2",
            "-nostdlib",
            "-ffreestanding",
            "-Wl,--no-entry",
            "-Wl,--export=run",
            "-Wl,-z,stack-size=1024",
            "-Wl,--strip-all",
        ];
        let module = out.join(format!("{guest}.wasm"));
        compile(&clang, &wasm, &source, &module);
        for (suffix, bounds) in [("", Bounds::Checked), ("_unchecked", Bounds::Unchecked)] {
            compiled(&clang, &module, &format!("compiled_{guest}{suffix}"), bounds, &out);
        }
        let entry = format!("-Drun=native_{guest}");
        let native = [
            "--target=riscv32-unknown-elf",
            "-march=rv32imac",
            "-mabi=ilp32",
            "-O2",
            "-ffreestanding",
            "-c",
            &entry,
        ];
        let object = out.join(format!("{guest}.o"));
        compile(&clang, &native, &source, &object);
        println!("cargo::rustc-link-arg={}", object.display());
    }
}

/// Compiles a guest's module as the compiled engine does.
fn compiled(clang: &str, module: &PathBuf, entry: &str, bounds: Bounds, out: &Path) {
    let wasm = std::fs::read(module).expect("clang has written it");
    let mut image = Vec::new();
    translate(&wasm, &NoHostFunctions, &Limits::default(), &mut image).expect("a module");
    let image = Image::parse(&image).expect("an image");
    let options = Options { entry: entry.into(), bounds, ..Options::default() };
    let (text, object) = (out.join(format!("{entry}.c")), out.join(format!("{entry}.o")));
    std::fs::write(&text, to_c(&image, &options).expect("known code"))
        .expect("OUT_DIR is writable");
    let mut flags =
        vec!["--target=riscv32-unknown-elf", "-march=rv32imac", "-mabi=ilp32", "-O2", "-w", "-c"];
    // The emulated core reads words anywhere.
    flags.extend(["-fpie", "-mcmodel=medany", "-mno-strict-align"]);
    flags.extend(C_FLAGS);
    compile(clang, &flags, &text, &object);
    println!("cargo::rustc-link-arg={}", object.display());
}

fn compile(clang: &str, flags: &[&str], source: &PathBuf, to: &PathBuf) {
    let status = Command::new(clang).args(flags).arg("-o").arg(to).arg(source).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{clang} could not compile {}",
        source.display()
    );
}
