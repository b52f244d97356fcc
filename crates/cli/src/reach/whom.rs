//! Which device and which machine a command is about.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use tenure_package::{Pass, PassShown};
use tenure_reach::TunnelUrl;
use tenure_rpc::NoResult;
use tenure_wire::control::{Client as _, ListMachines, MachineList, MachineStatus};
use tenure_wire::directory::{
    DeviceRecord, Found, Query, Reach, Reached, Refusal, function as directory,
};
use tenure_wire::{Address, Name, PublicKey, Target, VerifyingKey};

use crate::home::Home;
use crate::reach::client::{Client, Device, LeasedDevice, Route, Silent, in_mesh};
use crate::reach::discovery;
use crate::reach::network::{
    DEVICE_PORT, HubPlace, UNREADABLE, addresses_of, hub_place, split_key,
};
use crate::reach::pages::gather;
use crate::reach::place::{ByHub, Place};
use crate::terminal::clock;

/// From how long after its end on a record that is still given out points to a clock that is wrong, in seconds.
const CLOCKS_DIFFER_S: u64 = 10 * 60;
/// How long the hub may take to answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a device is looked for if nobody says: on this computer.
const HERE: &str = "127.0.0.1:7370";
/// The device and the hub to use.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Where {
    /// The device: a name, HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`, else 127.0.0.1:7370.
    #[arg(long, value_name = "DEVICE", env = "TENURE_DEVICE")]
    pub device: Option<String>,
    /// The hub, which knows where named devices are: HOST:PORT, or HOST:PORT#KEY; by default that of
    /// `tenure use`. The key that it shows at first is remembered, and another is refused.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    pub hub: Option<String>,
    /// Reach the device by way of this member of its mesh, one of yours or with --pass of its owner's: HOST:PORT, or a
    /// name that you met before. The device is then named by --device, and what is said stays between you and it.
    #[arg(long, value_name = "MEMBER")]
    pub via: Option<String>,
}

/// The device and the hub to use, of whichever owner.
#[derive(clap::Args)]
pub struct TenantWhere {
    #[command(flatten)]
    place: Where,
    /// The signing key of the device's owner, as `tenure key --own` prints it there, if that isn't
    /// you.
    #[arg(long, value_name = "KEY")]
    owner: Option<VerifyingKey>,
    /// The owner's pass to the device, as `tenure pass` wrote it there: with it, --via is a device of that owner.
    #[arg(long, value_name = "FILE", requires = "via")]
    pass: Option<PathBuf>,
}

impl TenantWhere {
    /// The user's own device that `text` says, as [`Where::of`].
    pub fn of(text: &str) -> Self {
        Self { place: Where::of(text), owner: None, pass: None }
    }

    /// Opens a session with a device that this user has leased.
    ///
    /// # Errors
    /// It isn't known or can't be reached, or isn't that owner's.
    pub fn connect(&self, client: &mut Client) -> anyhow::Result<LeasedDevice> {
        self.place.connect_as_tenant(client, self.owner, self.pass.as_deref())
    }
}

impl Where {
    /// The device that `text` says: a name, HOST:PORT or HOST:PORT#KEY.
    pub fn of(text: &str) -> Self {
        Self { device: Some(text.to_string()), hub: None, via: None }
    }

    /// Opens a session with the device.
    ///
    /// # Errors
    /// It isn't known or can't be reached, or isn't this user's.
    pub fn connect(&self, client: &mut Client) -> anyhow::Result<Device> {
        if let Some(member) = &self.via {
            return self.connect_through(client, member);
        }
        client.go_directly();
        let owner = client.keys().signing_key.verifying_key();
        let place = self.place(client, &owner)?;
        match (client.device(&place), &place.name) {
            // It was met before, and has another address by now.
            (Err(error), Some(name)) if self.hub_text(client).is_none() => {
                nearby(client, name).ok_or(error)
            }
            (device, _) => device,
        }
    }

    /// The way to the device's own machine. A device that is named is the user's; one at an address may be anybody's.
    ///
    /// # Errors
    /// It isn't known or can't be reached.
    pub fn route(&self, client: &mut Client) -> anyhow::Result<Route> {
        if let Some(member) = &self.via {
            return self.route_through(client, member).map(|(_, route)| route);
        }
        client.go_directly();
        let owner = client.keys().signing_key.verifying_key();
        let place = self.place(client, &owner)?;
        match (client.route(&place), &place.name) {
            // It was met before, and has another address by now.
            (Err(error), Some(name)) if self.hub_text(client).is_none() => {
                nearby(client, name).map(|device| device.route).ok_or(error)
            }
            (route, _) => route,
        }
    }

    /// Opens a session with a device that `member` alone hears.
    fn connect_through(&self, client: &mut Client, member: &str) -> anyhow::Result<Device> {
        let (name, route) = self.route_through(client, member)?;
        client
            .device_at(route.clone(), Some(&name))
            .map_err(|error| told_of_way(client, &route, error))
    }

    /// The name of a device that `member` alone hears, and the way there.
    fn route_through(&self, client: &mut Client, member: &str) -> anyhow::Result<(Name, Route)> {
        let name = self.device.as_deref().unwrap_or_default().parse::<Name>();
        let name = name.context("with --via, name the device by the name of its enrolment")?;
        self.go_through(client, member)?;
        let query = Query::Device(name.clone());
        let (record, address) = self.found_through(client, &query, &format!("device `{name}`"))?;
        let route = Route { key: record.device_machine, address, epoch: Some(record.epoch) };
        Ok((name, route))
    }

    /// Lets `client` reach others by way of `member`.
    ///
    /// # Errors
    /// The member isn't known or can't be reached, or isn't this user's.
    pub fn go_through(&self, client: &mut Client, member: &str) -> anyhow::Result<()> {
        if client.goes_through() == Some(member) {
            return Ok(());
        }
        let mut to_member = Client::new(&Home::from_environment()?)?;
        to_member.end_by(client.ends_by());
        let place = Self { hub: self.hub.clone(), ..Self::of(member) };
        let device = place.connect(&mut to_member).context("the member of the mesh")?;
        client.go_through(member, to_member, device.route)
    }

    /// The proven record of what `query` asks for, and where it is in the mesh.
    fn found_through(
        &self,
        client: &mut Client,
        query: &Query,
        what: &str,
    ) -> anyhow::Result<(DeviceRecord, Address)> {
        let found = client.find_through(query)?.with_context(|| {
            format!("the member knows no {what} in its mesh; see `tenure mesh`")
        })?;
        let owner = client.keys().signing_key.verifying_key();
        let record = proven(&found, client, &owner, what)?;
        Ok((record, found.seen_at))
    }

    /// Opens a session with a device that this user has leased from `owner`, by default from
    /// themself.
    fn connect_as_tenant(
        &self,
        client: &mut Client,
        owner: Option<VerifyingKey>,
        pass: Option<&Path>,
    ) -> anyhow::Result<LeasedDevice> {
        let owner = owner.unwrap_or_else(|| client.keys().signing_key.verifying_key());
        let route = match (&self.via, pass) {
            (None, _) => {
                let place = self.place(client, &owner)?;
                return client.leased_device(&place, owner);
            }
            (Some(member), Some(pass)) => self.go_through_by_pass(client, member, &owner, pass)?.1,
            // An owner who is its own tenant needs no pass of itself.
            (Some(member), None) => {
                let is_own = owner == client.keys().signing_key.verifying_key();
                ensure!(
                    is_own,
                    "another owner's device is reached --via a member with the owner's --pass"
                );
                self.connect_through(client, member)?.route
            }
        };
        client.leased_device_at(route, None, owner)
    }

    /// Lets a tenant's `client` reach the device of a pass of `owner` by way of `member`; returns that device's record
    /// and the way to its own machine.
    fn go_through_by_pass(
        &self,
        client: &mut Client,
        member: &str,
        owner: &VerifyingKey,
        pass: &Path,
    ) -> anyhow::Result<(DeviceRecord, Route)> {
        let home = Home::from_environment()?;
        let (pass, to) = read_pass(pass, owner)?;
        let mut to_member = Client::new(&home)?;
        to_member.end_by(client.ends_by());
        let place = Self { hub: self.hub.clone(), ..Self::of(member) };
        let place = place.place(&mut to_member, owner).context("the member of the mesh")?;
        let device = to_member.leased_device(&place, *owner).context("the member of the mesh")?;
        let shown = PassShown { pass, caller: to_member.own_key() }.sign(&home.tenant_key()?)?;
        let record =
            to_member.at(&device.route).mesh_pass(&shown).context("the member of the mesh")?;
        let found = in_mesh(record)?;
        let record = proven(&found, client, owner, "the device of the pass")?;
        ensure!(
            record.enrolment.device_key == to.device,
            "the member gave the record of {}, which is not the device of the pass",
            record.enrolment.device
        );
        let far = &record.enrolment.device;
        if let Some(Ok(name)) = self.device.as_ref().map(|name| name.parse::<Name>()) {
            ensure!(name == *far, "the pass is for {far}, and not for {name}");
        }
        let epoch = Some(record.epoch);
        let route = Route { key: record.device_machine, address: found.seen_at, epoch };
        client.go_through(member, to_member, device.route)?;
        Ok((record, route))
    }

    /// The way to a tenant's machine that `target` names, on the device of a pass, by way of a member.
    ///
    /// # Errors
    /// The device of the pass has no such machine, or can't be reached.
    pub fn machine_by_pass(
        &self,
        client: &mut Client,
        target: &Target,
        pass: &Path,
    ) -> anyhow::Result<Route> {
        let member = self.via.as_deref().context("a pass is for --via")?;
        let owner = Pass::signer(&read(pass)?)?;
        let (record, route) = self.go_through_by_pass(client, member, &owner, pass)?;
        let key = machine_of(&record, target)?;
        Ok(Route { key, ..route })
    }

    /// The way to the machine that `target` names: on the device, or with `@` wherever the hub
    /// says.
    ///
    /// # Errors
    /// No such machine is known.
    pub fn machine(&self, client: &mut Client, target: &Target) -> anyhow::Result<Route> {
        match target {
            Target::Own => bail!("name a machine, as in `tenure call thermostat read`"),
            Target::Local(name) => {
                let device = self.connect(client)?;
                let machines = machines(client, &device)?;
                let found = machines.iter().find(|machine| machine.name == *name);
                let machine = found.with_context(|| {
                    let names = machines.iter().map(|machine| machine.name.as_str());
                    no_such_machine(name.as_str(), names)
                })?;
                Ok(Route { key: machine.key, ..device.route })
            }
            // The device itself knows better than the record that has come to the member.
            Target::Remote { machine, device } if self.via.is_some() => {
                let place = Self { device: Some(device.to_string()), ..self.clone() };
                place.machine(client, &Target::Local(machine.clone()))
            }
            // Without a hub the device is one that was met before, or is on this network.
            Target::Remote { machine, device } if self.hub_text(client).is_none() => {
                let place = Self { device: Some(device.to_string()), ..self.clone() };
                place.machine(client, &Target::Local(machine.clone()))
            }
            Target::Remote { device, .. } => {
                self.at_hub(client, &Query::Device(device.clone()), target)
            }
            Target::Id(id) => self.at_hub(client, &Query::Id(*id), target),
            Target::Key(key) => self.at_hub(client, &Query::Key(*key), target),
        }
    }

    /// Where the device is, and which one is meant. A name stands for the key that a record names which
    /// `owner` and the device have signed; neither the hub nor an address decides whose it is.
    ///
    /// # Errors
    /// It isn't known, or its record proves nothing.
    pub fn place(&self, client: &mut Client, owner: &VerifyingKey) -> anyhow::Result<Place> {
        let text =
            self.device.as_deref().or(client.known().defaults().0).unwrap_or(HERE).to_string();
        let Ok(name) = text.parse::<Name>() else {
            let (address, key) = split_key(&text)?;
            let addresses = addresses_of(address, DEVICE_PORT)?;
            return Ok(Place { addresses, key, name: None, by_hub: None });
        };
        let own = *owner == client.keys().signing_key.verifying_key();
        let known = if own { client.known().device(&name)? } else { None };
        let known = known.map(|(key, address)| Place { key: Some(key), ..address.into() });
        if self.hub_text(client).is_none() {
            let place = known.or_else(|| {
                // A host may have a name that could be a device's.
                let addresses = addresses_of(&text, DEVICE_PORT).ok()?;
                Some(Place { addresses, key: None, name: None, by_hub: None })
            });
            let place = place.or_else(|| {
                let route = nearby(client, &name).filter(|_| own)?.route;
                let Address::Udp(address) = route.address else { return None };
                Some(Place { key: Some(route.key), ..address.into() })
            });
            return place.map(|place| Place { name: place.key.map(|_| name), ..place }).context(
                "no device of that name was met before, and none announces itself on this network; to \
                 find it, say where the hub is with --hub, or name HOST:PORT",
            );
        }
        let reached = self.reach(client, &Query::Device(name.clone()));
        let reached = reached.map(|(found, by_hub)| found.map(|found| (found, by_hub)));
        let (found, by_hub) = match (reached, known) {
            (Ok(Some(reached)), _) => reached,
            // A device that was met before needs no hub, nor one that lists it again already.
            (Ok(None) | Err(_), Some(place)) => return Ok(Place { name: Some(name), ..place }),
            (Ok(None), None) => bail!(unlisted(&format!("device `{name}`"), HUBS_DEVICES)),
            (Err(error), None) => return Err(error),
        };
        let record = proven(&found, client, owner, &format!("device `{name}`"))?;
        if record.enrolment.device != name {
            bail!("the hub gave the record of {} for `{name}`", record.enrolment.device);
        }
        match found.seen_at {
            Address::Udp(address) => {
                let key = Some(record.device_machine);
                Ok(Place { key, name: Some(name), by_hub, ..address.into() })
            }
            other => bail!("the device `{name}` is at {other}, which can't be reached from here"),
        }
    }

    /// The record of one of the user's devices, as the hub has it.
    ///
    /// # Errors
    /// No hub is known or answers, or it has no such record that proves itself.
    pub fn record(&self, client: &mut Client, name: &Name) -> anyhow::Result<DeviceRecord> {
        let found = self.ask_hub(client, &Query::Device(name.clone()))?;
        let found = found.with_context(|| unlisted(&format!("device `{name}`"), HUBS_DEVICES))?;
        let owner = client.keys().signing_key.verifying_key();
        proven(&found, client, &owner, &format!("device `{name}`"))
    }

    /// The way to a machine by its device's record, which must be enrolled by this user.
    fn at_hub(&self, client: &mut Client, query: &Query, target: &Target) -> anyhow::Result<Route> {
        let (found, by_hub) = match &self.via {
            Some(member) => {
                self.go_through(client, member)?;
                (client.find_through(query)?, None)
            }
            None => {
                client.go_directly();
                self.reach(client, query)?
            }
        };
        let found = found.with_context(|| match target {
            Target::Remote { device, .. } => unlisted(&format!("device `{device}`"), HUBS_DEVICES),
            target => unlisted(&format!("machine `{target}`"), HUBS_MACHINES),
        })?;
        let owner = client.keys().signing_key.verifying_key();
        let record = proven(&found, client, &owner, &format!("`{target}`"))?;
        if let Target::Remote { device, .. } = target
            && record.enrolment.device != *device
        {
            bail!("the hub gave the record of {} for `{target}`", record.enrolment.device);
        }
        let key = machine_of(&record, target)?;
        let direct = Route { key, address: found.seen_at, epoch: Some(record.epoch) };
        let (Address::Udp(address), Some(by_hub)) = (&direct.address, by_hub) else {
            return Ok(direct);
        };
        let is_open = matches!(by_hub, ByHub { answers_others: Some(true), .. })
            || matches!(by_hub, ByHub { answers_others: None, relayed: Err(_) });
        // Where UDP is blocked the hub alone is reached.
        if is_open && !client.link.is_by_websocket() {
            return Ok(direct);
        }
        // Whichever way the device answers by first, its machines are called by.
        let device = Place {
            key: Some(record.device_machine),
            name: Some(record.enrolment.device),
            by_hub: Some(by_hub),
            ..(*address).into()
        };
        Ok(Route { key, ..client.route(&device)? })
    }

    /// Asks the hub for what `query` asks for, and how it can be reached.
    fn reach(
        &self,
        client: &mut Client,
        query: &Query,
    ) -> anyhow::Result<(Option<Found>, Option<ByHub>)> {
        let route = self.hub_route(client)?;
        let keys = client.keys();
        let session = keys.machine.public_key();
        let asker = tenure_directory::sign_asker(&keys.signing_key, route.key, session);
        let reach = Reach { query: query.clone(), asker: Some(asker) };
        let parameter = postcard::to_allocvec(&reach)?;
        let answer = client.call(&route, directory::REACH, Some(parameter), HUB_TIMEOUT);
        if answer == Err(NoResult::NoSuchFunction) {
            // One of an earlier version.
            return Ok((self.ask_hub(client, query)?, None));
        }
        let answer = answer.with_context(|| format!("the hub at {}", route.address))?;
        let reached = postcard::from_bytes(&answer.unwrap_or_default());
        let Reached { found, answers_others, relayed } = reached.ok().context(UNREADABLE)?;
        if let (Ok(way), Address::Udp(hub)) = (relayed, &route.address) {
            client.relay_by(way, *hub);
        }
        Ok((found, Some(ByHub { answers_others, relayed })))
    }

    fn ask_hub(&self, client: &mut Client, query: &Query) -> anyhow::Result<Option<Found>> {
        let parameter = postcard::to_allocvec(query)?;
        let route = self.hub_route(client)?;
        let answer = client
            .call(&route, directory::RESOLVE, Some(parameter), HUB_TIMEOUT)
            .with_context(|| format!("the hub at {}", route.address))?;
        answer.map(|bytes| postcard::from_bytes(&bytes)).transpose().ok().context(UNREADABLE)
    }

    /// The way to the hub: the one that the user names by its key, or that was there at first. Of several addresses, with
    /// commas between, the first that answers counts.
    ///
    /// # Errors
    /// None is named, it doesn't answer, or it is another one.
    pub fn hub_route(&self, client: &mut Client) -> anyhow::Result<Route> {
        let text = self.hub_text(client);
        let text = text.context("say where the hub is with --hub or TENURE_HUB")?;
        let places = text.split(',').map(|text| {
            let (place, named) = split_key(text.trim())?;
            Ok::<_, anyhow::Error>((place, named, hub_place(place)?))
        });
        let (found, unknown): (Vec<_>, Vec<_>) = places.partition(Result::is_ok);
        let found: Vec<_> = found.into_iter().flatten().collect();
        // One of several names may be gone.
        if let (true, Some(Err(error))) = (found.is_empty(), unknown.into_iter().next()) {
            return Err(error);
        }
        let (addresses, url) = all_places(found.iter().map(|(.., place)| place));
        client.link.lead_to(&addresses, url);
        let (address, identity) = client.identify(&addresses, "hub")?;
        let key = identity.key.context("what answers there is no hub")?;
        client.authority().check_hub(&key)?;
        let is_there = |place: &HubPlace| place.addresses.contains(&address);
        let is_by_websocket = client.link.is_by_websocket();
        let answered = found
            .iter()
            .filter(|(.., place)| is_there(place) || is_by_websocket && place.url.is_some());
        for (place, named, _) in answered {
            client.known_mut().met_hub(place, named.as_ref(), &key)?;
        }
        Ok(Route { key, address: address.into(), epoch: Some(identity.epoch) })
    }

    /// The hub as the user names it, here or by `tenure use`.
    pub fn hub_text(&self, client: &Client) -> Option<String> {
        self.hub.as_deref().or(client.known().defaults().1).map(str::to_string)
    }
}

/// The addresses of a hub's places, and the WebSocket to it. What a WebSocket's host says of UDP counts where nothing else does.
fn all_places<'a>(
    places: impl Iterator<Item = &'a HubPlace> + Clone,
) -> (Vec<SocketAddr>, Option<TunnelUrl>) {
    let url = places.clone().find_map(|place| place.url.clone());
    let of = |is_url: bool| places.clone().filter(move |place| place.url.is_some() == is_url);
    let is_named = of(false).next().is_some();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in of(!is_named).flat_map(|place| &place.addresses) {
        if !addresses.contains(address) {
            addresses.push(*address);
        }
    }
    (addresses, url)
}

/// The user's device `name`, if it announces itself on this network.
fn nearby(client: &mut Client, name: &Name) -> Option<Device> {
    let place = |address: SocketAddr| Place { name: Some(name.clone()), ..address.into() };
    discovery::announced().find_map(|address| client.device(&place(address)).ok())
}

/// The record that was found, if its device and `owner` signed it, and no newer enrolment is known.
fn proven(
    found: &Found,
    client: &Client,
    owner: &VerifyingKey,
    what: &str,
) -> anyhow::Result<DeviceRecord> {
    let now_unix_s = client.unix_s();
    let record = tenure_directory::open(&found.record, now_unix_s).map_err(|refusal| {
        let expires = tenure_directory::open_whenever(&found.record).ok();
        match (refusal, expires) {
            (Refusal::Expired, Some(record)) => {
                anyhow!(out_of_time(what, record.expires_unix_s, now_unix_s))
            }
            _ => anyhow!(refusal).context(format!("the record of {what} proves nothing")),
        }
    })?;
    if record.owner != *owner {
        bail!("{what} is on a device of another owner");
    }
    if *owner == client.keys().signing_key.verifying_key() {
        client.authority().check_device(&record)?;
        client.known().check_device(&record)?;
    }
    Ok(record)
}

/// The key of the machine that `target` names on the device of a record.
///
/// # Errors
/// It has none of that name.
pub fn machine_of(record: &DeviceRecord, target: &Target) -> anyhow::Result<PublicKey> {
    let is_here = |device: &Name| record.enrolment.device == *device;
    let wanted = |(name, key): &&(Name, PublicKey)| match target {
        Target::Local(machine) => name == machine,
        Target::Remote { machine, device } => name == machine && is_here(device),
        Target::Id(id) => tenure_crypto::machine_id(key) == *id,
        Target::Key(wanted) => key == wanted,
        Target::Own => false,
    };
    let (_, key) = record.machines.iter().find(wanted).with_context(|| {
        let names = record.machines.iter().map(|(name, _)| name.as_str());
        no_such_machine(&target.to_string(), names)
    })?;
    Ok(*key)
}

/// A pass as it stands in a file, and what it says, if `owner` signed it.
fn read_pass(path: &Path, owner: &VerifyingKey) -> anyhow::Result<(Vec<u8>, Pass)> {
    let bytes = read(path)?;
    let pass = Pass::verify(&bytes, owner).with_context(|| format!("{}", path.display()))?;
    Ok((bytes, pass))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("can't read {}", path.display()))
}

/// All machines on a device.
///
/// # Errors
/// The device can't be reached.
pub fn machines(client: &mut Client, device: &Device) -> anyhow::Result<Vec<MachineStatus>> {
    gather("the device lists machines", |skip| {
        let page: MachineList = client.at(&device.route).list(ListMachines { skip })?;
        let known = skip as usize + page.machines.len();
        Ok((page.machines, known < page.total as usize))
    })
}

/// The machine of that name on a device.
///
/// # Errors
/// It has none, or can't be reached.
pub fn machine_named(
    client: &mut Client,
    device: &Device,
    name: &Name,
) -> anyhow::Result<MachineStatus> {
    let known = machines(client, device)?.into_iter().find(|machine| machine.name == *name);
    let on = &device.status.name;
    known.with_context(|| format!("{on} has no machine `{name}`; see `tenure list`"))
}

/// Nothing has that name, as those say who would know.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoSuch(pub(crate) String);

fn no_such_machine<'a>(name: &str, present: impl Iterator<Item = &'a str>) -> NoSuch {
    let names: Vec<&str> = present.collect();
    if names.is_empty() {
        return NoSuch(format!(
            "no machine `{name}`: the device has none yet; install one with `tenure install`"
        ));
    }
    NoSuch(format!("the device has no machine `{name}`; it has: {}", names.join(", ")))
}

fn unlisted(what: &str, list: &str) -> NoSuch {
    NoSuch(format!("the hub knows no {what}; see `{list}`"))
}

/// The commands that list what a hub knows.
const HUBS_DEVICES: &str = "tenure devices --hub";
const HUBS_MACHINES: &str = "tenure list --all";

/// `error`, with what the member knows of the way if nothing comes from a device behind it.
fn told_of_way(client: &mut Client, route: &Route, error: anyhow::Error) -> anyhow::Error {
    if error.downcast_ref::<Silent>().is_none() {
        return error;
    }
    match client.state_of_way(route) {
        Some(state) => anyhow!("{error:#}: {state}"),
        None => error,
    }
}

/// Why a record that its device signed doesn't count now: those who gave it judge it by other clocks.
fn out_of_time(what: &str, expires_unix_s: u64, now_unix_s: u64) -> String {
    let (expires, now) = (clock::time(expires_unix_s), clock::time(now_unix_s));
    if expires_unix_s >= now_unix_s {
        let ahead = clock::rough(expires_unix_s - now_unix_s);
        return format!(
            "the record of {what} counts until {expires}, {ahead} from now by this computer's clock, which is longer \
             than one lasts: this computer's clock ({now}) is behind, or that of the device ahead"
        );
    }
    let ago = now_unix_s - expires_unix_s;
    let since = format!(
        "the record of {what} counted until {expires}, and by this computer's clock it is {now}, {} later",
        clock::rough(ago)
    );
    match ago < CLOCKS_DIFFER_S {
        true => format!("{since}: the device was silent since; try again in a moment"),
        false => format!("{since}, though it is still given out: is this computer's clock right?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_that_is_out_of_time_is_told_with_both_times_and_the_clock_that_is_wrong() {
        let (expires, day) = (1_796_000_000, 24 * 60 * 60);
        let told = |now| out_of_time("device `n12`", expires, now);
        let late = told(expires + 400 * day);
        assert!(
            late.contains("later, though it is still given out: is this computer's clock right?")
        );
        let early = told(expires - 400 * day);
        assert!(early.contains("this computer's clock") && early.contains("is behind"), "{early}");
        assert!(told(expires + 20).ends_with("try again in a moment"), "{}", told(expires + 20));
    }
}
