//! Cycles of Cortex-M cores by a timing model over a trace: an estimate, see `cortex.rs`.

use tenure_bench_report::{Row, Rows};

use crate::cortex::{Core, LEN, Trace};
use crate::device::{self, Machine};
use crate::qemu;

/// Every core on its machine's image.
pub(crate) fn measure(rows: &mut Rows) -> Result<(), String> {
    for (machine, cores) in [
        (Machine::Thumbv6m, [Core::M0Plus, Core::M0PlusSmall]),
        (Machine::Thumbv7m, [Core::M3, Core::M4]),
    ] {
        let image = qemu::build(machine)?.with_file_name("tenure-cipher-trace");
        let log = device::trace(&image).map_err(|error| qemu::explain(machine, error))?;
        let trace = Trace::parse(&image, &log).ok_or("the image is no 32-bit ELF file")?;
        for bench in ["chacha20", "poly1305", "aead"] {
            for core in cores {
                let cost = trace.cost(&format!("trace_{bench}"), core);
                let (_, cycles) = cost.ok_or_else(|| format!("no trace of {bench}"))?;
                rows.push(Row {
                    bench: format!("cipher/{bench}/{LEN}"),
                    target: "cortex-m-model".into(),
                    subject: format!("tenure on {}", core.name()),
                    metric: "cycles, estimated".into(),
                    unit: "cycles/byte",
                    value: cycles as f64 / LEN as f64,
                });
            }
        }
    }
    Ok(())
}
