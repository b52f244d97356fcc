//! `tenure-bench-vm [--json] [host|riscv32]…`: the engine beside native code and its peers, times on the
//! host and instruction counts under QEMU.

mod host;
mod qemu;

use std::process::ExitCode;

use tenure_bench_report::Program;

const HELP: &str = "\
Usage: tenure-bench-vm [--json] [host|riscv32]...

Prints times (host) and instruction counts (riscv32, under QEMU) of tenure-vm, native code and peers.
Without a target: both.

  --json   one object a line: bench, target, subject, metric, unit, value

Example: cargo run --release -- --json riscv32
";

fn main() -> ExitCode {
    Program { help: HELP, targets: &["host", "riscv32"] }.run(|target, rows| {
        rows.extend(if target == "host" { host::measure() } else { qemu::measure()? });
        Ok(())
    })
}
