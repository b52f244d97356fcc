//! The devices and hubs that a user's commands remember: `known.toml`, in the folder of keys.
//!
//! Invariants:
//! - The key of a hub that was seen first at an address is kept; another one there is an error until
//!   the user names it by its key.
//! - A device's name stands for the key that the owner's newest enrolment of that name has. An older
//!   enrolment of it, or another key under the same one, is refused.
//! - The file is changed under the folder's lock, and replaced as a whole: a reader never finds half of it, and no command
//!   takes back what another wrote. What is checked before a change is checked again under the lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::{Address, Name, PublicKey, VerifyingKey};

use crate::home::Home;
use crate::home::private_file;

/// The file's name.
const FILE: &str = "known.toml";

/// The remembered devices and hubs, and where they are kept.
#[derive(Debug)]
pub struct Known {
    home: Home,
    path: PathBuf,
    kept: Kept,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Kept {
    /// The device that commands are about unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    /// The hub that they ask unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<String>,
    /// The hubs' keys, by address as the user writes it.
    hubs: BTreeMap<String, String>,
    /// The user's own devices, by name.
    devices: BTreeMap<String, KnownDevice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDevice {
    /// The key of the device's own machine.
    key: String,
    /// The number of the enrolment that says so.
    enrolment: u64,
    /// Where it was last found; nothing if members of its mesh alone hear it.
    address: String,
    /// The member by way of which it was last reached, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    /// The key that signs its records, since when that is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signing_key: Option<String>,
}

impl Known {
    /// The memory of the user in `home`; empty at first.
    ///
    /// # Errors
    /// The file can't be read, or holds something else.
    pub fn of(home: &Home) -> anyhow::Result<Self> {
        let path = home.folder().join(FILE);
        Ok(Self { home: home.clone(), kept: read(&path)?, path })
    }

    /// The device and the hub that commands are about unless told otherwise.
    pub fn defaults(&self) -> (Option<&str>, Option<&str>) {
        (self.kept.device.as_deref(), self.kept.hub.as_deref())
    }

    /// The addresses of the hubs that commands have met, as the user wrote them, with each one's key.
    pub fn hubs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kept.hubs.iter().map(|(address, key)| (address.as_str(), key.as_str()))
    }

    /// Sets those of both that are given.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn set_defaults(
        &mut self,
        device: Option<String>,
        hub: Option<String>,
    ) -> anyhow::Result<()> {
        self.change(|kept| {
            kept.device = device.or(kept.device.take());
            kept.hub = hub.or(kept.hub.take());
            Ok(())
        })
    }

    /// Forgets both.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn forget_defaults(&mut self) -> anyhow::Result<()> {
        self.change(|kept| {
            (kept.device, kept.hub) = (None, None);
            Ok(())
        })
    }

    /// The key and the last address of a device of this name, if it was ever met.
    ///
    /// # Errors
    /// The file says something that is no key or no address.
    pub fn device(&self, name: &Name) -> anyhow::Result<Option<(PublicKey, std::net::SocketAddr)>> {
        let known = self.kept.devices.get(name.as_str()).filter(|known| known.via.is_none());
        let Some(known) = known else { return Ok(None) };
        let place = || format!("{}: devices.{name}", self.path.display());
        let key = known.key.parse().with_context(place)?;
        Ok(Some((key, known.address.parse().with_context(place)?)))
    }

    /// The key that signs a device's records and that of its own machine, if both are remembered.
    ///
    /// # Errors
    /// The file says something that is no key.
    pub fn device_keys(&self, name: &Name) -> anyhow::Result<Option<(VerifyingKey, PublicKey)>> {
        let Some(known) = self.kept.devices.get(name.as_str()) else { return Ok(None) };
        let Some(signing) = &known.signing_key else { return Ok(None) };
        let place = || format!("{}: devices.{name}", self.path.display());
        let key = signing.parse().with_context(place)?;
        Ok(Some((key, known.key.parse().with_context(place)?)))
    }

    /// The number of the newest enrolment of that name; 0 if none is remembered.
    pub fn enrolment(&self, name: &Name) -> u64 {
        self.kept.devices.get(name.as_str()).map_or(0, |known| known.enrolment)
    }

    /// The names of all devices that were ever met, each with its key, its address, and the member by way of which it was
    /// reached; one of both is empty.
    pub fn devices_and_members(&self) -> impl Iterator<Item = [&str; 4]> {
        self.kept.devices.iter().map(|(name, known)| {
            let KnownDevice { key, address, via, .. } = known;
            [name, key, address, via.as_deref().unwrap_or_default()]
        })
    }

    /// The names of all devices that were ever met, with their keys and addresses.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let entries = self.kept.devices.iter();
        entries.map(|(name, known)| (name.as_str(), known.key.as_str(), known.address.as_str()))
    }

    /// Checks a record of one of the user's devices, whose signatures hold, against what is known of
    /// its name.
    ///
    /// # Errors
    /// A newer enrolment gave that name to another device.
    pub fn check_device(&self, record: &DeviceRecord) -> anyhow::Result<()> {
        self.kept.check(&record.enrolment, &record.device_machine)
    }

    /// What is to be said when the name of a device that was met is another's from now on, whose own machine has the key
    /// `machine`; `None` if it is the same device, or none was met.
    pub fn taken_name(&self, device: &Name, machine: &PublicKey) -> Option<String> {
        let known = self.kept.devices.get(device.as_str())?;
        let is_another = known.key != machine.to_string();
        is_another.then(|| {
            format!(
                "{device} was another device until now, of the key {}, which commands refuse from now on; if both are in \
                 use, start one with another --name, and enrol it anew: tenure enrol HOST:PORT",
                known.key
            )
        })
    }

    /// Whether a device of this name was ever met.
    pub fn has_met(&self, name: &Name) -> bool {
        self.kept.devices.contains_key(name.as_str())
    }

    /// Remembers a device that proved itself at `address`, or in its mesh by way of the member `via`.
    ///
    /// # Errors
    /// As [`Self::check_device`], or the file can't be written.
    pub fn met_device(
        &mut self,
        record: &DeviceRecord,
        address: &Address,
        via: Option<&str>,
    ) -> anyhow::Result<()> {
        let place = match (address, via) {
            (Address::Udp(address), _) => MetAt::Here(*address),
            (_, Some(member)) => MetAt::Beyond(member),
            (_, None) => return self.check_device(record),
        };
        let mut met = self.kept.clone();
        let (enrolment, machine) = (&record.enrolment, &record.device_machine);
        met.meet_device(enrolment, machine, place)?;
        if met == self.kept {
            return Ok(());
        }
        self.change(|kept| kept.meet_device(enrolment, machine, place))
    }

    /// Remembers a device that this user has just enrolled by way of `member`, by the key of its own machine.
    ///
    /// # Errors
    /// As [`Self::check_device`], or the file can't be written.
    pub fn enrolled_through(
        &mut self,
        enrolment: &Enrolment,
        machine: &PublicKey,
        member: &str,
    ) -> anyhow::Result<()> {
        self.change(|kept| kept.meet_device(enrolment, machine, MetAt::Beyond(member)))
    }

    /// Forgets a device.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn forget_device(&mut self, name: &Name) -> anyhow::Result<()> {
        self.change(|kept| {
            kept.devices.remove(name.as_str());
            Ok(())
        })
    }

    /// Decides whether the hub that shows `key` at `address` is the one meant: `named` by the user, else
    /// known, else the first one seen there.
    ///
    /// # Errors
    /// It is another one, or the file can't be written.
    pub fn met_hub(
        &mut self,
        address: &str,
        named: Option<&PublicKey>,
        key: &PublicKey,
    ) -> anyhow::Result<()> {
        let mut met = self.kept.clone();
        met.meet_hub(address, named, key)?;
        if met == self.kept {
            return Ok(());
        }
        self.change(|kept| kept.meet_hub(address, named, key))
    }

    /// Changes what is kept under the lock of the folder, beginning with what another command has written since. A
    /// change that is refused, or changes nothing, writes nothing.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Kept) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let _lock = self.home.lock()?;
        let before = read(&self.path)?;
        let mut kept = before.clone();
        change(&mut kept)?;
        if kept != before {
            private_file::replace(&self.path, toml::to_string(&kept)?.as_bytes())?;
        }
        self.kept = kept;
        Ok(())
    }
}

/// Where a device proved itself.
#[derive(Clone, Copy, Debug)]
enum MetAt<'a> {
    /// At an address.
    Here(std::net::SocketAddr),
    /// In its mesh, by way of this member.
    Beyond(&'a str),
}

impl Kept {
    fn check(&self, enrolment: &Enrolment, machine: &PublicKey) -> anyhow::Result<()> {
        let name = &enrolment.device;
        let Some(known) = self.devices.get(name.as_str()) else { return Ok(()) };
        let (key, number) = (machine.to_string(), enrolment.number);
        if number <= known.enrolment && known.key != key {
            bail!(
                "the record of {name} is out of date: its key {key} was replaced by {} when {name} was \
                 enrolled anew",
                known.key
            );
        }
        Ok(())
    }

    /// Puts a device that proved itself in its place. One that was met at an address keeps that when it is reached by way of a
    /// member.
    fn meet_device(
        &mut self,
        enrolment: &Enrolment,
        machine: &PublicKey,
        place: MetAt<'_>,
    ) -> anyhow::Result<()> {
        self.check(enrolment, machine)?;
        let (name, key) = (enrolment.device.to_string(), machine.to_string());
        let before = self.devices.get(&name);
        let known = before.map_or(0, |known| known.enrolment);
        let (address, via) = match place {
            MetAt::Here(address) => (address.to_string(), None),
            MetAt::Beyond(member) => before
                .filter(|known| known.key == key && known.via.is_none())
                .map_or((String::new(), Some(member.to_string())), |known| {
                    (known.address.clone(), None)
                }),
        };
        let met = KnownDevice {
            key,
            enrolment: enrolment.number.max(known),
            address,
            via,
            signing_key: Some(enrolment.device_key.to_string()),
        };
        self.devices.insert(name, met);
        Ok(())
    }

    /// Puts the hub that shows `key` at `address` in its place, if it is the one meant.
    fn meet_hub(
        &mut self,
        address: &str,
        named: Option<&PublicKey>,
        key: &PublicKey,
    ) -> anyhow::Result<()> {
        let (known, shown) = (self.hubs.get(address), key.to_string());
        match (named, known) {
            (Some(named), _) if named != key => {
                bail!("the hub at {address} has the key {shown}, and not the one that you name")
            }
            (None, Some(known)) if *known != shown => bail!(
                "the hub at {address} has the key {shown}, and you know it by {known}: it is another \
                 hub. If yours was made anew, say so once: --hub {address}#{shown}"
            ),
            _ => drop(self.hubs.insert(address.to_string(), shown)),
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Kept> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text)
            .with_context(|| format!("{} can't be used; mend it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

#[cfg(test)]
mod tests;
