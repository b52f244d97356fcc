//! `tenure revoke`: whom the owner trusts no more.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_package::{Revocations, RevokedDevice};
use tenure_wire::printable::{counted, span};
use tenure_wire::{Name, PublicKey, VerifyingKey};

use crate::home::Home;
use crate::hub::session::HubSession;
use crate::keys::all_devices::{AllDevices, Outcome, reach_all};
use crate::mesh::network_key::{self, Change};
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::clock::parse_span;
use crate::terminal::confirm::confirm;
use crate::terminal::output::Output;

/// Revoke a tenant, a device or a hub, on all your devices.
///
/// A revoked tenant's machines go to the trash, and none of its packages is installed any more. A revoked
/// device's records and calls count no more, and a revoked hub isn't spoken to until you name another.
/// Devices that are away learn of it at the next command that reaches them.
///
/// When a device is revoked, your mesh gets another key, which the other devices are told through the mesh and
/// change to ten seconds later; the revoked one hears nothing there any more. A device that is off then is told by
/// the one that took your word, once it hears its neighbours again. A leaf is invited again with `tenure invite`.
///
/// Example: tenure revoke device attic
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Revoke a tenant by the key that signs its packages, as `tenure list --json` shows it.
    Tenant(Tenant),
    /// Revoke a device that was stolen or lost.
    Device(Named),
    /// Revoke a hub by its key.
    Hub(Hub),
    /// Give your mesh another key though nobody is revoked, as often as a timer runs this.
    MeshKey(MeshKey),
    /// List whom you revoked.
    List,
}

#[derive(clap::Args)]
struct MeshKey {
    /// Only if the present key is older than that, for example 30d.
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    older_than: Option<Duration>,
}

#[derive(clap::Args)]
struct Tenant {
    /// The tenant's key.
    key: VerifyingKey,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct Named {
    /// The device's name.
    name: Name,
    /// A hub that is to list the device no more, beside that of `tenure use` and all others that your commands have met.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct Hub {
    /// The hub's key.
    key: PublicKey,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// Take it back: what was revoked counts again.
    #[arg(long)]
    undo: bool,
    /// Don't ask.
    #[arg(long)]
    yes: bool,
}

/// Runs `tenure revoke`.
///
/// # Errors
/// The named one isn't known, the list is full, or nobody confirms.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let (what, how) = match &arguments.action {
        Action::Tenant(Tenant { key, how }) => (format!("the tenant {key}"), how),
        Action::Device(Named { name, how, .. }) => (format!("the device {name}"), how),
        Action::Hub(Hub { key, how }) => (format!("the hub {key}"), how),
        Action::MeshKey(renewal) => return renew_mesh_key(&mut client, &home, renewal, output),
        Action::List => return list(client.authority().revoked(), output),
    };
    // A list that was made on another computer comes first, so that it is added to.
    let mut all = reach_all(&mut client);
    let mut beside = Vec::new();
    for device in &all.devices {
        beside.push(client.list_beside(device)?);
    }
    let mut gone = None;
    if let (Action::Device(named), false) = (&arguments.action, how.undo) {
        let device = device_of(&mut client, named)?;
        all.without(&device.machine, &device.name);
        gone = Some(device);
    }
    let change = |revoked: &mut Revocations| {
        // Another command may have made a newer one meanwhile, beside which those are old.
        let number = revoked.number;
        beside.iter().filter(|one| one.number == number).for_each(|one| add_all(revoked, one));
        match (&arguments.action, how.undo) {
            (Action::Tenant(Tenant { key, .. }), undo) => put(&mut revoked.tenants, *key, undo),
            (Action::Hub(Hub { key, .. }), undo) => put(&mut revoked.hubs, *key, undo),
            (Action::Device(Named { name, .. }), true) => {
                let before = revoked.devices.len();
                revoked.devices.retain(|device| device.name != *name);
                revoked.devices.len() < before
            }
            (Action::Device(_), false) => {
                gone.clone().is_some_and(|device| put(&mut revoked.devices, device, false))
            }
            (Action::MeshKey(_) | Action::List, _) => false,
        }
    };
    let is_changed = change(&mut client.authority().revoked().clone());
    match (is_changed, how.undo) {
        (false, true) => bail!("{what} isn't revoked; see `tenure revoke list`"),
        (false, false) => {}
        (true, undo) => {
            let verb = if undo { "trust again" } else { "revoke" };
            confirm(&format!("{verb} {what} on all your devices?"), how.yes)?;
            client.change_revocations(change)?;
        }
    }
    let changes_key = matches!(arguments.action, Action::Device(_)) && !how.undo;
    let reached = if changes_key { all.devices.clone() } else { Vec::new() };
    let mut outcome = all.tell(&mut client, Client::tell_revocations);
    if let Action::Device(named) = &arguments.action {
        tell_hubs(&mut client, &home, named, &mut outcome);
    }
    let word = if how.undo { "trusted again" } else { "revoked" };
    let head = format!("{word}: {what} (list {})", client.authority().revoked().number);
    report(&head, (word, &what), client.authority().revoked().number, &outcome, output);
    if changes_key && let Some(change) = network_key::change(&mut client, &home, &reached)? {
        report_change(&change, output);
    }
    Ok(())
}

/// Gives the mesh another key, if the present one is old enough.
fn renew_mesh_key(
    client: &mut Client,
    home: &Home,
    renewal: &MeshKey,
    output: &Output,
) -> anyhow::Result<()> {
    if !home.has_network_key() {
        bail!("you have no mesh; see `tenure invite`");
    }
    let age = home.network_key_age()?;
    if let Some(least) = renewal.older_than.filter(|least| age < *least) {
        let days = age.as_secs() / (24 * 60 * 60);
        let text = format!(
            "the mesh's key is {} old; it is replaced after {}",
            counted(days, "day"),
            span(least)
        );
        output.line(&text, &json!({ "event": "network_key_kept", "age_s": age.as_secs() }));
        return Ok(());
    }
    let AllDevices { devices, away, .. } = reach_all(client);
    if let Some(mut change) = network_key::change(client, home, &devices)? {
        change.away.extend(away.into_iter().filter(|(name, _)| !change.told.contains(name)));
        change.away.sort();
        change.away.dedup_by(|one, other| one.0 == other.0);
        report_change(&change, output);
    }
    Ok(())
}

/// Prints who was told the mesh's next key.
fn report_change(change: &Change, output: &Output) {
    let mut text = match change.told.as_slice() {
        [] => "the mesh has its key as before: no member of it was told another one".to_string(),
        told => format!("the mesh has another key; told: {}", told.join(", ")),
    };
    for (name, why) in &change.away {
        text += &format!("\n  not told: {name}: {why}; if it is in the mesh: tenure invite {name}");
    }
    let away = change.away.iter().map(|(name, why)| json!({ "device": name, "error": why }));
    let away: Vec<_> = away.collect();
    output.line(&text, &json!({ "event": "network_key", "told": change.told, "away": away }));
}

/// Tells each hub that the user has which devices are revoked; it lists and answers none of them any more.
fn tell_hubs(client: &mut Client, home: &Home, named: &Named, outcome: &mut Outcome) {
    let Some(list) = client.authority().signed_list().map(<[u8]>::to_vec) else { return };
    for hub in hubs(client, named.hub.as_deref()) {
        let name = format!("the hub at {hub}");
        let place = Where { device: None, hub: Some(hub), via: None };
        let mut tell = || -> anyhow::Result<()> {
            let mut session = HubSession::open(client, &place, home.owner_key()?)?;
            session.ask(client, "POST", "/v1/revocations", &[], &list).map(drop)
        };
        match tell() {
            Ok(()) => outcome.told.push(name),
            Err(error) => outcome.away.push((name, format!("{error:#}"))),
        }
    }
}

/// The addresses of the user's hubs: the one that the command names, that of `tenure use`, and those that were met
/// before and aren't revoked themselves. An address that names a key (`ADDR#KEY`) is met without it.
fn hubs(client: &Client, named: Option<&str>) -> Vec<String> {
    let revoked = client.authority().revoked();
    let is_revoked = |key: &str| key.parse().is_ok_and(|key| revoked.has_hub(&key));
    let known = client.known();
    let met = known.hubs().filter(|(_, key)| !is_revoked(key)).map(|(address, _)| address);
    let mut hubs: Vec<String> = Vec::new();
    for hub in named.into_iter().chain(known.defaults().1).chain(met) {
        let address = |hub: &str| hub.split('#').next().unwrap_or_default().to_string();
        if !hubs.iter().any(|known| address(known) == address(hub)) {
            hubs.push(hub.to_string());
        }
    }
    hubs
}

/// Prints what became of a word to all devices.
pub fn report(
    head: &str,
    (word, what): (&str, &str),
    number: u64,
    outcome: &Outcome,
    output: &Output,
) {
    let mut object = json!({ "done": word, "what": what, "number": number });
    outcome.put_into(&mut object);
    output.line(&format!("{head}{}", outcome.lines()), &object);
}

/// Adds whom another list of the same number names: two computers made one each.
fn add_all(revoked: &mut Revocations, other: &Revocations) {
    for tenant in &other.tenants {
        put(&mut revoked.tenants, *tenant, false);
    }
    for device in &other.devices {
        put(&mut revoked.devices, device.clone(), false);
    }
    for hub in &other.hubs {
        put(&mut revoked.hubs, *hub, false);
    }
}

/// Puts `item` on a list, or takes it off; whether that changes it.
fn put<T: PartialEq>(list: &mut Vec<T>, item: T, undo: bool) -> bool {
    let before = list.len();
    match undo {
        true => list.retain(|one| *one != item),
        false if list.contains(&item) => {}
        false => list.push(item),
    }
    list.len() != before
}

/// The keys of a device of the user's: as it was met, or by its record at the hub.
fn device_of(client: &mut Client, named: &Named) -> anyhow::Result<RevokedDevice> {
    let name = named.name.clone();
    if let Some((key, machine)) = client.known().device_keys(&name)? {
        return Ok(RevokedDevice { name, key, machine });
    }
    let place = Where { device: None, hub: named.hub.clone(), via: None };
    let record = place.record(client, &name).with_context(|| {
        format!("the keys of {name} aren't known here; its record at a hub has them")
    })?;
    Ok(RevokedDevice { name, key: record.enrolment.device_key, machine: record.device_machine })
}

fn list(revoked: &Revocations, output: &Output) -> anyhow::Result<()> {
    let tenants = revoked.tenants.iter().map(|key| format!("tenant  {key}"));
    let devices =
        revoked.devices.iter().map(|one| format!("device  {}  {}", one.name, one.machine));
    let hubs = revoked.hubs.iter().map(|key| format!("hub     {key}"));
    let lines: Vec<String> = tenants.chain(devices).chain(hubs).collect();
    let text = if lines.is_empty() { "nobody is revoked".to_string() } else { lines.join("\n") };
    let devices: Vec<_> = revoked
        .devices
        .iter()
        .map(|one| serde_json::json!({ "name": one.name.as_str(), "key": one.machine.to_string() }))
        .collect();
    let texts = |keys: &[PublicKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    let tenants: Vec<_> = revoked.tenants.iter().map(ToString::to_string).collect();
    let object = serde_json::json!({
        "number": revoked.number, "tenants": tenants, "devices": devices, "hubs": texts(&revoked.hubs),
    });
    output.line(&text, &object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_two_computers_made_under_one_number_become_one() {
        let key = |number: u8| VerifyingKey([number; 32]);
        let mut one =
            Revocations { number: 5, tenants: vec![key(1), key(2)], ..Default::default() };
        let other = Revocations {
            number: 5,
            tenants: vec![key(2), key(3)],
            hubs: vec![PublicKey([4; 32])],
            ..Default::default()
        };
        add_all(&mut one, &other);
        assert_eq!((one.tenants, one.hubs), (vec![key(1), key(2), key(3)], other.hubs));
    }
}
