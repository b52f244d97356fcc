//! `tenure-bench-cipher [--json] [TARGET]…`: the speed of the cipher engine beside its peers: times on
//! the host, instruction counts under QEMU, and cycles on a model of a PULP cluster.

mod cluster;
#[path = "../../../crates/cipher/tests/machines/device.rs"]
mod device;
#[path = "../../../crates/cipher/tests/machines/elf.rs"]
mod elf;
mod foreign;
mod host;
#[path = "../../../crates/cipher/tests/machines/pulp.rs"]
mod pulp;
mod qemu;
mod report;
#[path = "../../../crates/cipher/tests/machines/ri5cy.rs"]
mod ri5cy;
mod timing;

use std::process::ExitCode;

use device::Machine;

const HELP: &str = "\
Usage: tenure-bench-cipher [--json] [TARGET]...

Prints the speed of tenure-cipher and its peers: times (host), instruction counts under QEMU
(riscv32, thumbv7m, thumbv6m), cycles estimated by a timing model (ri5cy-model),
and whether times on the host tell secrets apart (timing).
Without a target: all of them.

  --json   one object a line: bench, target, subject, metric, unit, value

Example: cargo run --release -- --json riscv32
";

const TARGETS: [&str; 6] = ["host", "timing", "riscv32", "thumbv7m", "thumbv6m", "ri5cy-model"];

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
            target if TARGETS.contains(&target) => targets.push(argument),
            _ => {
                eprintln!("unknown argument `{argument}`\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    if targets.is_empty() {
        targets = TARGETS.map(String::from).to_vec();
    }
    let mut failed = false;
    for target in &targets {
        let measured = match target.as_str() {
            "host" => Ok(host::measure()),
            "timing" => Ok(timing::measure()),
            "riscv32" => qemu::measure(Machine::Riscv32),
            "thumbv7m" => qemu::measure(Machine::Thumbv7m),
            "thumbv6m" => qemu::measure(Machine::Thumbv6m),
            _ => cluster::measure(),
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
