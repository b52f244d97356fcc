//! `tenure debug`: steps through what the machines of a recorded device did, or one by its journal, forwards and backwards.

mod adapter;
mod console;
mod expression;
mod lines;
mod opening;
mod protocol;
mod session;
mod view;

use std::io::{BufReader, BufWriter};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;
use tenure_protocols::plug_in::Registry;
use tenure_wire::Name;

use crate::terminal::output::Output;
use session::Session;

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
    /// The record or the journal, or MACHINE@DEVICE: the journal of your machine, fetched from your device. An editor may
    /// name it instead.
    #[arg(value_name = "FILE", required_unless_present_any = ["dap", "dap_listen"])]
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
    /// Speak it with who connects to this address of this computer, one after the other.
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
        return adapter::serve(&mut input, &mut to, &subject, &mut open);
    }
    if let Some(address) = dap_listen {
        return listen(*address, &subject, &mut open, output);
    }
    let session = open(&subject)?;
    console::run(session, commands.as_deref(), output)
}

/// Has a session of one client after the other.
fn listen(
    address: SocketAddr,
    subject: &Subject,
    open: &mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
    output: &Output,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        address.ip().is_loopback(),
        "{address} isn't this computer's alone, and the protocol has no keys: whoever connects sees all that the record \
         holds"
    );
    let failed = || format!("can't listen on {address}");
    let listener = TcpListener::bind(address).with_context(failed)?;
    let bound = listener.local_addr().with_context(failed)?;
    output.line(
        &format!("debug adapter listens on {bound}"),
        &json!({ "event": "listening", "address": bound.to_string() }),
    );
    loop {
        let (stream, _) = listener.accept().with_context(failed)?;
        let mut input = BufReader::new(stream.try_clone()?);
        // A failure with one client is no concern of the next one.
        if let Err(error) = adapter::serve(&mut input, &mut BufWriter::new(stream), subject, open) {
            output.failure(&error);
        }
    }
}
