//! `tenure debug`: steps through what the machines of a recorded device did, or one by its journal, forwards and backwards.

mod adapter;
mod client;
mod console;
mod expression;
mod lines;
mod listening;
mod opening;
mod protocol;
mod session;
mod sources;
mod view;

use std::net::SocketAddr;
use std::path::PathBuf;

use tenure_protocols::plug_in::Registry;
use tenure_wire::Name;

use crate::terminal::output::Output;
use client::Starter;

/// Step through what the machines of a device did, forwards and backwards.
///
/// The run is repeated from a record that `tenure device --record` made, or from the journal of one machine, which
/// `tenure journal fetch` got. Breakpoints stand at lines and functions, with conditions; watched memory stops whoever
/// writes it, also backwards; variables are those of the source. Names and lines come from packages that `tenure build`
/// made, with NAME.debug.wasm beside them; a journal is run from its machine's package. Commands come from the terminal,
/// from a file or a pipe, or from an editor that speaks the Debug Adapter Protocol.
///
/// Example: tenure debug thermostat@attic --package thermostat.tenure
#[derive(clap::Args)]
pub struct Arguments {
    /// The record or the journal, or MACHINE@DEVICE: the journal of your machine, fetched from your device. An editor that
    /// speaks on standard input may name it instead.
    #[arg(value_name = "FILE", required_unless_present = "dap")]
    record: Option<PathBuf>,
    /// A package by which functions, lines and variables are named; may be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// Look at this machine alone.
    #[arg(long, value_name = "NAME")]
    machine: Option<Name>,
    /// Read commands from this file; one that fails ends it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dap", "dap_listen"])]
    commands: Option<PathBuf>,
    /// Speak the Debug Adapter Protocol on standard input and output.
    #[arg(long, conflicts_with = "dap_listen")]
    dap: bool,
    /// Speak it with who connects to this address of this computer, one after the other. An editor's `launch` brings the
    /// token that is printed, since other users connect, too; the record and packages are those named here.
    #[arg(long, value_name = "ADDRESS")]
    dap_listen: Option<SocketAddr>,
}

/// The record that is looked at, and how.
#[derive(Clone, Debug, Default)]
struct Subject {
    record: Option<PathBuf>,
    packages: Vec<PathBuf>,
    machine: Option<Name>,
}

/// Runs `tenure debug`.
///
/// # Errors
/// The record can't be read, the run differs from it, a package is none of its machines', or a command fails.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let Arguments { record, packages, machine, commands, dap, dap_listen } = arguments;
    let subject =
        Subject { record: record.clone(), packages: packages.clone(), machine: machine.clone() };
    let mut open = |subject: &Subject| opening::open(subject, registry);
    if *dap {
        let (mut input, mut to) = (std::io::stdin().lock(), std::io::stdout().lock());
        return adapter::serve(&mut input, &mut to, &subject, &Starter, &mut open);
    }
    if let Some(address) = dap_listen {
        return listening::listen(*address, &subject, &mut open, output);
    }
    let session = open(&subject)?;
    console::run(session, commands.as_deref(), output)
}
