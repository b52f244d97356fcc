//! `tenure install` and `tenure remove`: putting machines on a device and taking them off.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tenure_package::{Package, Placement};
use tenure_wire::control::{
    CHUNK_BYTES_MAX, Client as _, ControlError, GrantQuery, InstallBegin, InstallChunk,
    InstallCommit, JournalKeep, MachineStatus, Remove, Unban,
};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Capabilities, Name, Share, Term, VerifyingKey, Version};

use crate::home::Home;
use crate::machine::down::if_down;
use crate::machine::grant::{self, Grant, decide, describe};
use crate::machine::kept_packages::KeptPackages;
use crate::machine::lease::{self, TermArguments, next_lease_number};
use crate::make::build::package_at;
use crate::make::package::read_package;
use crate::make::watch::Watched;
use crate::reach::client::{Client, Device, OwnerKeys, Refused};
use crate::reach::whom::{Where, machine_named, machines};
use crate::terminal::clock::parse_milliseconds;
use crate::terminal::output::{Beside, Output, tell, tell_beside};
use crate::terminal::stop::Stop;

/// How long a command waits for its turn, while other commands transfer something to the same device. One that is
/// gone loses its turn after 20 seconds.
const TURN_PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The pause before it asks again.
const TURN_AGAIN: Duration = Duration::from_millis(300);

/// Put machines on a device, or update those that are there.
///
/// A machine that is updated keeps its key, its name and what it stored.
///
/// Example: tenure install thermostat.tenure --as attic-thermostat --grant all
#[derive(clap::Args)]
pub struct Arguments {
    /// The packages, as `tenure build` makes them, or folders of projects, which are built first.
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// The machine's name on the device; by default its package's.
    #[arg(long = "as", value_name = "NAME")]
    name: Option<Name>,
    /// The rights that the machine gets of those that its package asks for: `all`, `none`, a list with some of the
    /// names in it, as in --grant calls=thermostat@attic, or `same`, what the machine that is updated
    /// holds. Without it an update that asks for no more than that keeps it; else you are shown what the
    /// package asks for, and asked.
    #[arg(long, value_name = "WHAT")]
    grant: Vec<Grant>,
    /// Build and install again whenever a project or package changes, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    /// Have the machine keep a journal of all that enters it, in a ring of so many bytes; see `tenure journal`.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    journal: Option<u32>,
    #[command(flatten)]
    share: ShareArguments,
    #[command(flatten)]
    term: TermArguments,
    #[command(flatten)]
    place: Where,
}

/// A machine's share of the processor; without any of these an update leaves it as it is.
#[derive(clap::Args)]
pub struct ShareArguments {
    /// Its weight beside the other machines, 1 to 100, on a device with `--policy weighted-fair`.
    #[arg(long, value_name = "TIER")]
    tier: Option<u16>,
    /// The tier that it may ask for in a critical section.
    #[arg(long, value_name = "TIER")]
    tier_max: Option<u16>,
    /// The period of its reservation, on a device with `--policy earliest-deadline`.
    #[arg(long, value_name = "MS", requires = "bandwidth_permille", value_parser = parse_milliseconds)]
    period_ms: Option<u32>,
    /// How much of each period is reserved for it, in thousandths.
    #[arg(long, value_name = "THOUSANDTHS", requires = "period_ms")]
    bandwidth_permille: Option<u16>,
}

impl ShareArguments {
    /// Whether they name nothing.
    pub fn is_empty(&self) -> bool {
        self.tier.or(self.tier_max).or(self.bandwidth_permille).is_none()
            && self.period_ms.is_none()
    }

    /// The share that they name, where `known` is the machine's.
    ///
    /// # Errors
    /// They don't go together.
    pub fn over(&self, known: Share) -> anyhow::Result<Share> {
        let tier = self.tier.unwrap_or(known.tier);
        let share = Share {
            tier,
            tier_max: self.tier_max.unwrap_or(known.tier_max.max(tier)),
            period_ms: self.period_ms.unwrap_or(known.period_ms),
            bandwidth_permille: self.bandwidth_permille.unwrap_or(known.bandwidth_permille),
        };
        share.check()?;
        Ok(share)
    }
}

/// Take a machine off a device; `tenure trash restore` fetches it back.
///
/// Example: tenure remove thermostat
#[derive(clap::Args)]
pub struct RemoveArguments {
    /// The machine.
    machine: Name,
    /// Delete all it stored at once, and keep nothing in the trash.
    #[arg(long)]
    for_good: bool,
    #[command(flatten)]
    place: Where,
}

/// Lift the ban or probation of a machine that failed again and again.
///
/// An update lifts it too.
///
/// Example: tenure unban thermostat
#[derive(clap::Args)]
pub struct UnbanArguments {
    /// The machine.
    machine: Name,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure unban`.
///
/// # Errors
/// The device has no such machine, or can't be reached.
pub fn unban(arguments: &UnbanArguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let machine = arguments.machine.clone();
    client.at(&device.route).unban(Unban { machine })?;
    let name = &arguments.machine;
    let state = machine_named(&mut client, &device, name)?;
    output.line(
        &format!("nothing is held against {name} any more{}", if_down(&state)),
        &serde_json::json!({ "unbanned": name.as_str(), "state": state.state }),
    );
    Ok(())
}

/// Runs `tenure install`.
///
/// # Errors
/// A package can't be read or isn't one, or the device refuses it.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    if arguments.name.is_some() && arguments.packages.len() > 1 {
        bail!("--as names one machine; install the packages one by one");
    }
    if !arguments.watch {
        return install_all(arguments, output);
    }
    let stop = Stop::on_signals()?;
    loop {
        // A change during the build leads to another build.
        let mut watched = Watched::new(&arguments.packages);
        if let Err(error) = install_all(arguments, output) {
            output.failure(&error);
        }
        output.line("watching; Ctrl-C ends", &serde_json::json!({ "event": "watching" }));
        if !watched.wait(|| stop.is_requested()) {
            return Ok(());
        }
    }
}

/// Builds what is a project, and installs all packages.
fn install_all(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let paths: Vec<PathBuf> =
        arguments.packages.iter().map(|path| package_at(path, &home)).collect::<Result<_, _>>()?;
    let packages: Vec<Vec<u8>> =
        paths.iter().map(|path| read_package(path)).collect::<Result<_, _>>()?;
    let mut client = Client::new(&home)?;
    let device = arguments.place.connect(&mut client)?;
    for (path, bytes) in paths.iter().zip(&packages) {
        let asked = Package::parse(bytes)?.manifest().capabilities.clone();
        let name = arguments.name.clone();
        let known = replaced(&mut client, &device, bytes, &name)?;
        let held = known.as_ref().map(|known| held(&mut client, &device, known)).transpose()?;
        let grants = decide(&arguments.grant, &asked, held.as_ref())
            .with_context(|| path.display().to_string())?;
        let done = done_with(known.as_ref(), &Package::parse(bytes)?);
        let was = known.as_ref().map(|known| known.version);
        let share = known.as_ref().map_or(Share::default(), |machine| machine.share);
        let term = known.as_ref().map_or(Term::default(), |machine| machine.term);
        let (share, term) = (arguments.share.over(share)?, arguments.term.over(term));
        if term.is_over(term.signed_unix_s) {
            bail!("its lease {}, which is over; say a later end", lease::in_words(&term));
        }
        let terms = Terms { name, grants, share, term };
        let machine = install((&mut client, &device), bytes, known.as_ref(), &terms, output)
            .with_context(|| path.display().to_string())?;
        let (name, key) = (&machine.name, machine.key.to_string());
        let granted = match asked.is_empty() {
            true => String::new(),
            false => format!("\n  granted: {}", describe(&terms.grants)),
        };
        let granted = match term.ends_unix_s {
            None => granted,
            Some(_) => format!("{granted}\n  its lease {}", lease::in_words(&term)),
        };
        output.line(
            &format!(
                "{} on {}, key {key}{granted}{}",
                in_words(done, &machine, was),
                device.status.name,
                if_down(&machine)
            ),
            &serde_json::json!({
                "installed": name.as_str(),
                "done": done,
                "version": machine.version,
                "version_before": was,
                "state": machine.state,
                "device": device.status.name.as_str(),
                "id": machine.id.to_string(),
                "key": key,
                "asked": grant::object(&asked),
                "granted": grant::object(&terms.grants),
                "term": term,
            }),
        );
        if let Some(bytes) = arguments.journal {
            let keep = JournalKeep { machine: name.clone(), bytes };
            let kept = client.at(&device.route).journal_keep(keep);
            kept.with_context(|| format!("{name} is installed, and keeps no such journal"))?;
        }
    }
    Ok(())
}

/// The word for an installation, where `known` was there before.
fn done_with(known: Option<&MachineStatus>, package: &Package<'_>) -> &'static str {
    let version = package.manifest().version;
    match known {
        None => "installed",
        Some(known) if known.digest == package.digest() => "installed again",
        Some(known) if known.version > version => "downgraded",
        Some(_) => "updated",
    }
}

/// The outcome for `machine`, which had the version `was` before.
fn in_words(done: &str, machine: &MachineStatus, was: Option<Version>) -> String {
    let MachineStatus { name, version, .. } = machine;
    match was {
        Some(was) if was == *version && done == "updated" => {
            format!("{done} {name} to another build of {version}")
        }
        Some(was) if was != *version => format!("{done} {name} from {was} to {version}"),
        _ => format!("{done} {name} {version}"),
    }
}

/// Installs a package in the place of the machine `known`, which keeps its name, share and term.
///
/// # Errors
/// The package asks for what isn't granted, or the device refuses it.
pub fn update(
    client: &mut Client,
    device: &Device,
    package: &[u8],
    known: &MachineStatus,
    grants: &[Grant],
) -> anyhow::Result<MachineStatus> {
    let asked = Package::parse(package)?.manifest().capabilities.clone();
    let held = held(client, device, known)?;
    let grants = decide(grants, &asked, Some(&held))?;
    let (share, term) = (known.share, known.term);
    let terms = Terms { name: Some(known.name.clone()), grants, share, term };
    install((client, device), package, Some(known), &terms, &Output::silent())
}

/// The rights of a machine on the device.
///
/// # Errors
/// The device can't be reached, or has no such machine.
pub fn held(
    client: &mut Client,
    device: &Device,
    known: &MachineStatus,
) -> anyhow::Result<Capabilities> {
    let query = GrantQuery { machine: known.name.clone() };
    grant::held(&client.at(&device.route).grants(query)?)
}

/// Runs `tenure remove`.
///
/// # Errors
/// The device has no such machine, or can't be reached.
pub fn remove(arguments: &RemoveArguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let (machine, for_good) = (arguments.machine.clone(), arguments.for_good);
    let remove = Remove { machine, for_good };
    client.at(&device.route).remove(remove)?;
    let name = &arguments.machine;
    let device = &device.status.name;
    let text = match for_good {
        true => format!("removed {name} from {device} with all it stored"),
        false => {
            format!("removed {name} from {device}; `tenure trash` lists it, and can fetch it back")
        }
    };
    output.line(
        &text,
        &serde_json::json!({
            "removed": name.as_str(),
            "device": device.as_str(),
            "in_trash": !for_good,
        }),
    );
    Ok(())
}

/// An owner's decisions about a machine.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The machine's name; by default its package's.
    pub name: Option<Name>,
    /// The rights.
    pub grants: Capabilities,
    /// Its share of the processor.
    pub share: Share,
    /// For how long that counts.
    pub term: Term,
}

/// The owner's placement of a package on a device.
///
/// # Errors
/// The package is none.
pub fn place(
    keys: &OwnerKeys,
    device: VerifyingKey,
    package: &[u8],
    terms: &Terms,
    sequence: u64,
) -> anyhow::Result<Vec<u8>> {
    let package = Package::parse(package)?;
    let manifest = package.manifest();
    let placement = Placement {
        package: package.digest(),
        device,
        machine: terms.name.clone().unwrap_or_else(|| manifest.name.clone()),
        budget: manifest.budget,
        share: terms.share,
        grants: terms.grants.clone(),
        term: terms.term,
        sequence,
    };
    Ok(placement.sign(&keys.signing_key)?)
}

/// The machine that the package will replace, if there is one.
fn replaced(
    client: &mut Client,
    device: &Device,
    package: &[u8],
    name: &Option<Name>,
) -> anyhow::Result<Option<MachineStatus>> {
    let package = Package::parse(package)?;
    let name = name.as_ref().unwrap_or(&package.manifest().name);
    Ok(machines(client, device)?.into_iter().find(|machine| machine.name == *name))
}

/// Sends a package to a device and makes a machine of it, in the place of `known`.
///
/// # Errors
/// The device refuses it, or the package asks for more than one placement can grant.
pub fn install(
    (client, device): (&mut Client, &Device),
    package: &[u8],
    known: Option<&MachineStatus>,
    terms: &Terms,
    output: &Output,
) -> anyhow::Result<MachineStatus> {
    let parsed = Package::parse(package)?;
    let name = terms.name.as_ref().unwrap_or(&parsed.manifest().name);
    let key = device.status.key;
    let longest = place(client.keys(), key, package, terms, u64::MAX)?;
    if longest.len() + 16 > PARAMETER_BYTES_MAX {
        bail!("the package asks for more capabilities than one placement can grant");
    }
    let machine = in_turn(client, device, |client| {
        transfer(client, device, package, output)?;
        // Until it is committed no other command installs anything: the number is still the next.
        let sequence = next_lease_number(client, device, name)?;
        let placement = place(client.keys(), key, package, terms, sequence)?;
        client.at(&device.route).install_commit(InstallCommit { placement })
    })?;
    let before = known.map(|known| known.digest.to_string());
    if let Err(error) = keep(&machine, package, before, client.unix_s()) {
        let text = format!("`tenure rollback` won't find this package: {}", tell(&error));
        tell_beside(Beside::Warning, &text);
    }
    Ok(machine)
}

/// Keeps the package of a machine for `tenure rollback`.
fn keep(
    machine: &MachineStatus,
    package: &[u8],
    before: Option<String>,
    unix_s: u64,
) -> anyhow::Result<()> {
    KeptPackages::keep(&Home::from_environment()?, &machine.id, package, (before, unix_s))
}

/// Tries something that one command at a time can do again and again, while others do it.
///
/// # Errors
/// Those of `attempt`; others still do it after ten minutes.
pub fn in_turn<T>(
    client: &mut Client,
    device: &Device,
    mut attempt: impl FnMut(&mut Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut until = None;
    loop {
        let error = match attempt(client) {
            Err(error) if comes_later(&error) => error,
            done => return done,
        };
        let until = *until.get_or_insert_with(|| {
            let name = &device.status.name;
            let text = format!("another command transfers something to {name}; its turn first");
            tell_beside(Beside::Waiting, &text);
            Instant::now() + TURN_PATIENCE
        });
        if Instant::now() >= until {
            return Err(error);
        }
        client.pause(TURN_AGAIN)?;
    }
}

/// Whether somebody else's turn is the reason: it wasn't this command's turn yet, or it was away for so long that
/// another took it.
fn comes_later(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<Refused>().map(|Refused(refusal)| refusal);
    matches!(refusal, Some(ControlError::Busy(_) | ControlError::Transfer))
}

/// Brings something to the device, part by part.
///
/// # Errors
/// The device's, such as that another command does so now (see [`in_turn`]), or it is too large.
pub fn transfer(
    client: &mut Client,
    device: &Device,
    whole: &[u8],
    output: &Output,
) -> anyhow::Result<()> {
    let bytes = u32::try_from(whole.len()).context("it is too large")?;
    client.at(&device.route).install_begin(InstallBegin { bytes })?;
    for (index, chunk) in whole.chunks(CHUNK_BYTES_MAX).enumerate() {
        let offset = (index * CHUNK_BYTES_MAX) as u32;
        let part = InstallChunk { offset, bytes: chunk };
        client.at(&device.route).install_chunk(part)?;
        progress(output, offset as usize + chunk.len(), whole.len());
    }
    Ok(())
}

/// Shows how far a transfer is, where somebody looks and it takes a while.
pub fn progress(output: &Output, sent: usize, whole: usize) {
    if output.is_json() || whole <= 8 * CHUNK_BYTES_MAX || !std::io::stderr().is_terminal() {
        return;
    }
    let end = if sent == whole { "\r\x1b[K" } else { "" };
    eprint!("\rsending {:>3} %{end}", sent * 100 / whole);
    let _ = std::io::stderr().flush();
}
