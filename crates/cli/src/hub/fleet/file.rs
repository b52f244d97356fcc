//! `fleet.toml`: the machines that an owner wants on which devices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use tenure_package::Package;
use tenure_wire::{Label, Name};

use crate::home::Home;
use crate::machine::grant::Grant;
use crate::make::build::package_at;
use crate::make::package::read_package;
use crate::written_file;

/// The most entries of a file.
const ENTRIES_MAX: usize = 1_000;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Machines, each on some devices.
    #[serde(default)]
    machine: Vec<Entry>,
}

/// A machine on some devices.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Its name; by default that of its package.
    name: Option<Name>,
    /// The package, or the folder of a project, relative to the file.
    package: Option<PathBuf>,
    /// Whether the machine is to be removed from the devices.
    #[serde(default)]
    absent: bool,
    /// The devices by name.
    #[serde(default)]
    devices: Vec<Name>,
    /// The labels that devices carry, all of them, in the place of names.
    #[serde(default)]
    labels: Vec<String>,
    /// Its rights, in the words of `tenure install --grant`.
    #[serde(default)]
    grant: Vec<String>,
}

/// The wish for one machine on one device.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// It has this package and these rights.
    Present {
        /// The package's number in [`Fleet::packages`].
        package: usize,
        /// Its rights.
        grants: Vec<Grant>,
    },
    /// There is no such machine.
    Absent,
}

/// A file that makes sense, for the devices of a hub.
#[derive(Debug)]
pub(super) struct Fleet {
    /// The packages that it names.
    pub(super) packages: Vec<Vec<u8>>,
    /// The wish for each machine on each device.
    pub(super) wishes: BTreeMap<Name, BTreeMap<Name, Wish>>,
}

/// A device as the hub lists it.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) name: Name,
    pub(super) labels: Vec<Label>,
    /// When the hub heard it last, in seconds since 1970 UTC.
    pub(super) heard_unix_s: Option<u64>,
}

impl Fleet {
    /// Reads the file at `path`, and builds the projects that it names.
    ///
    /// # Errors
    /// It can't be read, contradicts itself, or selects no device.
    pub(super) fn read(path: &Path, listed: &[Listed], home: &Home) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("can't read {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let build = |package: &Path| read_package(&package_at(&folder.join(package), home)?);
        Self::parse(&text, listed, build).with_context(|| path.display().to_string())
    }

    /// Reads `text` for the devices in `listed`; `read` returns the bytes of a package.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn parse(
        text: &str,
        listed: &[Listed],
        mut read: impl FnMut(&Path) -> anyhow::Result<Vec<u8>>,
    ) -> anyhow::Result<Self> {
        let file: File = written_file::parse(text)?;
        ensure!(file.machine.len() <= ENTRIES_MAX, "it has more than {ENTRIES_MAX} entries");
        let mut fleet = Self { packages: Vec::new(), wishes: BTreeMap::new() };
        for (index, entry) in file.machine.iter().enumerate() {
            let number = index + 1;
            fleet
                .add(entry, listed, &mut read)
                .with_context(|| format!("[[machine]] number {number}"))?;
        }
        Ok(fleet)
    }

    fn add(
        &mut self,
        entry: &Entry,
        listed: &[Listed],
        read: &mut impl FnMut(&Path) -> anyhow::Result<Vec<u8>>,
    ) -> anyhow::Result<()> {
        let (name, wish) = match (&entry.package, entry.absent) {
            (Some(package), false) => {
                let bytes = read(package)?;
                let package_name = Package::parse(&bytes)?.manifest().name.clone();
                self.packages.push(bytes);
                let grants = entry.grant.iter().map(|word| {
                    word.parse::<Grant>()
                        .map_err(|error| anyhow::anyhow!("grant `{word}`: {error}"))
                });
                let grants = grants.collect::<Result<_, _>>()?;
                let package = self.packages.len() - 1;
                (entry.name.clone().unwrap_or(package_name), Wish::Present { package, grants })
            }
            (None, true) => {
                let name =
                    entry.name.clone().context("`absent` needs the `name` of the machine")?;
                ensure!(entry.grant.is_empty(), "a machine that is absent has no `grant`");
                (name, Wish::Absent)
            }
            (Some(_), true) => bail!("a machine is `absent` or has a `package`"),
            (None, false) => bail!("say the `package`, or that the machine is `absent`"),
        };
        for device in entry.devices_of(listed)? {
            let wishes = self.wishes.entry(device.clone()).or_default();
            if wishes.insert(name.clone(), wish.clone()).is_some() {
                bail!("another entry names {name} on {device}, too");
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The devices that it is about.
    fn devices_of(&self, listed: &[Listed]) -> anyhow::Result<Vec<Name>> {
        if self.devices.is_empty() == self.labels.is_empty() {
            bail!("say `devices` or `labels`, one of them");
        }
        for name in &self.devices {
            let is_listed = listed.iter().any(|device| device.name == *name);
            ensure!(is_listed, "the hub lists no device {name} of yours");
        }
        if !self.devices.is_empty() {
            return Ok(self.devices.clone());
        }
        let read = |text: &String| {
            text.parse::<Label>().map_err(|error| anyhow::anyhow!("label `{text}`: {error}"))
        };
        let labels: Vec<Label> = self.labels.iter().map(read).collect::<Result<_, _>>()?;
        let carries = |device: &&Listed| labels.iter().all(|label| device.labels.contains(label));
        let devices: Vec<Name> =
            listed.iter().filter(carries).map(|device| device.name.clone()).collect();
        ensure!(!devices.is_empty(), "no device that the hub lists carries those labels");
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> Vec<Listed> {
        let device = |name: &str, labels: &[&str]| Listed {
            name: name.parse().unwrap(),
            labels: labels.iter().map(|label| label.parse().unwrap()).collect(),
            heard_unix_s: None,
        };
        vec![
            device("attic", &["site=north", "kind=door"]),
            device("barn", &["site=north"]),
            device("den", &[]),
        ]
    }

    fn parse(text: &str) -> anyhow::Result<Fleet> {
        Fleet::parse(text, &listed(), |path| bail!("no package {}", path.display()))
    }

    #[test]
    fn labels_select_the_devices_that_carry_all_of_them() {
        let fleet =
            parse("[[machine]]\nname = \"old\"\nabsent = true\nlabels = [\"site=north\"]").unwrap();
        let names: Vec<&str> = fleet.wishes.keys().map(Name::as_str).collect();
        assert_eq!(names, ["attic", "barn"]);
        let both =
            "[[machine]]\nname = \"old\"\nabsent = true\nlabels = [\"site=north\", \"kind=door\"]";
        assert_eq!(parse(both).unwrap().wishes.len(), 1);
        assert!(parse("").unwrap().wishes.is_empty(), "nothing is wanted");
    }

    #[test]
    fn file_that_makes_no_sense_is_refused_with_the_reason() {
        let absent = "name = \"old\"\nabsent = true\n";
        let twice = format!(
            "[[machine]]\n{absent}devices = [\"den\"]\n[[machine]]\n{absent}devices = [\"den\"]"
        );
        let cases = [
            (twice, "another entry names old on den"),
            (format!("[[machine]]\n{absent}"), "say `devices` or `labels`"),
            (
                format!("[[machine]]\n{absent}devices = [\"den\"]\nlabels = [\"a=b\"]"),
                "one of them",
            ),
            (format!("[[machine]]\n{absent}devices = [\"moon\"]"), "lists no device moon"),
            (format!("[[machine]]\n{absent}labels = [\"a=b\"]"), "carries those labels"),
            (
                format!("[[machine]]\n{absent}devices = [\"den\"]\ngrant = [\"all\"]"),
                "has no `grant`",
            ),
            (
                format!("[[machine]]\n{absent}package = \"x\"\ndevices = [\"den\"]"),
                "`absent` or has",
            ),
            ("[[machine]]\ndevices = [\"den\"]".into(), "say the `package`"),
            ("[[machine]]\nabsent = true\ndevices = [\"den\"]".into(), "needs the `name`"),
            ("[[machine]]\npackage = \"x\"\ndevices = [\"den\"]".into(), "no package x"),
            (format!("[[machine]]\n{absent}labels = [\"north\"]"), "label `north`"),
            ("[[machine]]\ncolour = 1".into(), "unknown field"),
            ("[[machines]]".into(), "unknown field"),
        ];
        for (text, reason) in cases {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
