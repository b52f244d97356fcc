//! `tenure-bench-vm-programs [--json] [--embench FOLDER]… [--wasm3 FOLDER] [--only WORD]`: programs that nobody here wrote, natively,
//! in wasm3 and in tenure-vm, by instruction counts under QEMU.

mod compile;
mod emulator;
mod packages;
mod programs;
mod subjects;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use tenure_bench_report::{Program, Rows};

use subjects::{SUBJECTS, Subjects};
use summary::Counts;

const HELP: &str = "\
Usage: tenure-bench-vm-programs [--json] [--embench FOLDER]... [--wasm3 FOLDER] [--only WORD]

Counts the instructions that programs take on RV32 under QEMU: natively (clang -O2), in wasm3 (-O3) and in tenure-vm, as
boards ship it and at opt-level 3. What all compute must be the same. Packages of crates.io are fetched.

  --embench FOLDER  measure the programs of a checkout of Embench-IoT, too; of several, each name counts once
  --wasm3 FOLDER    a checkout of wasm3, instead of the one in the package wasm3-sys
  --only WORD       programs whose names contain the word
  --json            one object a line: bench, target, subject, metric, unit, value

Example: cargo run --release -- --embench ../../../embench-iot --only md5
";

#[derive(Default)]
struct Options {
    embench: Vec<PathBuf>,
    wasm3: Option<PathBuf>,
    only: String,
}

fn main() -> ExitCode {
    let mut options = Options::default();
    let mut rest = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--embench" => options.embench.push(value().into()),
            "--wasm3" => options.wasm3 = Some(value().into()),
            "--only" => options.only = value(),
            _ => rest.push(argument),
        }
    }
    Program { help: HELP, targets: &["riscv32"] }.run_with(rest, |_, rows| measure(&options, rows))
}

fn measure(options: &Options, rows: &mut Rows) -> Result<(), String> {
    let folder = compile::products();
    let packages = packages::fetch(&folder)?;
    let mut programs = programs::published(&packages);
    for embench in &options.embench {
        programs::add_embench(&mut programs, embench)?;
    }
    programs.retain(|program| program.name.contains(&options.only));
    let wasm3 = match &options.wasm3 {
        Some(folder) => folder.join("source"),
        None => packages.folder("wasm3-sys").join("wasm3/source"),
    };
    let subjects = Subjects::build(&folder, &wasm3)?;
    let mut all = Vec::new();
    let mut failed = Vec::new();
    for program in &programs {
        match subjects.run(program) {
            Ok(runs) => {
                let counts = Counts { program: program.name.clone(), runs };
                rows.extend(counts.rows());
                all.push(counts);
            }
            Err(error) => {
                eprintln!("{}: {error}", program.name);
                failed.push(program.name.as_str());
            }
        }
    }
    rows.extend(summary::ratios(&all));
    rows.extend(summary::fuel(&all));
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}
