//! Instruction counts under QEMU: builds the runner in `device`, starts it, reads its lines.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tenure_bench_report::Row;

const TARGET: &str = "riscv32imac-unknown-none-elf";

/// The engine as it is, and built without metering, for what that costs.
pub fn measure() -> Result<Vec<Row>, String> {
    let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
    let mut rows = run(&build(&device, "device", "")?)?;
    let unmetered = run(&build(&device, "device-unmetered", "--cfg unmetered")?)?;
    let runs = |row: &Row| row.subject == "tenure" && row.metric == "instructions";
    let unmetered = unmetered.into_iter().filter(runs);
    rows.extend(unmetered.map(|row| Row { subject: "tenure, unmetered".into(), ..row }));
    Ok(rows)
}

fn run(image: &Path) -> Result<Vec<Row>, String> {
    let output = Command::new("qemu-system-riscv32")
        .args(["-M", "virt", "-cpu", "rv32,s=false,f=false,d=false,h=false", "-m", "32M"])
        .args(["-bios", "none", "-nographic", "-monitor", "none", "-icount", "shift=0,sleep=off"])
        .arg("-kernel")
        .arg(image)
        .output()
        .map_err(|error| format!("qemu-system-riscv32: {error}"))?;
    if !output.status.success() {
        return Err("the runner failed".into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect())
}

/// Builds with rustup's target, or with Debian's toolchain and sources.
fn build(device: &Path, products: &str, flags: &str) -> Result<PathBuf, String> {
    let target_folder = std::env::var("CARGO_TARGET_DIR")
        .map_or(device.join("target"), |folder| Path::new(&folder).join(products));
    let mut cargo = Command::new("cargo");
    cargo.current_dir(device).env("CARGO_TARGET_DIR", &target_folder).env("RUSTFLAGS", flags);
    cargo.args(["build", "--quiet", "--release", "--target", TARGET]);
    if Path::new("/usr/lib/rustlib/src/rust/library").exists() {
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
        cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
        cargo.env("RUSTFLAGS", format!("-Clinker=ld.lld-22 -Clinker-flavor=ld.lld {flags}"));
        cargo.args(["-Zbuild-std=core,alloc", "-Zbuild-std-features=compiler-builtins-mem"]);
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the runner could not be built".into());
    }
    Ok(target_folder.join(TARGET).join("release/tenure-vm-device"))
}

/// `METRIC GUEST VALUE`.
fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let (measured, guest, value) = (words.next()?, words.next()?, words.next()?);
    let (metric, unit) = match measured {
        "native" | "instructions" => ("instructions", "instructions"),
        "instructions_in_slices" => ("instructions_in_slices", "instructions"),
        "compiled" | "unchecked" => ("instructions", "instructions"),
        "compiled_in_slices" => ("instructions_in_slices", "instructions"),
        "install" => ("install", "instructions"),
        "parse" => ("check_image", "instructions"),
        "start" => ("start", "instructions"),
        "empty_call" => ("empty_call", "instructions"),
        "install_ram" => ("install_ram", "bytes"),
        "ram" => ("ram", "bytes"),
        "image_bytes" => ("image", "bytes"),
        "wasm_bytes" => ("wasm", "bytes"),
        "fuel" => ("fuel", "units"),
        _ => return None,
    };
    let subject = match measured {
        "native" => "native",
        "compiled" | "compiled_in_slices" => "tenure, compiled",
        "unchecked" => "tenure, compiled, unchecked",
        _ => "tenure",
    };
    Some(Row {
        bench: format!("vm/{guest}"),
        target: "riscv32".into(),
        subject: subject.into(),
        metric: metric.into(),
        unit,
        value: value.parse().ok()?,
    })
}
