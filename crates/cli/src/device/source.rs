//! The record or journal that a command looks into: a file, or what a device keeps of one of its machines now.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;
use tenure_wire::Target;

use crate::home::private_file;
use crate::machine::journal;
use crate::reach::whom::TenantWhere;
use crate::whole_file;

/// A record or journal, on this computer for as long as this lives.
pub(super) struct Source {
    path: PathBuf,
    _fetched: Option<TempDir>,
}

impl Source {
    /// The file of that name; if there is none, and the name is MACHINE@DEVICE, the journal that the device keeps of
    /// its machine.
    ///
    /// # Errors
    /// The device can't be reached or refuses, or the journal can't be written to a folder for the time being.
    pub(super) fn of(name: &Path) -> anyhow::Result<Self> {
        let target = name.to_str().and_then(|name| name.parse().ok());
        match target {
            Some(Target::Remote { machine, device }) if !name.exists() => {
                let place = TenantWhere::of(device.as_str());
                let (_, bytes) = journal::fetched(&machine, &place)
                    .with_context(|| format!("the journal of {machine} on {device}"))?;
                let folder = whole_file::private_folder().context("no folder for a journal")?;
                let path = folder.path().join(name);
                private_file::replace(&path, &bytes)?;
                Ok(Self { path, _fetched: Some(folder) })
            }
            _ => Ok(Self { path: name.to_path_buf(), _fetched: None }),
        }
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
