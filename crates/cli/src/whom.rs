//! Which device and which machine a command is about.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tenure_wire::control::{ListMachines, MachineList, MachineStatus, function as control};
use tenure_wire::directory::{Found, Query, function as directory};
use tenure_wire::{Address, Name, Target, VerifyingKey};

use crate::client::{Client, Device, LeasedDevice, Route};
use crate::network::{DEVICE_PORT, HUB_PORT, address_of};

/// How long the hub may take to answer.
const HUB_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The device and the hub to use.
#[derive(clap::Args)]
pub struct Where {
    /// The device: HOST:PORT, or a name that the hub knows.
    #[arg(long, value_name = "DEVICE", env = "TENURE_DEVICE", default_value = "127.0.0.1:7370")]
    pub device: String,
    /// The hub, which knows where named devices are.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    pub hub: Option<String>,
}

impl Where {
    /// Opens a session with the device.
    ///
    /// # Errors
    /// It isn't known or can't be reached, or isn't this user's.
    pub fn connect(&self, client: &mut Client) -> anyhow::Result<Device> {
        let address = self.device_address(client)?;
        client.device(address)
    }

    /// Opens a session with a device that this user has leased from `owner`, by default from
    /// themself.
    ///
    /// # Errors
    /// It isn't known or can't be reached, or isn't that owner's.
    pub fn connect_as_tenant(
        &self,
        client: &mut Client,
        owner: Option<VerifyingKey>,
    ) -> anyhow::Result<LeasedDevice> {
        let address = self.device_address(client)?;
        client.leased_device(address, owner)
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
            Target::Remote { device, .. } => {
                self.at_hub(client, &Query::Device(device.clone()), target)
            }
            Target::Id(id) => self.at_hub(client, &Query::Id(*id), target),
            Target::Key(key) => self.at_hub(client, &Query::Key(*key), target),
        }
    }

    fn device_address(&self, client: &mut Client) -> anyhow::Result<SocketAddr> {
        let Ok(name) = self.device.parse::<Name>() else {
            return address_of(&self.device, DEVICE_PORT);
        };
        if self.hub.is_none() {
            return address_of(&self.device, DEVICE_PORT)
                .context("to find a device by its name, say where the hub is with --hub");
        }
        let found = self.ask_hub(client, &Query::Device(name.clone()))?;
        match found.with_context(|| unlisted(&format!("device `{name}`")))?.seen_at {
            Address::Udp(address) => Ok(address),
            other => bail!("the device `{name}` is at {other}, which can't be reached from here"),
        }
    }

    /// The way to a machine by its device's record, which must be enrolled by this user.
    fn at_hub(&self, client: &mut Client, query: &Query, target: &Target) -> anyhow::Result<Route> {
        let found = self.ask_hub(client, query)?;
        let found = found.with_context(|| match target {
            Target::Remote { device, .. } => unlisted(&format!("device `{device}`")),
            target => unlisted(&format!("machine `{target}`")),
        })?;
        let record = tenure_directory::open(&found.record, client.unix_s())
            .with_context(|| format!("the hub's record of `{target}` proves nothing"))?;
        if record.owner != client.keys().signing_key.verifying_key() {
            bail!("`{target}` is on a device of another owner");
        }
        let wanted = |(name, key): &&(Name, tenure_wire::PublicKey)| match target {
            Target::Remote { machine, .. } => name == machine,
            Target::Id(id) => tenure_crypto::machine_id(key) == *id,
            Target::Key(wanted) => key == wanted,
            Target::Own | Target::Local(_) => false,
        };
        let (_, key) = record.machines.iter().find(wanted).with_context(|| {
            let names = record.machines.iter().map(|(name, _)| name.as_str());
            no_such_machine(&target.to_string(), names)
        })?;
        Ok(Route { key: *key, address: found.seen_at, epoch: Some(record.epoch) })
    }

    fn ask_hub(&self, client: &mut Client, query: &Query) -> anyhow::Result<Option<Found>> {
        let parameter = postcard::to_allocvec(query)?;
        let route = self.hub_route(client)?;
        let answer = client
            .call(&route, directory::RESOLVE, Some(parameter), HUB_TIMEOUT)
            .with_context(|| format!("the hub at {}", route.address))?;
        let found = answer.map(|bytes| postcard::from_bytes(&bytes)).transpose();
        found.context("the hub's answer can't be read: it runs another version")
    }

    /// The way to the hub.
    ///
    /// # Errors
    /// None is named, or it doesn't answer.
    pub fn hub_route(&self, client: &mut Client) -> anyhow::Result<Route> {
        let text = self.hub.as_deref().context("say where the hub is with --hub or TENURE_HUB")?;
        let address = address_of(text, HUB_PORT)?;
        let identity = client.identify(address, "hub")?;
        let key = identity.key.context("what answers there is no hub")?;
        Ok(Route { key, address: address.into(), epoch: Some(identity.epoch) })
    }
}

/// All machines on a device.
///
/// # Errors
/// The device can't be reached.
pub fn machines(client: &mut Client, device: &Device) -> anyhow::Result<Vec<MachineStatus>> {
    let mut machines: Vec<MachineStatus> = Vec::new();
    loop {
        let skip = machines.len() as u32;
        let page: MachineList =
            client.control(&device.route, control::LIST, &ListMachines { skip })?;
        let last = page.machines.is_empty();
        machines.extend(page.machines);
        if last || machines.len() >= page.total as usize {
            return Ok(machines);
        }
    }
}

fn no_such_machine<'a>(name: &str, present: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = present.collect();
    if names.is_empty() {
        return format!(
            "no machine `{name}`: the device has none yet; install one with `tenure install`"
        );
    }
    format!("the device has no machine `{name}`; it has: {}", names.join(", "))
}

fn unlisted(what: &str) -> String {
    format!("the hub knows no {what}; see `tenure list --all`")
}
