//! `tenure run`: machines at once, on a device in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tenure_board_linux::{Durability, UdpLink};
use tenure_node::{Config, Door as _, Wake};
use tenure_package::Package;
use tenure_vm::Limits;
use tenure_wire::Name;

use crate::device::process::{Running, open_flash, roomy_kernel};
use crate::home::Home;
use crate::machine::install::{Terms, place};
use crate::make::build::package_at;
use crate::make::package::read_package;
use crate::make::watch::{LOOK_EVERY, Watched};
use crate::reach::client::OwnerKeys;
use crate::terminal::clock::now_in_milliseconds;
use crate::terminal::output::{Output, has_reader};
use crate::terminal::stop::Stop;
use crate::whole_file;

/// How long it may go unnoticed that nobody reads the output any more.
const NAP: Duration = Duration::from_secs(2);

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
    /// Build again whenever a project or package changes, and update its machine here; goes on until Ctrl-C.
    #[arg(long)]
    watch: bool,
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
    let packages = match arguments.watch {
        true => Vec::new(),
        false => read_all(&arguments.packages, &home)?,
    };
    let stop = Arc::new(Stop::on_signals()?);
    let keys = OwnerKeys::of(&home)?;
    let folder = whole_file::private_folder().context("can't make a folder for the device")?;
    let flash = open_flash(folder.path(), Durability::ProcessKill)?;
    let mut config = Config::new(here()?, keys.owner());
    config.kernel = roomy_kernel();
    config.module = Limits::ample();
    config.rpc = tenure_rpc::Config::large();
    let link = UdpLink::bind(([127, 0, 0, 1], 0).into())?;
    let mut device = Running::start(config, flash, link, &home, folder.path(), None, true)?;
    if let Some(path) = &arguments.peripherals {
        device.attach(crate::device::peripherals::load(path)?)?;
    }
    for (path, package) in &packages {
        put(&mut device, &keys, path, package)?;
    }
    if arguments.keep || arguments.watch {
        let address = device.address();
        output.line(
            &format!("listening; call with: tenure call MACHINE FUNCTION --device {address}"),
            &serde_json::json!({ "event": "listening", "address": address.to_string() }),
        );
    }
    if arguments.watch {
        return watch(&mut device, &keys, &builds(&arguments.packages, home, &stop), &stop, output);
    }
    while !stop.is_requested() && has_reader() {
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
        device.rest_at_most(wake, &stop, NAP)?;
    }
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

/// Packages, with the paths where they stand.
type Packages = Vec<(PathBuf, Vec<u8>)>;

/// The packages at `paths`; projects among them are built.
fn read_all(paths: &[PathBuf], home: &Home) -> anyhow::Result<Packages> {
    let read = |path: &PathBuf| {
        let path = package_at(path, home)?;
        let package = read_package(&path)?;
        Ok((path, package))
    };
    paths.iter().map(read).collect()
}

/// Makes a machine of a package, or updates the one that is there, with all the rights that it asks for.
fn put(device: &mut Running, keys: &OwnerKeys, path: &Path, package: &[u8]) -> anyhow::Result<()> {
    let device_key = device.node().device_key();
    let grants = Package::parse(package)?.manifest().capabilities.clone();
    let terms = Terms { grants, ..Terms::default() };
    let placement = place(keys, device_key, package, &terms, now_in_milliseconds())?;
    device
        .with_moment(|node, moment| node.install(moment, package, &placement))
        .map_err(|error| anyhow!("{}: {error}", path.display()))?;
    device.symbols().insert_beside(path, package);
    Ok(())
}

/// Builds in a thread of its own, so that the machines run on: at once, and whenever something changes.
fn builds(paths: &[PathBuf], home: Home, stop: &Arc<Stop>) -> Receiver<anyhow::Result<Packages>> {
    let (sender, built) = channel();
    let (paths, stop) = (paths.to_vec(), stop.clone());
    std::thread::spawn(move || {
        loop {
            // A change during the build leads to another build.
            let mut watched = Watched::new(&paths);
            let is_heard = sender.send(read_all(&paths, &home)).is_ok();
            if !is_heard || !watched.wait(|| stop.is_requested()) {
                return;
            }
        }
    });
    built
}

/// Runs the device until the user has had enough, and puts on it what was built. Those of a build that the
/// device takes are updated; a build that fails leaves the machines as they are.
fn watch(
    device: &mut Running,
    keys: &OwnerKeys,
    built: &Receiver<anyhow::Result<Packages>>,
    stop: &Stop,
    output: &Output,
) -> anyhow::Result<()> {
    while !stop.is_requested() && has_reader() {
        let outcome = match built.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => bail!("the builder ended"),
        };
        if let Some(outcome) = outcome {
            let put_all = outcome.and_then(|packages| {
                packages.iter().try_for_each(|(path, package)| put(device, keys, path, package))
            });
            match put_all {
                Ok(()) => output.line(
                    "(built; watching, Ctrl-C ends)",
                    &serde_json::json!({ "event": "built" }),
                ),
                Err(error) => output.failure(&error),
            }
        }
        let wake = device.turn(output)?;
        device.rest_at_most(wake, stop, LOOK_EVERY)?;
    }
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

fn here() -> anyhow::Result<Name> {
    Ok("here".parse()?)
}
