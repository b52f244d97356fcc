//! The machines of a device, as visitors of the device itself find and call them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tenure_board_linux::{FileFlash, LinuxEntropy};
use tenure_crypto::{Seed, SigningKey};
use tenure_kernel::{MachineInfo, MachineRecord};
use tenure_node::Node;
use tenure_pages::{Entry, NoPage};
use tenure_wire::{Digest, MachineId, Name, PublicKey, Target};

use crate::home::private_file;
use crate::reach::client::Route;
use crate::reach::visitor::{Finds, Visitor};

/// The machines of a device, as far as its visitors need to know. Copies know the same.
#[derive(Clone, Default)]
pub(super) struct Machines(Arc<Mutex<Vec<Shown>>>);

impl Machines {
    /// Notes which machines there are.
    pub(super) fn update(&self, node: &Node<FileFlash>) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = shown.iter();
        let is_known = |machine: MachineInfo<'_>| known.next().is_some_and(|it| it.is(&machine));
        if node.machines().all(is_known) && known.next().is_none() {
            return;
        }
        *shown = node.machines().map(|machine| Shown::of(&machine)).collect();
    }

    fn all(&self) -> Vec<Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Visitors who call these machines of the device `name`, which listens at `device`, with the key in the file `key`.
///
/// # Errors
/// The key can't be kept, or the system has no thread.
pub(super) fn visitor(
    key: &Path,
    (name, device): (&Name, SocketAddr),
    machines: &Machines,
) -> anyhow::Result<Visitor> {
    let finder =
        OnThisDevice { name: name.clone(), address: within(device), machines: machines.clone() };
    Visitor::new(visitors_seed(key)?.device_secret(), finder)
}

/// A machine, as its visitors' calls need it.
#[derive(Clone)]
struct Shown {
    name: Name,
    id: MachineId,
    key: PublicKey,
    package: Digest,
    has_pages: bool,
}

impl Shown {
    fn of(machine: &MachineInfo<'_>) -> Self {
        let MachineRecord { name, public_key, package, exports, .. } = machine.record;
        Self {
            name: name.clone(),
            id: machine.id,
            key: *public_key,
            package: *package,
            has_pages: exports.iter().any(|function| function == tenure_pages::FUNCTION),
        }
    }

    /// Whether nothing of it has changed.
    fn is(&self, machine: &MachineInfo<'_>) -> bool {
        let MachineRecord { name, package, .. } = machine.record;
        (self.id, &self.package, &self.name) == (machine.id, package, name)
    }
}

/// The key by which visitors call, kept over restarts: leases may name it.
fn visitors_seed(path: &Path) -> anyhow::Result<Seed> {
    let bytes: [u8; 32] = match std::fs::read(path) {
        Ok(bytes) => bytes.try_into().ok().with_context(|| {
            format!("{} holds no key; take it away, and there will be a new one", path.display())
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let bytes = SigningKey::generate(&mut LinuxEntropy)?.to_bytes();
            private_file::replace(path, &bytes[..])?;
            *bytes
        }
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    };
    Ok(Seed::from_bytes(&bytes))
}

/// The address at which this process itself reaches a socket.
fn within(device: SocketAddr) -> SocketAddr {
    match device {
        SocketAddr::V4(it) if it.ip().is_unspecified() => ([127, 0, 0, 1], it.port()).into(),
        SocketAddr::V6(it) if it.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, it.port()).into()
        }
        device => device,
    }
}

/// Finds the machines of this device alone.
struct OnThisDevice {
    name: Name,
    address: SocketAddr,
    machines: Machines,
}

impl Finds for OnThisDevice {
    fn machine(&mut self, machine: &Target) -> Result<Route, NoPage> {
        let is_meant = |shown: &Shown| match machine {
            Target::Own => false,
            Target::Local(name) => shown.name == *name,
            Target::Remote { machine, device } => shown.name == *machine && *device == self.name,
            Target::Id(id) => shown.id == *id,
            Target::Key(key) => shown.key == *key,
        };
        let found = self.machines.all().into_iter().find(is_meant).ok_or(NoPage::Unknown)?;
        Ok(Route { key: found.key, address: self.address.into(), epoch: None })
    }

    fn entries(&mut self) -> Result<Vec<Entry>, NoPage> {
        let with_pages = self.machines.all().into_iter().filter(|machine| machine.has_pages);
        let device = &self.name;
        Ok(with_pages
            .map(|machine| Entry { device: device.clone(), machine: machine.name })
            .collect())
    }
}
