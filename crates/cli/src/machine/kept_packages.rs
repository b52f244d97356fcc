//! The packages that this user's computer installed on each machine, in the folder of keys: `packages`.
//!
//! Invariants:
//! - A package that the history names is there as it was installed, under its digest.
//! - A machine has [`VERSIONS_MAX`] packages at most and a user [`MACHINES_MAX`] machines; the oldest go first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tenure_package::Package;
use tenure_wire::MachineId;

use crate::home::Home;
use crate::home::private_file;
use crate::make::package::read_package;

/// The most packages of one machine.
const VERSIONS_MAX: usize = 4;
/// The most machines.
const MACHINES_MAX: usize = 256;
/// The folder, in that of the keys.
const FOLDER: &str = "packages";
/// The order of packages, in that folder.
const HISTORY: &str = "history.toml";

/// The packages in the user's folder.
pub(crate) struct KeptPackages {
    folder: PathBuf,
    history: History,
}

#[derive(Default, Serialize, Deserialize)]
struct History {
    /// By id, which a machine keeps over updates, and a new one of that name doesn't get.
    #[serde(default)]
    machines: BTreeMap<String, Kept>,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// The time of the last installation, in seconds since 1970 UTC.
    installed_unix_s: u64,
    /// The digests of its packages, oldest first.
    packages: Vec<String>,
}

impl KeptPackages {
    /// Reads the user's folder.
    ///
    /// # Errors
    /// The history can't be read, or is something else.
    pub(crate) fn of(home: &Home) -> anyhow::Result<Self> {
        let folder = home.folder().join(FOLDER);
        let path = folder.join(HISTORY);
        let history = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text)
                .with_context(|| format!("{} can't be used; mend or delete it", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => History::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("can't read {}", path.display()));
            }
        };
        Ok(Self { folder, history })
    }

    /// Keeps a package that was installed on `machine` at that time, as [`Self::add`]. Other commands of this
    /// user's wait meanwhile, so that none forgets the other's.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn keep(
        home: &Home,
        machine: &MachineId,
        package: &[u8],
        since: (Option<String>, u64),
    ) -> anyhow::Result<()> {
        let folder = home.folder().join(FOLDER);
        let failed = || format!("can't write to {}", folder.display());
        std::fs::create_dir_all(&folder).with_context(failed)?;
        let _lock = home.lock()?;
        Self::of(home)?.add(machine, package, since)
    }

    /// Keeps a package that was installed on `machine` at that time. What was installed after another one of
    /// its packages, to which the machine has gone back since, is forgotten: it isn't before this one.
    ///
    /// # Errors
    /// It can't be written.
    fn add(
        &mut self,
        machine: &MachineId,
        package: &[u8],
        (before, unix_s): (Option<String>, u64),
    ) -> anyhow::Result<()> {
        let digest = Package::parse(package)?.digest().to_string();
        let entry = self.history.machines.entry(machine.to_string()).or_default();
        entry.installed_unix_s = unix_s;
        // One that is installed again, or gone back to, stands where it stood.
        if !entry.packages.contains(&digest) {
            let place =
                before.and_then(|before| entry.packages.iter().position(|kept| *kept == before));
            if let Some(place) = place {
                entry.packages.truncate(place + 1);
            }
            entry.packages.push(digest.clone());
            let too_many = entry.packages.len().saturating_sub(VERSIONS_MAX);
            entry.packages.drain(..too_many);
        }
        while self.history.machines.len() > MACHINES_MAX {
            let machines = self.history.machines.iter();
            let oldest = machines.min_by_key(|(_, kept)| kept.installed_unix_s);
            let Some(oldest) = oldest.map(|(machine, _)| machine.clone()) else { break };
            self.history.machines.remove(&oldest);
        }
        // The package before the history that names it, and what nothing names last.
        private_file::replace(&self.path_of(&digest), package)?;
        let text = toml::to_string(&self.history)?;
        private_file::replace(&self.folder.join(HISTORY), text.as_bytes())?;
        self.sweep();
        Ok(())
    }

    /// The package that `machine` had before the one with that digest; `None` if none is kept.
    ///
    /// # Errors
    /// It can't be read, or isn't what it was.
    pub(crate) fn before(
        &self,
        machine: &MachineId,
        digest: &str,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(kept) = self.history.machines.get(&machine.to_string()) else { return Ok(None) };
        let place = kept.packages.iter().position(|kept| kept == digest);
        let Some(before) = place.and_then(|place| kept.packages.get(place.checked_sub(1)?)) else {
            return Ok(None);
        };
        let path = self.path_of(before);
        let bytes = read_package(&path)?;
        let found = Package::parse(&bytes)?.digest().to_string();
        anyhow::ensure!(found == *before, "{} is another package", path.display());
        Ok(Some(bytes))
    }

    fn path_of(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.tenure"))
    }

    /// Deletes packages that nothing names.
    fn sweep(&self) {
        let machines = self.history.machines.values();
        let named: BTreeSet<PathBuf> =
            machines.flat_map(|kept| &kept.packages).map(|digest| self.path_of(digest)).collect();
        let Ok(files) = std::fs::read_dir(&self.folder) else { return };
        for path in files.filter_map(|file| Some(file.ok()?.path())) {
            let is_package = path.extension().is_some_and(|extension| extension == "tenure");
            if is_package && !named.contains(&path) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
