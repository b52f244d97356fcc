//! All devices of the user's that can be found from here, for a word to each of them.
//!
//! Three things name them: what this computer remembers of those that its commands met, what members of the mesh know of
//! one another, and the devices' own records, which prove whose they are. What none of these names is told by nobody, and
//! so no list here is called complete.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::Context as _;
use serde_json::{Value, json};
use tenure_wire::control::{Client as _, MeshStatus};
use tenure_wire::directory::Query;
use tenure_wire::{Address, Name};

use crate::reach::client::{Client, Device, Route, in_mesh};
use crate::reach::place::Place;
use crate::reach::whom::Where;

/// A device, and why it couldn't be told.
pub type Away = (String, String);

/// A device of the user's that members of the mesh alone hear.
#[derive(Clone, Debug)]
pub struct Beyond {
    name: Name,
    /// The member, as a command names it.
    member: String,
    /// The way to the device from there.
    pub route: Route,
}

/// The devices of a user.
#[derive(Clone, Debug, Default)]
pub struct AllDevices {
    /// Those that answer here.
    pub devices: Vec<Device>,
    /// Those that answer by way of a member of their mesh, as far as is known.
    pub beyond: Vec<Beyond>,
    /// Those that don't.
    pub away: Vec<Away>,
    /// Nodes of the mesh that no record tells of yet, each with a member that hears it.
    pub unknown: Vec<Away>,
}

/// The fate of a word to all devices.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Those that have it.
    pub told: Vec<String>,
    /// Those that haven't, each with the reason.
    pub away: Vec<Away>,
    /// See [`AllDevices::unknown`].
    pub unknown: Vec<Away>,
}

/// Reaches all of the user's devices: each that answers is asked which others it knows in its mesh, and the newest list in
/// force there is learnt.
pub fn reach_all(client: &mut Client) -> AllDevices {
    let met: Vec<[String; 4]> =
        client.known().devices_and_members().map(|known| known.map(str::to_string)).collect();
    let mut all = AllDevices::default();
    for [name, key, address, member] in met {
        let reached = match member.is_empty() {
            true => directly(client, &name, &key, &address).map(|device| all.devices.push(device)),
            false => by_way_of(client, &name, &member).map(|beyond| all.beyond.push(beyond)),
        };
        if let Err(error) = reached {
            all.away.push((name, format!("{error:#}")));
        }
    }
    client.go_directly();
    ask_members(client, &mut all);
    all
}

fn directly(client: &mut Client, name: &str, key: &str, address: &str) -> anyhow::Result<Device> {
    let address: SocketAddr = address.parse().context("its address")?;
    let place = Place { key: Some(key.parse()?), name: Some(name.parse()?), ..address.into() };
    client.device(&place)
}

fn by_way_of(client: &mut Client, name: &str, member: &str) -> anyhow::Result<Beyond> {
    let place = Where { device: Some(name.to_string()), hub: None, via: Some(member.to_string()) };
    let Device { route, .. } = place.connect(client)?;
    Ok(Beyond { name: name.parse()?, member: member.to_string(), route })
}

/// Asks the members among the devices that answer for others in their mesh that are the user's by their records.
fn ask_members(client: &mut Client, all: &mut AllDevices) {
    let mut keys: BTreeSet<_> = all.devices.iter().map(|device| device.route.key).collect();
    keys.extend(all.beyond.iter().map(|beyond| beyond.route.key));
    let (mut named, mut nameless) = (BTreeSet::new(), BTreeMap::new());
    for device in &all.devices {
        let (Address::Udp(address), name) = (&device.route.address, &device.status.name) else {
            continue;
        };
        // One in no mesh refuses.
        let status: anyhow::Result<MeshStatus> = client.at(&device.route).mesh(());
        let Ok(status) = status else { continue };
        named.insert(status.node);
        for way in status.ways {
            let beyond = way.device.and_then(|name| {
                found(client, device, &name).map(|route| Beyond {
                    name,
                    member: address.to_string(),
                    route,
                })
            });
            match beyond {
                Some(beyond) => {
                    named.insert(way.to);
                    if keys.insert(beyond.route.key) {
                        all.beyond.push(beyond);
                    }
                }
                None => drop(nameless.entry(way.to).or_insert_with(|| name.to_string())),
            }
        }
    }
    nameless.retain(|node, _| !named.contains(node));
    let unknown = nameless.into_iter().map(|(node, member)| (node, format!("heard by {member}")));
    all.unknown.extend(unknown);
}

/// The way to a device of that name which a member knows, if its record proves that it is the user's.
fn found(client: &mut Client, member: &Device, name: &Name) -> Option<Route> {
    let record = client.at(&member.route).mesh_find(Query::Device(name.clone())).ok()??;
    let found = in_mesh(record).ok()?;
    let record = tenure_directory::open_whenever(&found.record).ok()?;
    let owner = client.keys().signing_key.verifying_key();
    let is_own = client.authority().is_or_was(&owner, &record.owner);
    let route =
        Route { key: record.device_machine, address: found.seen_at, epoch: Some(record.epoch) };
    (is_own && record.enrolment.device == *name).then_some(route)
}

impl AllDevices {
    /// Leaves a device out that is told nothing.
    pub fn without(&mut self, key: &tenure_wire::PublicKey, name: &Name) {
        self.devices.retain(|one| one.route.key != *key);
        self.beyond.retain(|one| one.route.key != *key);
        self.away.retain(|(one, _)| *one != name.as_str());
    }

    /// Leaves those beyond out that were told already.
    pub fn beyond_others(&mut self, told: &[String]) {
        self.beyond.retain(|one| !told.iter().any(|name| name == one.name.as_str()));
    }

    /// Tells each device what `tell` says to those that answer here; those beyond are told by being reached again, as every
    /// command tells what is new.
    pub fn tell(
        self,
        client: &mut Client,
        mut tell: impl FnMut(&mut Client, &Device) -> anyhow::Result<()>,
    ) -> Outcome {
        let Self { devices, beyond, mut away, unknown } = self;
        let mut told = Vec::new();
        for device in devices {
            let name = device.status.name.to_string();
            match tell(client, &device) {
                Ok(()) => told.push(name),
                Err(error) => away.push((name, format!("{error:#}"))),
            }
        }
        for one in beyond {
            let name = one.name.to_string();
            let reached = reach(client, &one).and_then(|device| tell(client, &device));
            // It may have been met before, and not have answered here.
            away.retain(|(other, _)| *other != name);
            match reached {
                Ok(()) => told.push(name),
                Err(error) => away.push((name, format!("{error:#}"))),
            }
        }
        client.go_directly();
        told.sort();
        Outcome { told, away, unknown }
    }
}

/// Opens a session with a device by way of a member; that tells it whatever is new.
fn reach(client: &mut Client, beyond: &Beyond) -> anyhow::Result<Device> {
    Where::of(beyond.name.as_str()).go_through(client, &beyond.member)?;
    client.device_at(beyond.route.clone(), Some(&beyond.name))
}

impl Outcome {
    /// Takes in those that another look found, and this one didn't.
    pub fn extend(&mut self, other: Self) {
        self.told.extend(other.told);
        self.told.sort();
        self.told.dedup();
        self.away.extend(other.away);
        self.away.sort();
        self.away.dedup_by(|one, before| one.0 == before.0);
        self.away.retain(|(name, _)| !self.told.contains(name));
        self.unknown.extend(other.unknown);
        self.unknown.sort();
        self.unknown.dedup_by(|one, before| one.0 == before.0);
    }

    /// The lines that say who was told.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        if !self.told.is_empty() {
            text += &format!("\n  told: {}", self.told.join(", "));
        }
        for (name, why) in &self.away {
            text += &format!("\n  not told yet: {name}: {why}");
        }
        for (node, member) in &self.unknown {
            text += &format!(
                "\n  not told yet: node {node} of the mesh, {member}: whose it is isn't known yet"
            );
        }
        if !self.away.is_empty() || !self.unknown.is_empty() {
            text += "\n  those are told at the next command that reaches them";
        }
        text + "\n  a device that neither this computer has met nor a member of its mesh hears isn't named here; \
                a command that reaches it tells it"
    }

    /// The same as an object's parts.
    pub fn put_into(&self, object: &mut Value) {
        let away = self.away.iter().map(|(name, why)| json!({ "device": name, "error": why }));
        let unknown = self.unknown.iter().map(|(node, how)| json!({ "node": node, "how": how }));
        object["told"] = json!(self.told);
        object["away"] = away.collect();
        object["unknown"] = unknown.collect();
    }
}
