//! `tenure run`: machines at once, on a device in this process.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use tenure_board_linux::{Durability, UdpLink};
use tenure_node::{Config, Door as _, Wake};
use tenure_package::Package;
use tenure_wire::Name;

use crate::client::OwnerKeys;
use crate::clock::now_in_milliseconds;
use crate::device::{Running, open_flash, roomy_kernel};
use crate::home::Home;
use crate::install::{Terms, package_at, place, read_package};
use crate::output::Output;
use crate::stop::Stop;
use crate::symbols::Symbols;

/// Run machines at once, on a device that lasts as long as the command.
///
/// They are granted all that they ask for. Ends when no machine has anything left to do, or with Ctrl-C. What they store is gone then.
/// Without --keep it ends with an error as soon as a machine fails, or at the end if one has logged an error.
///
/// Example: tenure run thermostat.tenure dashboard.tenure
#[derive(clap::Args)]
pub struct Arguments {
    /// The packages, as `tenure build` makes them, or folders of projects, which are built first.
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// Go on when no machine has anything to do, for calls from another terminal.
    #[arg(long)]
    keep: bool,
    /// A file that describes simulated peripherals: thermometers, buttons, lamps, cameras.
    #[arg(long, value_name = "FILE")]
    peripherals: Option<PathBuf>,
}

/// Runs `tenure run`.
///
/// # Errors
/// A package can't be read or isn't accepted.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let paths: Vec<PathBuf> =
        arguments.packages.iter().map(|path| package_at(path, &home)).collect::<Result<_, _>>()?;
    let packages: Vec<Vec<u8>> =
        paths.iter().map(|path| read_package(path)).collect::<Result<_, _>>()?;
    let stop = Stop::on_signals()?;
    let keys = OwnerKeys::of(&home)?;
    let folder = tempfile::tempdir().context("can't make a folder for the device")?;
    let flash = open_flash(folder.path(), Durability::ProcessKill)?;
    let mut config = Config::new(here()?, keys.owner());
    config.kernel = roomy_kernel();
    config.rpc = tenure_rpc::Config::large();
    let link = UdpLink::bind(([127, 0, 0, 1], 0).into())?;
    let mut device = Running::start(config, flash, link, &home, folder.path())?;
    if let Some(path) = &arguments.peripherals {
        device.attach(crate::peripherals::load(path)?)?;
    }
    for (path, package) in paths.iter().zip(&packages) {
        let device_key = device.node().device_key();
        let grants = Package::parse(package)?.manifest().capabilities.clone();
        let terms = Terms { grants, ..Terms::default() };
        let placement = place(&keys, device_key, package, &terms, now_in_milliseconds())?;
        device
            .with_moment(|node, moment| node.install(moment, package, &placement))
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        explain(&mut device, path, package);
    }
    if arguments.keep {
        let address = device.address();
        output.line(
            &format!("listening; call with: tenure call MACHINE FUNCTION --device {address}"),
            &serde_json::json!({ "event": "listening", "address": address.to_string() }),
        );
    }
    while !stop.is_requested() {
        let wake = device.turn(output)?;
        if let Some(machine) = device.failed()
            && !arguments.keep
        {
            bail!("{machine} failed; its log says why");
        }
        if wake == Wake::Never && !arguments.keep {
            return match device.complained() {
                Some(machine) => Err(anyhow!("{machine} logged an error")),
                None => Ok(()),
            };
        }
        device.rest(wake)?;
    }
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

/// Lets the log say where in the source the package's machine fails, as far as that is known.
fn explain(device: &mut Running, path: &Path, bytes: &[u8]) {
    let Ok(package) = Package::parse(bytes) else { return };
    match Symbols::beside(path, &package) {
        Ok(symbols) => device.symbols().insert(package.manifest().name.clone(), symbols),
        Err(error) => eprintln!("faults won't be explained: {error:#}"),
    }
}

fn here() -> anyhow::Result<Name> {
    Ok("here".parse()?)
}
