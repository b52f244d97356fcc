//! `tenure snapshot` and `tenure restore`: a machine's tree as it is at one moment, kept and put back.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tenure_package::Snapshot;
use tenure_wire::Name;
use tenure_wire::control::{Client as _, Restore, SnapshotBegin, SnapshotInfo, SnapshotRead};
use tenure_wire::printable::counted;

use crate::home::Home;
use crate::machine::install::{in_turn, transfer};
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::output::Output;
use crate::whole_file;

/// Fetch all that a machine stores, as it is at one moment.
///
/// Example: tenure snapshot thermostat -o thermostat.snapshot
#[derive(clap::Args)]
pub struct Arguments {
    /// The machine.
    machine: Name,
    /// Where to write it; by default MACHINE.snapshot.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
}

/// Put a snapshot back: it replaces all that the machine stores, which then starts afresh.
///
/// Example: tenure restore thermostat thermostat.snapshot
#[derive(clap::Args)]
pub struct RestoreArguments {
    /// The machine.
    machine: Name,
    /// The snapshot.
    snapshot: PathBuf,
    /// Put it back though it is another machine's: what this one stores is replaced by what that one did.
    #[arg(long)]
    of_another: bool,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure snapshot`.
///
/// # Errors
/// The device can't be reached or has no such machine, or the file can't be written.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let begin = SnapshotBegin { machine: arguments.machine.clone() };
    let info: SnapshotInfo = in_turn(&mut client, &device, |client| {
        client.at(&device.route).snapshot_begin(begin.clone())
    })?;
    let mut bytes: Vec<u8> = Vec::new();
    while bytes.len() < info.bytes as usize {
        let read = SnapshotRead { offset: bytes.len() as u32 };
        let part: Vec<u8> = client.at(&device.route).snapshot_read(read)?;
        ensure!(!part.is_empty(), "the device gave nothing more");
        bytes.extend(part);
    }
    Snapshot::parse(&bytes).context("what the device gave is no snapshot")?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}.snapshot", arguments.machine)),
    };
    whole_file::write_private(&path, &bytes)
        .with_context(|| format!("can't write {}", path.display()))?;
    output.line(
        &format!("{} has {} of {}", path.display(), counted(info.keys, "value"), arguments.machine),
        &json!({
            "machine": arguments.machine.as_str(),
            "values": info.keys,
            "bytes": info.bytes,
            "path": path.display().to_string(),
        }),
    );
    Ok(())
}

/// The most bytes of a snapshot in a file: a device's flash holds less.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Runs `tenure restore`.
///
/// # Errors
/// The file is no snapshot, the device can't be reached or has no such machine, or the machine's
/// budget has too little room.
pub fn restore(arguments: &RestoreArguments, output: &Output) -> anyhow::Result<()> {
    let path = &arguments.snapshot;
    let bytes = whole_file::read_named(path, FILE_BYTES_MAX)
        .with_context(|| format!("can't read {}", path.display()))?;
    let snapshot = Snapshot::parse(&bytes).with_context(|| path.display().to_string())?;
    ensure!(
        snapshot.name == arguments.machine || arguments.of_another,
        "{} is a snapshot of {}, and would replace all that {} stores; if that is what you mean, say \
         --of-another",
        path.display(),
        snapshot.name,
        arguments.machine
    );
    let values = snapshot.entries().count();
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    in_turn(&mut client, &device, |client| {
        transfer(client, &device, &bytes, output)?;
        client.at(&device.route).restore(Restore { machine: arguments.machine.clone() })
    })?;
    output.line(
        &format!("{} has {} from {}", arguments.machine, counted(values, "value"), path.display()),
        &json!({ "machine": arguments.machine.as_str(), "values": values }),
    );
    Ok(())
}
