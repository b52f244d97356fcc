//! `tenure replay`: repeats the run of a device that was recorded, or of a machine by its journal, and says where it
//! differs.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use tenure_hal::Instant;
use tenure_node::{Config, Notice};
use tenure_protocols::plug_in::Registry;
use tenure_replay::Audience;

use crate::device::process::{recorded_config, show};
use crate::device::recorded::seconds;
use crate::device::source::Source;
use crate::machine::journal;
use crate::make::symbols::MachineSymbols;
use crate::terminal::output::Output;

/// Repeat a run of a device that was recorded with `tenure device --record`.
///
/// A device is made of the record, handed the same input at the same time, and compared with the record, output by
/// output. Its log is shown as it was. Nothing is sent, and the device itself isn't needed.
///
/// The journal of one machine, as `tenure journal fetch` writes it, is replayed with the machine's package. If the machine
/// does something else than its journal says, the exit status is 3.
///
/// Example: tenure replay monday.tape
#[derive(clap::Args)]
pub struct Arguments {
    /// The record, or a machine's journal; or MACHINE@DEVICE: the journal of your machine, fetched from your device.
    #[arg(value_name = "FILE")]
    record: PathBuf,
    /// The package of the machine whose journal it is.
    #[arg(long, value_name = "PACKAGE")]
    package: Option<PathBuf>,
}

/// Repeats the run.
///
/// # Errors
/// The record can't be read, or the run differs from it.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let (path, source) = (arguments.record.display().to_string(), Source::of(&arguments.record)?);
    if journal::is_in(source.path())? {
        return journal::replay(source.path(), arguments.package.as_deref(), output);
    }
    ensure!(arguments.package.is_none(), "{path} is no machine's journal, and needs no --package");
    let file = File::open(source.path()).with_context(|| path.clone())?;
    let mut spectator = Spectator { registry, symbols: MachineSymbols::default(), output };
    let replayed =
        tenure_replay::replay(&mut BufReader::new(file), &mut spectator).context(path)?;
    let end = match replayed.is_complete {
        true => "and the flash is the same at the end",
        false => "where the record breaks off, as the device was killed or still runs",
    };
    let span_ms = replayed.until.as_millis();
    output.line(
        &format!(
            "the same run: {} inputs and {} outputs in {}, {end}",
            replayed.inputs,
            replayed.outputs,
            seconds(span_ms)
        ),
        &serde_json::json!({
            "event": "replayed",
            "boots": replayed.boots,
            "inputs": replayed.inputs,
            "outputs": replayed.outputs,
            "until_ms": span_ms,
            "complete": replayed.is_complete,
        }),
    );
    Ok(())
}

/// Shows the run as it was shown.
struct Spectator<'a> {
    registry: Registry,
    symbols: MachineSymbols,
    output: &'a Output,
}

impl Audience for Spectator<'_> {
    fn config(&mut self, settings: &[u8]) -> Result<Config, String> {
        recorded_config(settings, self.registry).map_err(|error| format!("{error:#}"))
    }

    fn show(&mut self, _: Instant, notice: &Notice) {
        show(notice, &self.symbols, self.output);
    }
}
