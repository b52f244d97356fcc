//! Instruction counts under QEMU: exact and repeatable, but instructions, not cycles.

use std::path::PathBuf;

use tenure_bench_report::{Row, Rows};

use crate::device::{Machine, Missing};

/// Both message lengths of every backend and peer on one machine.
pub(crate) fn measure(machine: Machine, table: &mut Rows) -> Result<(), String> {
    let image = build(machine)?;
    let (output, ended_well) = machine.run(&image).map_err(|error| explain(machine, error))?;
    if !ended_well {
        return Err(format!("the run failed:\n{output}"));
    }
    let mut rows: Vec<Row> = output.lines().filter_map(|line| row(machine, line)).collect();
    rows.sort_by(|a, b| a.bench.cmp(&b.bench));
    table.extend(rows);
    Ok(())
}

/// The image with RustCrypto's ciphers in it.
pub(crate) fn build(machine: Machine) -> Result<PathBuf, String> {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    machine.build(&folder.join("cipher-machines"), true).map_err(|error| explain(machine, error))
}

pub(crate) fn explain(machine: Machine, error: Missing) -> String {
    match error {
        Missing::Tool(tool) => format!("{} needs {tool}", machine.name()),
        Missing::Build(error) => error,
    }
}

/// `count BENCH SUBJECT INSTRUCTIONS BYTES`
fn row(machine: Machine, line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["count", bench, subject, instructions, bytes] = words[..] else { return None };
    let (instructions, len) = (instructions.parse::<f64>().ok()?, bytes.parse::<f64>().ok()?);
    let subject = match subject {
        "rustcrypto" if bench == "aead" => "chacha20poly1305".into(),
        "rustcrypto" => bench.into(),
        ours => format!("tenure/{ours}"),
    };
    Some(Row {
        bench: format!("cipher/{bench}/{bytes}"),
        target: machine.name().into(),
        subject,
        metric: "instructions".into(),
        unit: "instr/byte",
        value: instructions / len,
    })
}
