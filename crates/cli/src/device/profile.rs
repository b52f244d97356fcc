//! `tenure profile`: what the machines of a recorded device, or one by its journal, spent their fuel on, by function and line.

mod flame;
mod spent;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};
use tenure_audit::{Replay, Watcher};
use tenure_hal::Instant;
use tenure_kernel::{MachineRecord, Profiler, fuel_of_turns};
use tenure_node::{Config, Notice};
use tenure_protocols::plug_in::Registry;
use tenure_replay::{Audience, Replayed};
use tenure_vm::Frame;
use tenure_wire::Name;
use tenure_wire::printable::printable;

use crate::device::process::recorded_config;
use crate::device::recorded::{breaks_off_after, name_by};
use crate::device::source::Source;
use crate::machine::journal;
use crate::make::symbols::Symbols;
use crate::terminal::output::Output;
use crate::whole_file;
use flame::Flame;
use spent::{Ledger, Line, MachineSpent, Share};

/// Show what the machines of a device spent their fuel on, by function and line.
///
/// The run is repeated from a record that `tenure device --record` made, or from the journal of one machine, which
/// `tenure journal fetch` got. Each unit of fuel is counted: those of a machine add up to what it paid for, and to what it
/// owed at the end; a journal doesn't say what turns cost. Names and lines come from packages that `tenure build` made,
/// with NAME.debug.wasm beside them; without, functions go by their numbers. A journal is run from its machine's package.
///
/// Example: tenure profile monday.tape --package thermostat.tenure --svg monday.svg
#[derive(clap::Args)]
pub struct Arguments {
    /// The record or the journal, or MACHINE@DEVICE: the journal of your machine, fetched from your device.
    #[arg(value_name = "FILE")]
    record: PathBuf,
    /// A package by which functions and lines are named; may be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// Show this machine alone.
    #[arg(long, value_name = "NAME")]
    machine: Option<Name>,
    /// Draw a flame graph to this file: what called what, and how much fuel it took.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How many functions and lines are shown of each machine, those that took most.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    rows: usize,
}

/// Repeats the run, and shows what it took.
///
/// # Errors
/// The record can't be read, the run differs from it, or a package is none of its machines'.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let shown = || arguments.record.display().to_string();
    let (source, ledger) = (Source::of(&arguments.record)?, Ledger::default());
    let broken_off = match journal::is_in(source.path())? {
        true => {
            repeat_journal(source.path(), &arguments.packages, &ledger).with_context(shown)?;
            None
        }
        false => {
            let replayed = repeat_record(source.path(), registry, &ledger);
            let replayed = replayed.with_context(shown)?;
            (!replayed.is_complete).then(|| breaks_off_after(&replayed))
        }
    };
    let mut machines = ledger.machines();
    name_all(&mut machines, &arguments.packages)?;
    if let Some(name) = &arguments.machine {
        machines.retain(|machine| machine.name == *name);
        anyhow::ensure!(!machines.is_empty(), "the record has no machine {name} that ran");
    }
    if machines.is_empty() {
        output.line("no machine ran", &json!({ "event": "profile", "units": 0 }));
    }
    let is_complete = broken_off.is_none();
    machines.iter().for_each(|machine| show(machine, arguments.rows, is_complete, output));
    if let Some(words) = broken_off.filter(|_| !output.is_json()) {
        output.line(&words, &Value::Null);
    }
    match &arguments.svg {
        Some(svg) => draw(&machines, svg, output),
        None => Ok(()),
    }
}

/// Repeats the run of a device.
fn repeat_record(path: &Path, registry: Registry, ledger: &Ledger) -> anyhow::Result<Replayed> {
    let file = File::open(path)?;
    let mut audience = Accountant { registry, ledger };
    Ok(tenure_replay::replay(&mut BufReader::new(file), &mut audience)?)
}

/// Repeats what a journal says of its machine, as far as it was of these packages.
fn repeat_journal(path: &Path, packages: &[PathBuf], ledger: &Ledger) -> anyhow::Result<()> {
    journal::replay_with(path, packages, || JournalAccountant(ledger))
}

/// Has a journal replayed for the sake of its machine's fuel.
struct JournalAccountant<'a>(&'a Ledger);

impl Watcher for JournalAccountant<'_> {
    fn began(&mut self, replay: &mut Replay) {
        replay.kernel().use_profiler(Box::new(WithoutTurns(self.0.clone())));
    }
}

/// Leaves out what turns cost: a replay has other turns than the device had.
struct WithoutTurns(Ledger);

impl Profiler for WithoutTurns {
    fn spent(&mut self, machine: &MachineRecord, calls: &[Frame], units: u64) {
        let turn = if calls.is_empty() { fuel_of_turns(1) } else { 0 };
        if units > turn {
            self.0.spent(machine, calls, units - turn);
        }
    }
}

/// Has a run repeated for the sake of its fuel.
struct Accountant<'a> {
    registry: Registry,
    ledger: &'a Ledger,
}

impl Audience for Accountant<'_> {
    fn config(&mut self, settings: &[u8]) -> Result<Config, String> {
        recorded_config(settings, self.registry).map_err(|error| format!("{error:#}"))
    }

    fn show(&mut self, _: Instant, _: &Notice) {}

    fn profiler(&mut self) -> Option<Box<dyn Profiler>> {
        Some(Box::new(self.ledger.clone()))
    }
}

/// Names what machines did by the packages that they are of.
fn name_all(machines: &mut [MachineSpent], packages: &[PathBuf]) -> anyhow::Result<()> {
    name_by(packages, &mut |path, package, digest| {
        let mut is_used = false;
        for machine in machines.iter_mut().filter(|machine| machine.package == *digest) {
            machine.symbols = Some(Symbols::beside_or_told(path, package)?);
            is_used = true;
        }
        Ok(is_used)
    })
}

fn show(machine: &MachineSpent, rows: usize, is_complete: bool, output: &Output) {
    let (units, functions, lines) = (machine.units(), machine.functions(), machine.lines());
    let (functions, more) = functions.split_at(rows.min(functions.len()));
    let lines = &lines[..rows.min(lines.len())];
    let name = printable(machine.name.as_str());
    let mut text = format!("{name}: {units} units of fuel\n   itself  with calls  function\n");
    let part = |taken: u64| taken as f64 * 100.0 / units.max(1) as f64;
    for Share { function, itself, with_calls } in functions {
        let (itself, with_calls) = (part(*itself), part(*with_calls));
        text += &format!("  {itself:>6.1}%  {with_calls:>9.1}%  {}\n", printable(function));
    }
    if !more.is_empty() {
        text += &format!("  and {} more; --rows shows them\n", more.len());
    }
    if !lines.is_empty() {
        text += "   itself  line\n";
    }
    for Line { file, line, itself } in lines {
        text += &format!("  {:>6.1}%  {}:{line}\n", part(*itself), printable(file));
    }
    let mut object = object(machine, units, functions, lines);
    object["complete"] = is_complete.into();
    output.line(text.trim_end(), &object);
}

fn object(machine: &MachineSpent, units: u64, functions: &[Share], lines: &[Line]) -> Value {
    let function = |share: &Share| {
        let Share { function, itself, with_calls } = share;
        json!({ "function": function, "itself": itself, "with_calls": with_calls })
    };
    let line = |line: &Line| json!({ "file": line.file, "line": line.line, "itself": line.itself });
    json!({
        "event": "profile",
        "machine": machine.name,
        "package": machine.package.to_string(),
        "units": units,
        "functions": functions.iter().map(function).collect::<Vec<_>>(),
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
    })
}

fn draw(machines: &[MachineSpent], path: &Path, output: &Output) -> anyhow::Result<()> {
    let mut flame = Flame::default();
    for machine in machines {
        for (stack, units) in machine.stacks() {
            let outer = std::iter::once(machine.name.to_string());
            flame.add(outer.chain(stack), units);
        }
    }
    let shown = path.display().to_string();
    whole_file::write(path, flame.to_svg()).with_context(|| format!("can't write {shown}"))?;
    output.line(&format!("drawn to {shown}"), &json!({ "event": "drawn", "file": shown }));
    Ok(())
}
