//! Machines on the owner's devices, found as the owner.

use anyhow::ensure;
use serde_json::json;
use tenure_pages::{Entry, NoPage};
use tenure_wire::Target;

use super::Finds;
use crate::reach::client::{Client, Route};
use crate::reach::whom::{NoSuch, Where, machines};
use crate::terminal::output::Output;

/// Finds the machines on one device, on those that were met before, or with a hub on all of them.
pub struct OwnersFinder {
    client: Client,
    place: Where,
    output: Output,
}

impl OwnersFinder {
    /// Searches as `client`'s user, on the device at `place` first.
    pub fn new(client: Client, place: Where, output: Output) -> Self {
        Self { client, place, output }
    }

    /// A visitor's word is no name of a host: an unknown device's machine is looked for on this one alone.
    fn way(&mut self, machine: &Target) -> anyhow::Result<Route> {
        let Target::Remote { machine: name, device } = machine else {
            return self.place.machine(&mut self.client, machine);
        };
        let has_hub = self.place.hub.is_some() || self.client.known().defaults().1.is_some();
        if has_hub || self.client.known().device(device)?.is_some() {
            return self.place.machine(&mut self.client, machine);
        }
        let here = self.place.connect(&mut self.client)?.status.name;
        ensure!(
            here == *device,
            NoSuch(format!("no device of the name `{device}` was met before"))
        );
        self.place.machine(&mut self.client, &Target::Local(name.clone()))
    }

    /// The reason for visitors; a fault of the owner's side is told on the terminal.
    fn no_way(&self, to: &str, error: &anyhow::Error) -> NoPage {
        if error.is::<NoSuch>() {
            return NoPage::Unknown;
        }
        let object = json!({ "event": "no way", "to": to, "error": format!("{error:#}") });
        self.output.line(&format!("no way to {to}: {error:#}"), &object);
        NoPage::Away
    }
}

impl Finds for OwnersFinder {
    fn machine(&mut self, machine: &Target) -> Result<Route, NoPage> {
        self.way(machine).map_err(|error| self.no_way(&machine.to_string(), &error))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, NoPage> {
        let found = self.place.connect(&mut self.client).and_then(|device| {
            let machines = machines(&mut self.client, &device)?;
            let with_pages = machines.into_iter().filter(|machine| {
                machine.exports.iter().any(|name| name == tenure_pages::FUNCTION)
            });
            let device = device.status.name;
            Ok(with_pages
                .map(|machine| Entry { device: device.clone(), machine: machine.name })
                .collect())
        });
        found.map_err(|error| self.no_way("the device", &error))
    }
}
