//! Compiles C for the processor and to WebAssembly, and links.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What C is compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Native,
    Wasm,
}

impl Target {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Target::Native => &[
                "--target=riscv32-unknown-elf",
                "-march=rv32imac",
                "-mabi=ilp32",
                "-mcmodel=medany",
            ],
            // What the wasm3 of crates.io knows, too: it has no bulk memory.
            Target::Wasm => {
                &["--target=wasm32", "-mcpu=mvp", "-msign-ext", "-mnontrapping-fptoint"]
            }
        }
    }
}

/// The folder of this bench.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of all that is compiled.
pub fn products() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or(here().join("target"), PathBuf::from);
    target.join("vm-programs")
}

/// Compiles a source file; `to` is the object.
pub fn object<S: AsRef<OsStr>>(
    target: Target,
    source: &Path,
    include: &[PathBuf],
    flags: &[S],
    to: &Path,
) -> Result<(), String> {
    let mut clang = Command::new(clang());
    clang.args(target.flags()).args(["-c", "-w", "-ffunction-sections", "-fdata-sections"]);
    clang
        .args(["-fsigned-char", "-fno-math-errno", "-nostdlibinc", "-isystem"])
        .arg(here().join("c/include"));
    for folder in include {
        clang.arg("-I").arg(folder);
    }
    said(clang.args(flags).arg("-o").arg(to).arg(source))
}

/// Links a module that exports `run`.
pub fn module(objects: &[PathBuf], to: &Path) -> Result<(), String> {
    let mut linker = Command::new(clang().replace("clang", "wasm-ld"));
    linker.args(["--no-entry", "--export=run", "--gc-sections", "--strip-all"]);
    said(linker.args(["-z", "stack-size=16384", "-o"]).arg(to).args(objects))
}

/// Links an image for the bare machine, of objects and libraries.
pub fn image(parts: &[PathBuf], to: &Path) -> Result<(), String> {
    let mut linker = Command::new(clang().replace("clang", "ld.lld"));
    linker.arg("--gc-sections").arg("-T").arg(here().join("device/riscv.x"));
    said(linker.arg("-o").arg(to).args(parts))
}

fn clang() -> String {
    env::var("TENURE_CLANG").unwrap_or("clang-22".into())
}

/// Runs a command; an error is the first lines that it says.
pub fn said(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().take(4).collect();
    Err(format!("{program}: {}", lines.join("\n")))
}
