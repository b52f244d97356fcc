//! `tenure-bench-vm [--json] [host|riscv32]…`: the engine beside native code and its peers, times on the
//! host and instruction counts under QEMU.

mod host;
mod qemu;
mod report;

use std::process::ExitCode;

const HELP: &str = "\
Usage: tenure-bench-vm [--json] [host|riscv32]...

Prints times (host) and instruction counts (riscv32, under QEMU) of tenure-vm, native code and peers.
Without a target: both.

  --json   one object a line: bench, target, subject, metric, unit, value

Example: cargo run --release -- --json riscv32
";

fn main() -> ExitCode {
    let mut json = false;
    let mut targets = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "-h" | "--help" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "host" | "riscv32" => targets.push(argument),
            _ => {
                eprintln!("unknown argument `{argument}`\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    if targets.is_empty() {
        targets = ["host", "riscv32"].map(String::from).to_vec();
    }
    let mut failed = false;
    for target in &targets {
        let measured = if target == "host" { Ok(host::measure()) } else { qemu::measure() };
        match measured {
            Ok(rows) => report::print(&rows, json),
            Err(error) => {
                eprintln!("{target}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
