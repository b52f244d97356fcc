//! Cycles on the model of a PULP cluster: an estimate, see `pulp.rs` and `ri5cy.rs`.

use tenure_bench_report::{Row, Rows};

use crate::device::Machine;
use crate::elf::Image;
use crate::pulp::{Job, fork_join, stream};

const SHORT: usize = 16 * 1024;
const LONG: usize = 128 * 1024;
const CHUNK: usize = 16 * 1024;
const CORES: usize = 8;

/// One core and eight, in place and streamed.
pub(crate) fn measure(rows: &mut Rows) -> Result<(), String> {
    let path = crate::qemu::build(Machine::Riscv32)?;
    let file = std::fs::read(path).map_err(|error| error.to_string())?;
    let image = Image::parse(&file).ok_or("the image is no 32-bit ELF file")?;
    let job = Job { key: [1; 32], nonce: [2; 12], first: 0, double_rounds: 10 };
    let mut data = vec![0; LONG];
    let mut row = |len: usize, subject: &str, metric: &str, unit, value| {
        rows.push(Row {
            bench: format!("cipher/chacha20/{len}"),
            target: "ri5cy-model".into(),
            subject: subject.into(),
            metric: metric.into(),
            unit,
            value,
        });
    };
    let mut estimate = |len: usize, subject: &str, cycles: u64| {
        row(len, subject, "cycles, estimated", "cycles/byte", cycles as f64 / len as f64);
    };
    let scalar = fork_join(&image, "scalar_xor", job, &mut data[..SHORT], 1);
    estimate(SHORT, "tenure/rv32im, one core", scalar);
    let short = fork_join(&image, "xpulp_xor", job, &mut data[..SHORT], 1);
    estimate(SHORT, "tenure/xpulp, one core", short);
    let one = fork_join(&image, "xpulp_xor", job, &mut data, 1);
    estimate(LONG, "tenure/xpulp, one core", one);
    estimate(
        LONG,
        "tenure/xpulp, eight cores",
        fork_join(&image, "xpulp_xor", job, &mut data, CORES),
    );
    let streamed = stream(&image, job, &mut data, CORES, CHUNK);
    estimate(LONG, "tenure/xpulp, eight, streamed", streamed);
    let speedup = one as f64 / streamed as f64;
    row(LONG, "tenure/xpulp, eight, streamed", "one core's cycles over", "ratio", speedup);
    Ok(())
}
