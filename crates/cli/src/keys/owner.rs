//! `tenure owner`: other keys for the owner, or another owner for a device.

use anyhow::{Context as _, bail, ensure};
use tenure_directory::succeed;
use tenure_node::Owner;
use tenure_wire::control::{ChangeOwner, Client as _};
use tenure_wire::ownership::{Succession, SuccessionKind};
use tenure_wire::printable::counted;

use crate::home::Home;
use crate::home::authority::Authority;
use crate::home::parse_owner;
use crate::keys::all_devices::reach_all;
use crate::keys::revoke::report;
use crate::reach::client::{Client, Device, OwnerKeys};
use crate::reach::whom::Where;
use crate::terminal::clock::now_in_milliseconds;
use crate::terminal::confirm::confirm;
use crate::terminal::output::Output;

/// Change your keys as an owner, or hand a device over to somebody else.
///
/// Example: tenure owner hand-over attic --to SIGNING-KEY/MACHINE-KEY
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make new keys, and let them hold all your devices; what the old key signs counts there no more.
    ///
    /// Machines, leases and what you revoked stay. Devices that are away follow at the next command that
    /// reaches them. Hubs of yours are to be started again with the new key.
    Change(Change),
    /// Hand a device over to somebody else.
    ///
    /// All machines on it go to the trash, where the new owner finds them. It forgets its hub, its mesh and
    /// whom you revoked. The new owner enrols it with `tenure enrol`.
    HandOver(HandOver),
}

#[derive(clap::Args)]
struct Change {
    /// Don't ask.
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Args)]
struct HandOver {
    /// The device: a name, HOST:PORT, or HOST:PORT#KEY.
    device: String,
    /// The new owner's keys, as `tenure key --own` prints them.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY", value_parser = parse_owner)]
    to: Owner,
    /// The hub, which knows where named devices are.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// Don't ask.
    #[arg(long)]
    yes: bool,
}

/// Runs `tenure owner`.
///
/// # Errors
/// The keys can't be made or kept, the device can't be reached or refuses, or nobody confirms.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    match &arguments.action {
        Action::Change(change) => change_keys(&home, change, output),
        Action::HandOver(hand_over) => hand_device_over(&home, hand_over, output),
    }
}

fn change_keys(home: &Home, change: &Change, output: &Output) -> anyhow::Result<()> {
    confirm("make new keys, and let your old ones count no more on any device?", change.yes)?;
    let mut client = Client::new(home)?;
    // A list that was made on another computer is signed anew with the others.
    // Members know others by records of the present keys.
    let mut before = reach_all(&mut client);
    let next = OwnerKeys::of_signing_key(home.next_owner_key()?);
    let old = client.keys().signing_key.clone();
    let keys = next.owner();
    let former = {
        let lock = home.lock()?;
        ensure!(
            home.owner_key()?.verifying_key() == old.verifying_key(),
            "another command changed your keys meanwhile"
        );
        let next = (keys.verifying_key, keys.machine);
        Authority::of(home)?.change_keys(&lock, &old, next, now_in_milliseconds())?;
        home.replace_owner_key(&lock).context("the change is signed; run this again")?
    };
    // From here on with the new keys.
    let mut client = Client::new(home)?;
    client.change_revocations(|revoked| revoked.number > 0)?;
    let mut all = reach_all(&mut client);
    (before.devices, before.away) = (Vec::new(), Vec::new());
    // To be reached is to be told.
    let reached = |_: &mut Client, _: &Device| Ok(());
    let mut outcome = before.tell(&mut client, reached);
    all.beyond_others(&outcome.told);
    outcome.extend(all.tell(&mut client, reached));
    let key = keys.verifying_key.to_string();
    let head = format!(
        "your new keys: {key}/{}\n  the old key is in {}; delete it when all devices are told",
        keys.machine,
        former.display()
    );
    report(&head, ("changed", &key), client.authority().revoked().number, &outcome, output);
    Ok(())
}

fn hand_device_over(home: &Home, hand_over: &HandOver, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(home)?;
    let place =
        Where { device: Some(hand_over.device.clone()), hub: hand_over.hub.clone(), via: None };
    let device = place.connect(&mut client)?;
    let (name, next) = (device.status.name.clone(), hand_over.to);
    if next.verifying_key == device.status.owner {
        bail!("{name} is yours already; other keys for yourself: tenure owner change");
    }
    let machines = device.status.machines;
    confirm(
        &format!(
            "hand {name} over to {}, with its {} in the trash?",
            next.verifying_key,
            counted(machines, "machine")
        ),
        hand_over.yes,
    )?;
    let key = &client.keys().signing_key;
    let succession = Succession {
        by: key.verifying_key(),
        next: next.verifying_key,
        next_machine: next.machine,
        kind: SuccessionKind::HandOver,
        device: Some(device.status.key),
        number: now_in_milliseconds().max(device.status.succession.saturating_add(1)),
    };
    let change = ChangeOwner { succession: succeed(key, &succession), enrol: None };
    client.at(&device.route).change_owner(change)?;
    client.known_mut().forget_device(&name)?;
    output.line(
        &format!(
            "handed {name} over to {}\n  its new owner types: tenure enrol {}#{}",
            next.verifying_key, device.route.address, device.route.key
        ),
        &serde_json::json!({
            "handed_over": name.as_str(),
            "to": next.verifying_key.to_string(),
            "key": device.route.key.to_string(),
        }),
    );
    Ok(())
}
