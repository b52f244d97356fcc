//! Cycles on the model of a PULP cluster: an estimate, see `pulp.rs` and `ri5cy.rs`.

use crate::device::Machine;
use crate::elf::Image;
use crate::pulp::{Job, fork_join, stream};
use crate::report::Row;

const LONG: usize = 128 * 1024;
const CHUNK: usize = 16 * 1024;
const CORES: usize = 8;

/// One core and eight, in place and streamed.
pub(crate) fn measure() -> Result<Vec<Row>, String> {
    let path = crate::qemu::build(Machine::Riscv32)?;
    let file = std::fs::read(path).map_err(|error| error.to_string())?;
    let image = Image::parse(&file).ok_or("the image is no 32-bit ELF file")?;
    let job = Job { key: [1; 32], nonce: [2; 12], first: 0, double_rounds: 10 };
    let mut data = vec![0; LONG];
    let mut rows = Vec::new();
    let mut row = |len: usize, subject: &str, metric, unit, value| {
        rows.push(Row {
            bench: format!("cipher/chacha20/{len}"),
            target: "ri5cy-model".into(),
            subject: subject.into(),
            metric,
            unit,
            value,
        });
    };
    let per_byte = |cycles: u64, len: usize| cycles as f64 / len as f64;
    let short = 16 * 1024;
    let scalar = fork_join(&image, "scalar_xor", job, &mut data[..short], 1);
    row(
        short,
        "tenure/rv32im, one core",
        "cycles, estimated",
        "cycles/byte",
        per_byte(scalar, short),
    );
    let one = fork_join(&image, "xpulp_xor", job, &mut data[..short], 1);
    row(short, "tenure/xpulp, one core", "cycles, estimated", "cycles/byte", per_byte(one, short));
    let one = fork_join(&image, "xpulp_xor", job, &mut data, 1);
    row(LONG, "tenure/xpulp, one core", "cycles, estimated", "cycles/byte", per_byte(one, LONG));
    let team = fork_join(&image, "xpulp_xor", job, &mut data, CORES);
    row(
        LONG,
        "tenure/xpulp, eight cores",
        "cycles, estimated",
        "cycles/byte",
        per_byte(team, LONG),
    );
    let streamed = stream(&image, job, &mut data, CORES, CHUNK);
    let value = per_byte(streamed, LONG);
    row(LONG, "tenure/xpulp, eight, streamed", "cycles, estimated", "cycles/byte", value);
    let speedup = one as f64 / streamed as f64;
    row(LONG, "tenure/xpulp, eight, streamed", "one core's cycles over", "ratio", speedup);
    Ok(rows)
}
