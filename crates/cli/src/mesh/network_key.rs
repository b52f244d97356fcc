//! Another key for the owner's mesh: told to the devices that stay in it, by way of any of them that answers.

use anyhow::Context as _;
use tenure_crypto::machine_id;
use tenure_mesh::NodeId;
use tenure_wire::control::{Admission, Client as _, Enrol, MeshStatus};
use tenure_wire::directory::Enrolment;
use tenure_wire::{Name, PublicKey, VerifyingKey};

use crate::device::link::invitation;
use crate::home::Home;
use crate::reach::client::{Client, Device, Route};

/// A device's name, and why it wasn't told.
pub type Untold = (String, String);

/// The outcome of another key.
#[derive(Debug, Default)]
pub struct Change {
    /// The names of the devices that were told.
    pub told: Vec<String>,
    /// Those that may be in the mesh, and weren't.
    pub away: Vec<Untold>,
}

/// A device that isn't revoked.
struct Kept {
    name: Name,
    key: VerifyingKey,
    machine: PublicKey,
}

/// Makes another key for the mesh, and has it told to all devices that were ever met and aren't revoked.
/// `reached` are those that answer. Returns `None` if this user has no mesh.
///
/// # Errors
/// The key can't be made.
pub fn change(
    client: &mut Client,
    home: &Home,
    reached: &[Device],
) -> anyhow::Result<Option<Change>> {
    if !home.has_network_key() {
        return Ok(None);
    }
    let (kept, mut away) = kept(client)?;
    let mut members: Vec<(Route, MeshStatus)> = Vec::new();
    for device in reached {
        // A device in no mesh is told nothing, and tells nobody.
        if let Ok(status) = client.at(&device.route).mesh(()) {
            members.push((device.route.clone(), status));
        }
    }
    if members.is_empty() {
        // Or whoever is invited next would be alone.
        away.extend(kept.iter().map(|one| (one.name.to_string(), "it doesn't answer".to_string())));
        return Ok(Some(Change { told: Vec::new(), away }));
    }
    home.renew_network_key()?;
    let mut told = Vec::new();
    // Those that only others reach come first: who is told leaves the present mesh ten seconds later.
    let is_reached = |one: &Kept| reached.iter().any(|device| device.route.key == one.machine);
    let (direct, by_others): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_reached);
    for one in by_others.iter().chain(&direct) {
        let node = NodeId::from(&machine_id(&one.machine)).to_string();
        let is_direct = is_reached(one);
        let knows = |(route, status): &&(Route, MeshStatus)| match is_direct {
            true => route.key == one.machine,
            false => status.ways.iter().any(|way| way.to == node),
        };
        let mut by: Vec<Route> =
            members.iter().filter(knows).map(|(route, _)| route.clone()).collect();
        if is_direct && by.is_empty() {
            continue;
        }
        if by.is_empty() {
            // The device is off: a member keeps the key for it, and tells it once somebody hears it.
            by.extend(members.first().map(|(route, _)| route.clone()));
        }
        match tell(client, home, one, &by) {
            Ok(()) => told.push(one.name.to_string()),
            Err(error) => away.push((one.name.to_string(), format!("{error:#}"))),
        }
    }
    Ok(Some(Change { told, away }))
}

/// The devices that were ever met, but for the revoked ones; and those whose keys aren't known.
fn kept(client: &Client) -> anyhow::Result<(Vec<Kept>, Vec<Untold>)> {
    let (mut kept, mut away) = (Vec::new(), Vec::new());
    for (name, ..) in client.known().devices() {
        let name: Name = name.parse().with_context(|| format!("the name {name}"))?;
        match client.known().device_keys(&name)? {
            Some((key, machine)) => {
                let mut revoked = client.authority().revoked().devices.iter();
                if !revoked.any(|device| device.machine == machine) {
                    kept.push(Kept { name, key, machine });
                }
            }
            None => away.push((name.to_string(), "its keys aren't known here".to_string())),
        }
    }
    Ok((kept, away))
}

/// Has a device told by the first of `members` that can.
fn tell(client: &mut Client, home: &Home, one: &Kept, members: &[Route]) -> anyhow::Result<()> {
    let signing_key = &client.keys().signing_key;
    let number = home.next_number(client.known().enrolment(&one.name));
    let enrolment = Enrolment { device: one.name.clone(), device_key: one.key, number };
    let signature = tenure_directory::enrol(signing_key, &enrolment);
    let invitation = invitation(home, signing_key, &one.machine)?;
    let admission = Admission { invitation, enrol: Enrol { enrolment, signature } };
    let mut outcome = Err(anyhow::anyhow!("no member that answers has a way to it"));
    for route in members {
        outcome = client.at(route).mesh_admit(admission.clone());
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
