//! `tenure-bench-cipher [--json] [TARGET]…`: the speed of the cipher engine beside its peers: times on
//! the host, instruction counts under QEMU, and cycles on models of cores.

mod cluster;
#[path = "../../../crates/cipher/tests/machines/cortex.rs"]
mod cortex;
mod cortex_m;
#[path = "../../../crates/cipher/tests/machines/device.rs"]
mod device;
#[path = "../../../crates/cipher/tests/machines/elf.rs"]
mod elf;
mod foreign;
mod host;
#[path = "../../../crates/cipher/tests/machines/pulp.rs"]
mod pulp;
mod qemu;
#[path = "../../../crates/cipher/tests/machines/ri5cy.rs"]
mod ri5cy;
mod timing;

use std::process::ExitCode;

use device::Machine;
use tenure_bench_report::Program;

const HELP: &str = "\
Usage: tenure-bench-cipher [--json] [TARGET]...

Prints the speed of tenure-cipher and its peers: times (host), instruction counts under QEMU
(riscv32, riscv32+zbb for everything built with Zbb, thumbv7m, thumbv6m), cycles estimated by timing models
(cortex-m-model, ri5cy-model),
and whether times on the host tell secrets apart (timing).
Without a target: all of them.

  --json   one object a line: bench, target, subject, metric, unit, value

Example: cargo run --release -- --json riscv32
";

const TARGETS: [&str; 8] = [
    "host",
    "timing",
    "riscv32",
    "riscv32+zbb",
    "thumbv7m",
    "thumbv6m",
    "cortex-m-model",
    "ri5cy-model",
];

fn main() -> ExitCode {
    Program { help: HELP, targets: &TARGETS }.run(|target, rows| match target {
        "host" => {
            host::measure(rows);
            Ok(())
        }
        "timing" => {
            timing::measure(rows);
            Ok(())
        }
        "riscv32" => qemu::measure(Machine::Riscv32, rows),
        "riscv32+zbb" => qemu::measure(Machine::Riscv32Zbb, rows),
        "thumbv7m" => qemu::measure(Machine::Thumbv7m, rows),
        "thumbv6m" => qemu::measure(Machine::Thumbv6m, rows),
        "cortex-m-model" => cortex_m::measure(rows),
        _ => cluster::measure(rows),
    })
}
