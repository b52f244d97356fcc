//! `tenure-bench-kernel [--json]`: what a turn, a switch, a host call and a machine cost on a bare RV32, in
//! instructions and bytes, under QEMU.

use std::path::Path;
use std::process::{Command, ExitCode};

use tenure_bench_report::{Program, Row};

const HELP: &str = "\
Usage: tenure-bench-kernel [--json]

Prints what the kernel costs on RV32 under QEMU: exact instruction counts, and bytes of RAM.

  --json   one object a line: bench, target, subject, metric, unit, value
";
const TARGET: &str = "riscv32imac-unknown-none-elf";

fn main() -> ExitCode {
    Program { help: HELP, targets: &["riscv32"] }.run(|_, rows| {
        let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
        rows.extend(measure(&device)?);
        Ok(())
    })
}

fn measure(device: &Path) -> Result<Vec<Row>, String> {
    let folder = std::env::var("CARGO_TARGET_DIR")
        .map_or(device.join("target"), |folder| Path::new(&folder).join("kernel-device"));
    let mut cargo = Command::new("cargo");
    cargo.current_dir(device).env("CARGO_TARGET_DIR", &folder);
    cargo.args(["build", "--quiet", "--release", "--target", TARGET]);
    if Path::new("/usr/lib/rustlib/src/rust/library").exists() {
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
        cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
        cargo.env("RUSTFLAGS", "-Clinker=ld.lld-22 -Clinker-flavor=ld.lld");
        cargo.args(["-Zbuild-std=core,alloc", "-Zbuild-std-features=compiler-builtins-mem"]);
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the runner could not be built".into());
    }
    let output = Command::new("qemu-system-riscv32")
        .args(["-M", "virt", "-cpu", "rv32,s=false,f=false,d=false,h=false", "-m", "32M"])
        .args(["-bios", "none", "-nographic", "-monitor", "none", "-icount", "shift=0,sleep=off"])
        .arg("-kernel")
        .arg(folder.join(TARGET).join("release/tenure-kernel-device"))
        .output()
        .map_err(|error| format!("qemu-system-riscv32: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("the runner failed: {text}"));
    }
    Ok(text.lines().filter_map(row).collect())
}

/// `METRIC SUBJECT VALUE`.
fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let (metric, subject, value) = (words.next()?, words.next()?, words.next()?);
    let unit = match metric.rsplit_once('_') {
        Some((_, "ram")) => "bytes",
        Some((_, "fuel")) if metric.starts_with("host_call") => "fuel",
        _ => "instructions",
    };
    Some(Row {
        bench: "kernel".into(),
        target: "riscv32".into(),
        subject: subject.into(),
        metric: metric.replace('_', " "),
        unit,
        value: value.parse().ok()?,
    })
}
