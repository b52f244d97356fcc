//! `tenure fleet`: a fleet as it is, and as a file describes it.
//!
//! The plan is the difference between the file and the devices as they are at that moment. What the file doesn't
//! name stays as it is. Leases are signed here, with the owner's key: the hub only says which devices there are.

mod drift;
mod file;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_package::Package;
use tenure_wire::control::{Client as _, MachineStatus, Remove};
use tenure_wire::printable::counted;
use tenure_wire::{Capabilities, Name, Share, Term, Version};

use crate::home::Home;
use crate::hub::session::HubSession;
use crate::machine::grant::{Grant, decide, describe};
use crate::machine::install::{Terms, held, install};
use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machines};
use crate::terminal::confirm::confirm;
use crate::terminal::output::Output;
use file::{Fleet, Listed, Wish};

/// The most machines that a question names.
const NAMED_MAX: usize = 8;

/// Show how your fleet is, and bring it to what a file says of it.
///
/// Example: tenure fleet plan fleet.toml
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what would change, and change nothing.
    Plan(FileArguments),
    /// Show what changes, and change it.
    ///
    /// A device that can't be reached stays as it is; the same command again brings it there. Before machines are removed
    /// you are asked.
    Apply(ApplyArguments),
    Drift(drift::Arguments),
    Status(status::Arguments),
}

#[derive(clap::Args)]
struct FileArguments {
    /// The file.
    #[arg(default_value = "fleet.toml", value_name = "FILE")]
    file: PathBuf,
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

#[derive(clap::Args)]
struct ApplyArguments {
    #[command(flatten)]
    file: FileArguments,
    /// Don't ask before machines are removed.
    #[arg(long)]
    yes: bool,
}

/// A change of one machine on one device.
struct Change {
    machine: Name,
    /// The machine as it is; none if it is to be installed.
    known: Option<MachineStatus>,
    action: Action,
}

/// A package to be put in the place of a machine.
struct Installation {
    /// Its number in the file.
    package: usize,
    version: Version,
    grants: Capabilities,
    was_granted: Capabilities,
}

enum Action {
    Install(Box<Installation>),
    Remove,
}

/// Runs `tenure fleet`.
///
/// # Errors
/// The file makes no sense, the hub can't be reached, or a device isn't as the file says in the end.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Plan(file) => bring(file, None, output),
        Command::Apply(ApplyArguments { file, yes }) => bring(file, Some(*yes), output),
        Command::Drift(arguments) => drift::run(arguments, output),
        Command::Status(arguments) => status::run(arguments, output),
    }
}

/// A file, and the devices that the hub lists.
struct Opened {
    client: Client,
    listed: Vec<Listed>,
    fleet: Fleet,
}

impl FileArguments {
    fn open(&self) -> anyhow::Result<Opened> {
        let home = Home::from_environment()?;
        let mut client = Client::new(&home)?;
        let place = Where { device: None, hub: self.hub.clone(), via: None };
        let mut session = HubSession::open(&mut client, &place, home.owner_key()?)?;
        let listed = listed(&mut client, &mut session)?;
        let fleet = Fleet::read(&self.file, &listed, &home)?;
        Ok(Opened { client, listed, fleet })
    }

    /// Where the device of that name is found.
    fn place_of(&self, device: &Name) -> Where {
        Where { device: Some(device.to_string()), hub: self.hub.clone(), via: None }
    }
}

/// Shows what a file changes, and changes it if `applies` says so; that says, too, whether machines are removed without a
/// question.
fn bring(file: &FileArguments, applies: Option<bool>, output: &Output) -> anyhow::Result<()> {
    let Opened { mut client, fleet, .. } = file.open()?;
    let (mut planned, mut failed) = (Vec::new(), Vec::new());
    for (name, wishes) in &fleet.wishes {
        let due = file.place_of(name).connect(&mut client).and_then(|device| {
            let there = machines(&mut client, &device)?;
            let changes = changes(&mut client, (&device, &there), wishes, &fleet)?;
            // What is changed is told when that is done.
            if applies.is_none() {
                changes.iter().for_each(|change| show(output, name, change));
            }
            Ok((device, changes))
        });
        match due {
            Ok((device, changes)) => planned.push((name, device, changes)),
            Err(error) => failed.push(complain(output, name, &error)),
        }
    }

    let all =
        || planned.iter().flat_map(|(name, _, changes)| changes.iter().map(move |it| (*name, it)));
    let mut changed = all().count();
    if let Some(yes) = applies {
        let removed = all().filter(|(_, change)| matches!(change.action, Action::Remove));
        let removed: Vec<_> =
            removed.map(|(name, change)| format!("{} on {name}", change.machine)).collect();
        if !removed.is_empty() {
            confirm(&question(&removed), yes)?;
        }
        changed = 0;
        for (name, device, changes) in &planned {
            let made = changes.iter().try_for_each(|change| {
                apply(&mut client, device, change, &fleet)
                    .with_context(|| change.machine.to_string())
                    .inspect(|()| {
                        changed += 1;
                        show(output, name, change);
                    })
            });
            if let Err(error) = made {
                failed.push(complain(output, name, &error));
            }
        }
    }
    conclude(output, (fleet.wishes.len(), changed, applies.is_some()), &failed)
}

/// Asks whether these machines are to go.
fn question(removed: &[String]) -> String {
    let named = removed[..removed.len().min(NAMED_MAX)].join(", ");
    match removed.len() {
        1 => format!("remove the machine {named}?"),
        count @ ..=NAMED_MAX => format!("remove the {count} machines {named}?"),
        count => format!("remove the {count} machines {named} and {} more?", count - NAMED_MAX),
    }
}

/// Says why a device isn't brought to what the file says, and returns its name.
fn complain(output: &Output, name: &Name, error: &anyhow::Error) -> String {
    let line = format!("! {name}: {error:#}");
    output.line(&line, &json!({ "device": name.as_str(), "error": format!("{error:#}") }));
    name.to_string()
}

/// Says how it went in all.
fn conclude(
    output: &Output,
    (devices, changed, applies): (usize, usize, bool),
    failed: &[String],
) -> anyhow::Result<()> {
    let (all, changes) = (counted(devices, "device"), counted(changed, "change"));
    let text = match (changed, applies) {
        (0, _) => format!("{all}, nothing to change"),
        (_, true) => format!("{all}, {changes} made"),
        (1, false) => format!("{all}, {changes}; `tenure fleet apply` makes it"),
        (_, false) => format!("{all}, {changes}; `tenure fleet apply` makes them"),
    };
    output.line(
        &text,
        &json!({ "devices": devices, "changes": changed, "applied": applies, "failed": failed }),
    );
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "not all devices are as the file says: {}; run it again once they can be reached",
        failed.join(", ")
    )
}

/// The devices of this user, as the hub lists them.
fn listed(client: &mut Client, session: &mut HubSession) -> anyhow::Result<Vec<Listed>> {
    let devices = session.rows(client, "devices")?;
    let read = |item| read_listed(item).context("the hub's list can't be read");
    devices.iter().map(read).collect()
}

fn read_listed(item: &Value) -> Option<Listed> {
    let labels = item["labels"].as_str().unwrap_or("");
    let labels =
        labels.split_whitespace().map(|label| label.parse().ok()).collect::<Option<_>>()?;
    let heard_unix_s = item["heard"].as_u64();
    Some(Listed { name: item["device"].as_str()?.parse().ok()?, labels, heard_unix_s })
}

/// The changes that are due on a device, on which those machines are `there`.
fn changes(
    client: &mut Client,
    (device, there): (&Device, &[MachineStatus]),
    wishes: &BTreeMap<Name, Wish>,
    fleet: &Fleet,
) -> anyhow::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (machine, wish) in wishes {
        let known = there.iter().find(|known| known.name == *machine).cloned();
        let action = match wish {
            Wish::Absent => known.as_ref().map(|_| Action::Remove),
            Wish::Present { package, grants } => {
                wanted(client, device, known.as_ref(), (*package, grants), fleet)
                    .with_context(|| machine.to_string())?
            }
        };
        if let Some(action) = action {
            changes.push(Change { machine: machine.clone(), known, action });
        }
    }
    Ok(changes)
}

/// The installation that brings a machine to its package and rights; none if it has them.
fn wanted(
    client: &mut Client,
    device: &Device,
    known: Option<&MachineStatus>,
    (package, grants): (usize, &[Grant]),
    fleet: &Fleet,
) -> anyhow::Result<Option<Action>> {
    let parsed = Package::parse(&fleet.packages[package])?;
    let was_granted = known.map(|known| held(client, device, known)).transpose()?;
    let keeps = [Grant::Same];
    // Without a word on rights a machine keeps those that it has, and a new one gets none.
    let grants = match (grants.is_empty(), known.is_some()) {
        (false, _) => grants,
        (true, true) => &keeps,
        (true, false) => &[Grant::None],
    };
    let grants = decide(grants, &parsed.manifest().capabilities, was_granted.as_ref())?;
    let was_granted = was_granted.unwrap_or_default();
    let is_there = known.is_some_and(|known| known.digest == parsed.digest())
        && are_same(&grants, &was_granted);
    let version = parsed.manifest().version;
    let installation = Installation { package, version, grants, was_granted };
    Ok((!is_there).then(|| Action::Install(Box::new(installation))))
}

/// Whether two lists of rights are the same, in whatever order.
fn are_same(one: &Capabilities, other: &Capabilities) -> bool {
    one.within(other) == *one && other.within(one) == *other
}

/// Prints a change: `+` for a machine that comes, `~` for one that changes, `-` for one that goes.
fn show(output: &Output, device: &Name, change: &Change) {
    let machine = &change.machine;
    let was = change.known.as_ref().map(|known| known.version);
    let (sign, text, to) = match &change.action {
        Action::Remove => ("-", format!("{machine} on {device}: to the trash"), None),
        Action::Install(installation) => {
            let Installation { version, grants, was_granted, .. } = &**installation;
            let from = was.map_or_else(String::new, |was| format!("{was} to "));
            let rights = match are_same(grants, was_granted) {
                true => String::new(),
                false => {
                    format!("; granted: {} (was: {})", describe(grants), describe(was_granted))
                }
            };
            let sign = if was.is_some() { "~" } else { "+" };
            (sign, format!("{machine} on {device}: {from}{version}{rights}"), Some(version))
        }
    };
    output.line(
        &format!("{sign} {text}"),
        &json!({
            "change": match sign { "+" => "install", "~" => "update", _ => "remove" },
            "device": device.as_str(),
            "machine": machine.as_str(),
            "version_before": was,
            "version": to,
        }),
    );
}

fn apply(
    client: &mut Client,
    device: &Device,
    change: &Change,
    fleet: &Fleet,
) -> anyhow::Result<()> {
    let known = change.known.as_ref();
    match &change.action {
        Action::Remove => {
            let remove = Remove { machine: change.machine.clone(), for_good: false };
            client.at(&device.route).remove(remove)?;
        }
        Action::Install(installation) => {
            let Installation { package, grants, .. } = &**installation;
            let terms = Terms {
                name: Some(change.machine.clone()),
                grants: grants.clone(),
                share: known.map_or(Share::default(), |known| known.share),
                term: known.map_or(Term::default(), |known| known.term),
            };
            let bytes = &fleet.packages[*package];
            install((client, device), bytes, known, &terms, &Output::silent())?;
        }
    }
    Ok(())
}
