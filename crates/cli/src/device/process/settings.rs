//! The settings of a device that is a process: its folder's, those of its start, and what a record keeps of them.

use std::fs::{DirBuilder, DirEntry, Metadata, OpenOptions, Permissions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tenure_board_linux::FileFlash;
use tenure_hal::ResetCause;
use tenure_kernel::Breadcrumb;
use tenure_kernel::policy::PolicyKind;
use tenure_node::{Config, Hub, Owner, Parts};
use tenure_protocols::plug_in::Registry;
use tenure_replay::Tape;
use tenure_vm::Limits;
use tenure_wire::{Address, Label, LabelError, Name, PublicKey, TopicPattern};

use super::{Arguments, FLASH, SETTINGS, roomy_kernel};
use crate::device::deep_sleep;
use crate::device::link;
use crate::home::{Home, parse_owner};
use crate::reach::client::OwnerKeys;

/// The extension of settings that are being written, and take the place of those before.
const NEXT: &str = "next";

/// The file of a record is its owner's alone: it holds the device's keys.
const RECORD_MODE: u32 = 0o600;
/// The modes of a device's folder and of the file that says whose it is.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The bits of a mode by which a group, and anybody, may write.
const BY_GROUP: u32 = 0o020;
const BY_ANYBODY: u32 = 0o002;

/// The settings that a data folder remembers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) name: String,
    owner_signing_key: String,
    owner_machine_key: String,
    #[serde(default = "default_policy")]
    policy: String,
    #[serde(default)]
    memory_bytes: Option<usize>,
    #[serde(default)]
    swap_bytes: Option<u32>,
    #[serde(default)]
    receipts_every_s: Option<u64>,
    #[serde(default)]
    experiments: bool,
    #[serde(default)]
    pub(super) discover: Option<bool>,
    #[serde(default)]
    pub(super) native_speed: Option<bool>,
    #[serde(default)]
    pub(super) mesh_own_thread: bool,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    log_to_hub: bool,
    #[serde(default)]
    reach: Option<bool>,
    #[serde(default)]
    pub(super) reach_authorities: Vec<PathBuf>,
    #[serde(default)]
    pub(super) reach_servers: Option<PathBuf>,
    /// Where it listens, as its owner said; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) listen: Option<String>,
    #[serde(default, skip_serializing_if = "link::Meshing::is_empty")]
    pub(super) mesh: link::Meshing,
}

fn default_policy() -> String {
    PolicyKind::default().to_string()
}

/// Everything that one start of a device is configured by. A record keeps it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    pub(super) settings: Settings,
    pub(super) sleep: deep_sleep::Sleeping,
    /// The hub's address and, if it is pinned, its key.
    pub(super) hub: Option<(Address, Option<PublicKey>)>,
    /// Its further addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hub_also_at: Vec<Address>,
    /// Retained memory, if the watchdog has started the device.
    pub(super) bite: Option<Vec<u8>>,
    /// The topics whose events leave the device: to a broker, or to clients of CoAP.
    #[serde(default)]
    pub(super) bridged: Vec<TopicPattern>,
}

impl Start {
    /// The node's configuration.
    ///
    /// # Errors
    /// A name, a key or a policy is none.
    pub(crate) fn config(&self, registry: Registry) -> anyhow::Result<Config> {
        let settings = &self.settings;
        let mut config = Config::new(settings.name.parse()?, owner_in(settings)?);
        config.kernel = roomy_kernel();
        config.module = Limits::ample();
        config.kernel.policy = settings.policy.parse()?;
        config.kernel.swap_bytes_max = settings.swap_bytes.unwrap_or(0);
        if let Some(bytes) = settings.memory_bytes {
            config.kernel.memory_bytes_max = bytes;
        }
        if let Some(seconds) = settings.receipts_every_s {
            config.receipt_period = Duration::from_secs(seconds);
        }
        config.rpc = tenure_rpc::Config::large();
        config.experiments = settings.experiments;
        config.protocols = registry;
        let labels = settings.labels.iter().map(|label| label.parse());
        config.labels = labels.collect::<Result<_, LabelError>>().context("the device's labels")?;
        config.shares_log = settings.log_to_hub;
        config.reaches = settings.reach.unwrap_or(true);
        config.bridged = self.bridged.clone();
        config.log_lines_max = 4096;
        config.sleep = self.sleep.policy();
        config.hub = self.hub.clone().map(|(address, key)| Hub { address, key });
        config.hub_also_at.clone_from(&self.hub_also_at);
        if let Some(retained) = &self.bite {
            config.reset_cause = ResetCause::Watchdog;
            config.breadcrumb = Breadcrumb::from_bytes(retained);
        }
        Ok(config)
    }

    /// Begins a record in a new file at `path`.
    ///
    /// # Errors
    /// There is such a file, or it can't be written; or the mesh's datagrams have a thread of their own, which
    /// no record can repeat.
    pub(super) fn record(&self, path: &Path, parts: &mut Parts<FileFlash>) -> anyhow::Result<Tape> {
        if self.settings.mesh_own_thread {
            bail!(
                "a device whose mesh has a thread of its own can't be recorded; add --mesh-own-thread false"
            );
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(RECORD_MODE);
        let failed = || format!("can't record in {}", path.display());
        let file = options.open(path).with_context(failed)?;
        let settings = serde_json::to_vec(self)?;
        Tape::begin(Box::new(BufWriter::new(file)), &settings, parts).with_context(failed)
    }
}

/// The settings of the folder as the arguments say, and whether the device is yet to be made there ([`make`]). They are
/// kept when the device is this process's: see [`keep`].
pub(super) fn settings(
    folder: &Path,
    arguments: &Arguments,
    home: &Home,
) -> anyhow::Result<(Settings, bool)> {
    let path = folder.join(SETTINGS);
    let known = read_settings(folder, &path)?;
    let name = match (&arguments.name, &known) {
        (Some(name), _) => name.to_string(),
        (None, Some(known)) => known.name.clone(),
        (None, None) => name_of_folder(folder)?.to_string(),
    };
    let owner = match (arguments.owner, &known) {
        (Some(owner), Some(known)) if owner_in(known)? != owner => bail!(
            "the device in {} belongs to another owner; leave --owner out, or name another folder",
            folder.display()
        ),
        (Some(owner), _) => owner,
        (None, Some(known)) => owner_in(known)?,
        (None, None) => OwnerKeys::of(home)?.owner(),
    };
    let settings = Settings {
        name,
        owner_signing_key: owner.verifying_key.to_string(),
        owner_machine_key: owner.machine.to_string(),
        policy: match (arguments.policy, &known) {
            (Some(policy), _) => policy.to_string(),
            (None, Some(known)) => known.policy.clone(),
            (None, None) => default_policy(),
        },
        listen: arguments.listen.clone().or(known.as_ref().and_then(|one| one.listen.clone())),
        mesh: match &known {
            Some(known) if arguments.meshing.is_empty() => known.mesh.clone(),
            _ => arguments.meshing.clone(),
        },
        experiments: arguments
            .experiments
            .unwrap_or_else(|| known.as_ref().is_some_and(|known| known.experiments)),
        discover: arguments.discover.or(known.as_ref().and_then(|known| known.discover)),
        native_speed: arguments
            .native_speed
            .or(known.as_ref().and_then(|known| known.native_speed)),
        mesh_own_thread: arguments
            .mesh_own_thread
            .unwrap_or_else(|| known.as_ref().is_some_and(|known| known.mesh_own_thread)),
        labels: match &known {
            Some(known) if arguments.labels.is_empty() => known.labels.clone(),
            _ => arguments.labels.iter().map(Label::to_string).collect(),
        },
        log_to_hub: arguments
            .log_to_hub
            .unwrap_or_else(|| known.as_ref().is_some_and(|known| known.log_to_hub)),
        reach: arguments.reach.or(known.as_ref().and_then(|known| known.reach)),
        reach_authorities: match &known {
            Some(known) if arguments.reach_ca.is_empty() => known.reach_authorities.clone(),
            _ => arguments
                .reach_ca
                .iter()
                .map(|path| absolute(path))
                .collect::<anyhow::Result<_>>()?,
        },
        reach_servers: match &arguments.reach_servers {
            Some(path) => Some(absolute(path)?),
            None => known.as_ref().and_then(|known| known.reach_servers.clone()),
        },
        memory_bytes: arguments.memory_bytes.or(known.as_ref().and_then(|one| one.memory_bytes)),
        swap_bytes: arguments.swap_bytes.or(known.as_ref().and_then(|one| one.swap_bytes)),
        receipts_every_s: arguments
            .receipts_every
            .map(|span| span.as_secs())
            .or(known.as_ref().and_then(|one| one.receipts_every_s)),
    };
    Ok((settings, known.is_none()))
}

/// The path as another start finds it, from whatever folder.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("can't find {}", path.display()))
}

/// Makes the folder of a new device with its settings, for this user alone, or leaves nothing behind.
pub(super) fn make(folder: &Path, settings: &Settings) -> anyhow::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(FOLDER_MODE).create(folder).and_then(|()| {
        // One that was there, and is empty.
        if is_strangers(&std::fs::metadata(folder)?) {
            return Err(std::io::Error::other("it belongs to another user"));
        }
        match is_others(folder)? {
            true => std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
            false => Ok(()),
        }
    });
    let made = made
        .with_context(|| format!("can't make the folder {} for you alone", folder.display()))
        .and_then(|()| keep(folder, settings));
    if made.is_err() {
        // Each is empty, or another process uses it by now and it stays.
        missing.into_iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
    made
}

/// Keeps the settings in the folder for the next start, whole or not at all.
pub(super) fn keep(folder: &Path, settings: &Settings) -> anyhow::Result<()> {
    let text = toml::to_string(settings)?;
    let path = folder.join(SETTINGS);
    if std::fs::read_to_string(&path).ok().as_deref() == Some(&text) {
        return Ok(());
    }
    replace_file(&path, text.as_bytes()).with_context(|| format!("can't write {}", path.display()))
}

/// Puts a file of these bytes in the place of `path`; after a loss of power there is the one or the other.
fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let next = path.with_extension(NEXT);
    // One that was left behind may have another's mode.
    let _ = std::fs::remove_file(&next);
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).mode(FILE_MODE).open(&next);
    let written = written.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&next, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&next);
    }
    written
}

/// The settings in the folder, if it is a device's; an error if it holds something else.
fn read_settings(folder: &Path, path: &Path) -> anyhow::Result<Option<Settings>> {
    match std::fs::read_to_string(path) {
        // It says whose the device is.
        Ok(_) if is_others(path)? || is_others(folder)? => bail!(
            "other users may write {} or its folder, and so decide whose the device is; make both yours alone with: {}",
            path.display(),
            way_back(folder, path)?
        ),
        // A full disk broke off the making of the device.
        Ok(text) if text.is_empty() && !folder.join(FLASH).exists() => Ok(None),
        Ok(text) => checked_settings(&text)
            .map(Some)
            .with_context(|| format!("{} can't be used; mend it", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let is_others = |file: std::io::Result<DirEntry>| {
                file.is_ok_and(|file| path.with_extension(NEXT) != file.path())
            };
            let holds_something =
                std::fs::read_dir(folder).is_ok_and(|mut files| files.any(is_others));
            if holds_something {
                bail!(
                    "{} holds other files and is no device's; name a new or empty folder",
                    folder.display()
                );
            }
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Whether others than this user and root may write there: whose it is, anybody, or a group that isn't this user's own of the
/// same number.
fn is_others(path: &Path) -> std::io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    let (mode, user) = (metadata.mode(), rustix::process::geteuid().as_raw());
    let is_own_group =
        metadata.gid() == user && metadata.gid() == rustix::process::getegid().as_raw();
    let by_mode = mode & BY_ANYBODY != 0 || mode & BY_GROUP != 0 && !is_own_group;
    Ok(by_mode || is_strangers(&metadata))
}

/// Whether it belongs to somebody who is neither this user nor root.
fn is_strangers(metadata: &Metadata) -> bool {
    let owner = metadata.uid();
    owner != 0 && owner != rustix::process::geteuid().as_raw()
}

/// The commands after which nobody else may write the settings and their folder.
fn way_back(folder: &Path, path: &Path) -> std::io::Result<String> {
    let (folder_is, file_is) = (std::fs::metadata(folder)?, std::fs::metadata(path)?);
    let both = format!("{} {}", folder.display(), path.display());
    let chmod = format!("chmod go-w {both}");
    Ok(match is_strangers(&folder_is) || is_strangers(&file_is) {
        true => {
            let user = rustix::process::geteuid().as_raw();
            format!("chown {user} {both} && {chmod}")
        }
        false => chmod,
    })
}

/// The settings in `text`, if each is what it should be.
fn checked_settings(text: &str) -> anyhow::Result<Settings> {
    let settings: Settings = toml::from_str(text)?;
    let Settings { name, policy, .. } = &settings;
    name.parse::<Name>().with_context(|| format!("name = `{name}`"))?;
    policy.parse::<PolicyKind>().with_context(|| format!("policy = `{policy}`"))?;
    owner_in(&settings).context("the owner's keys")?;
    Ok(settings)
}

fn name_of_folder(folder: &Path) -> anyhow::Result<Name> {
    let last = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
    last.and_then(|name| name.parse().ok()).with_context(|| {
        format!("`{}` is no name for a device; give one with --name", folder.display())
    })
}

fn owner_in(settings: &Settings) -> anyhow::Result<Owner> {
    let text = format!("{}/{}", settings.owner_signing_key, settings.owner_machine_key);
    parse_owner(&text).map_err(anyhow::Error::msg)
}
