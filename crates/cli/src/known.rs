//! The devices and hubs that a user's commands remember: `known.toml`, in the folder of keys.
//!
//! Invariants:
//! - The key of a hub that was seen first at an address is kept; another one there is an error until
//!   the user names it by its key.
//! - A device's name stands for the key that the owner's newest enrolment of that name has. An older
//!   enrolment of it, or another key under the same one, is refused.
//! - The file is replaced as a whole, so a reader never finds half of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tenure_wire::directory::DeviceRecord;
use tenure_wire::{Address, Name, PublicKey, VerifyingKey};

use crate::home::{Home, create_private_folder};
use crate::private_file;

/// The file's name.
const FILE: &str = "known.toml";

/// The remembered devices and hubs, and where they are kept.
#[derive(Debug)]
pub struct Known {
    path: PathBuf,
    kept: Kept,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Where it was last found.
    address: String,
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
        let kept = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text)
                .with_context(|| format!("{} can't be used; mend it", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Kept::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("can't read {}", path.display()));
            }
        };
        Ok(Self { path, kept })
    }

    /// The device and the hub that commands are about unless told otherwise.
    pub fn defaults(&self) -> (Option<&str>, Option<&str>) {
        (self.kept.device.as_deref(), self.kept.hub.as_deref())
    }

    /// Sets both.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn set_defaults(
        &mut self,
        device: Option<String>,
        hub: Option<String>,
    ) -> anyhow::Result<()> {
        self.change(|kept| (kept.device, kept.hub) = (device, hub))
    }

    /// The key and the last address of a device of this name, if it was ever met.
    ///
    /// # Errors
    /// The file says something that is no key or no address.
    pub fn device(&self, name: &Name) -> anyhow::Result<Option<(PublicKey, std::net::SocketAddr)>> {
        let Some(known) = self.kept.devices.get(name.as_str()) else { return Ok(None) };
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

    /// The names of all devices that were ever met.
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
        let name = &record.enrolment.device;
        let Some(known) = self.kept.devices.get(name.as_str()) else { return Ok(()) };
        let (key, number) = (record.device_machine.to_string(), record.enrolment.number);
        let is_same = known.key == key;
        if number <= known.enrolment && !is_same {
            bail!(
                "the record of {name} is out of date: its key {key} was replaced by {} when {name} was \
                 enrolled anew",
                known.key
            );
        }
        Ok(())
    }

    /// Remembers a device that proved itself at `address`.
    ///
    /// # Errors
    /// As [`Self::check_device`], or the file can't be written.
    pub fn met_device(&mut self, record: &DeviceRecord, address: &Address) -> anyhow::Result<()> {
        self.check_device(record)?;
        let Address::Udp(address) = address else { return Ok(()) };
        let name = record.enrolment.device.to_string();
        let known = self.kept.devices.get(&name).map_or(0, |known| known.enrolment);
        let met = KnownDevice {
            key: record.device_machine.to_string(),
            enrolment: record.enrolment.number.max(known),
            address: address.to_string(),
            signing_key: Some(record.enrolment.device_key.to_string()),
        };
        if self.kept.devices.get(&name) == Some(&met) {
            return Ok(());
        }
        self.change(|kept| drop(kept.devices.insert(name, met)))
    }

    /// Forgets a device.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn forget_device(&mut self, name: &Name) -> anyhow::Result<()> {
        self.change(|kept| drop(kept.devices.remove(name.as_str())))
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
        let (known, shown) = (self.kept.hubs.get(address), key.to_string());
        match (named, known) {
            (Some(named), _) if named != key => {
                bail!("the hub at {address} has the key {shown}, and not the one that you name")
            }
            (None, Some(known)) if *known != shown => bail!(
                "the hub at {address} has the key {shown}, and you know it by {known}: it is another \
                 hub. If yours was made anew, say so once: --hub {address}#{shown}"
            ),
            (_, Some(known)) if *known == shown => Ok(()),
            _ => self.change(|kept| drop(kept.hubs.insert(address.to_string(), shown))),
        }
    }

    /// Changes what is kept, beginning with what another command may have written since.
    fn change(&mut self, change: impl FnOnce(&mut Kept)) -> anyhow::Result<()> {
        if let Ok(text) = std::fs::read_to_string(&self.path) {
            self.kept = toml::from_str(&text).unwrap_or_default();
        }
        change(&mut self.kept);
        let text = toml::to_string(&self.kept)?;
        // The first command of a user may be one that needs no key.
        if let Some(folder) = self.path.parent() {
            create_private_folder(folder)
                .with_context(|| format!("can't make {}", folder.display()))?;
        }
        private_file::replace(&self.path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests;
