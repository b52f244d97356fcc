//! The pages of a device's machines, served by the device itself.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde_json::json;
use tenure_board_linux::{FileFlash, LinuxEntropy};
use tenure_crypto::{Seed, SigningKey};
use tenure_kernel::{MachineInfo, MachineRecord};
use tenure_node::Node;
use tenure_pages::{Entry, NoPage, Origins, Pages};
use tenure_wire::console::PAGES_LISTEN_ON;
use tenure_wire::{Address, Digest, MachineId, Name, PublicKey, Target};

use crate::home::private_file;
use crate::reach::client::Route;
use crate::reach::network::listener_at;
use crate::reach::visitor::{Finds, Visitor};
use crate::terminal::output::Output;

/// The file in the device's folder that holds the key of its visitors.
const KEY_FILE: &str = "pages.key";

/// Pages that are served, and what they know of the device's machines.
pub(super) struct DevicePages(Arc<Mutex<Vec<Shown>>>);

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

impl DevicePages {
    /// Serves the pages of the machines on the device `name`, which listens at `device`, to browsers at `listen`.
    ///
    /// # Errors
    /// Nobody can listen there, or the key of the visitors can't be kept in `folder`.
    pub(super) fn serve(
        listen: SocketAddr,
        folder: &Path,
        (name, device): (&Name, SocketAddr),
        output: &Output,
    ) -> anyhow::Result<Self> {
        let machines = Arc::new(Mutex::new(Vec::new()));
        let finder = OnThisDevice {
            name: name.clone(),
            address: within(device),
            machines: Arc::clone(&machines),
        };
        let listener = listener_at(listen).context("no pages")?;
        let visitor = Visitor::new(visitors_seed(folder)?.device_secret(), finder)?;
        let key = visitor.key();
        let origins = Origins { domain: None, only: None };
        let pages = Pages { origins, visits: visitor, by_proxy: false };
        let address = tenure_pages::serve(listener, pages).context("no pages")?;
        let text =
            format!("{PAGES_LISTEN_ON} {}, and call machines as #{key}", Address::Udp(address));
        let object =
            json!({ "event": "pages", "address": address.to_string(), "key": key.to_string() });
        output.line(&text, &object);
        Ok(Self(machines))
    }

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
}

/// The key by which visitors call, kept over restarts: leases may name it.
fn visitors_seed(folder: &Path) -> anyhow::Result<Seed> {
    let path = folder.join(KEY_FILE);
    let bytes: [u8; 32] = match std::fs::read(&path) {
        Ok(bytes) => bytes.try_into().ok().with_context(|| {
            format!("{} holds no key; take it away, and there will be a new one", path.display())
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let bytes = SigningKey::generate(&mut LinuxEntropy)?.to_bytes();
            private_file::replace(&path, &bytes[..])?;
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
    machines: Arc<Mutex<Vec<Shown>>>,
}

impl OnThisDevice {
    fn machines(&self) -> Vec<Shown> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
        let found = self.machines().into_iter().find(is_meant).ok_or(NoPage::Unknown)?;
        Ok(Route { key: found.key, address: self.address.into(), epoch: None })
    }

    fn entries(&mut self) -> Result<Vec<Entry>, NoPage> {
        let with_pages = self.machines().into_iter().filter(|machine| machine.has_pages);
        let device = &self.name;
        Ok(with_pages
            .map(|machine| Entry { device: device.clone(), machine: machine.name })
            .collect())
    }
}
