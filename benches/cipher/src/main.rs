//! `tenure-bench-cipher [--json] [host|riscv32|thumbv7m|thumbv6m]…`: the speed of the cipher
//! engine beside its peers, times on the host and instruction counts under QEMU.

mod foreign;
mod host;
mod qemu;
mod report;

use std::process::ExitCode;

const HELP: &str = "\
Usage: tenure-bench-cipher [--json] [host|riscv32|thumbv7m|thumbv6m]...

Prints times (host) and instruction counts (the others, under QEMU) of tenure-cipher and its peers.
Without a target: all of them.

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
            "host" | "riscv32" | "thumbv7m" | "thumbv6m" => targets.push(argument),
            _ => {
                eprintln!("unknown argument `{argument}`\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    if targets.is_empty() {
        targets = ["host", "riscv32", "thumbv7m", "thumbv6m"].map(String::from).to_vec();
    }
    let mut failed = false;
    for target in &targets {
        let measured = match target.as_str() {
            "host" => Ok(host::measure()),
            device => qemu::measure(device),
        };
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
