//! The owner's second terminal: whatever empties and fills a machine is done to the tenants' machines in between, and
//! costs no bill a read.
//!
//! The owner's first one goes on renewing, closing periods and fetching receipts meanwhile, over the network.

use tenure_node::{Door, Node};
use tenure_package::{Package, Revocations, SnapshotWriter};
use tenure_wire::control::{
    Answer, Client as _, InstallBegin, InstallChunk, Remove, Restart, Restore, Start, Stop,
    TrashRestore,
};
use tenure_wire::{MachineId, Name, Term};

use super::{SECRET, TENANTS, World, end_us};
use crate::flash::Partition;
use crate::guests;
use crate::scenario::Role;

/// How long a chunk of a snapshot is.
const CHUNK_BYTES: usize = 4096;
/// How long a machine rests before each read, in milliseconds.
pub(super) const PAUSE_MS: u32 = 150;

/// Something that is done to a machine, and whether it is down after that, until somebody brings it back.
type Act = (fn(&mut World, usize, &mut Node<Partition>) -> Answer<()>, bool);
const ACTS: [Act; 5] = [
    (World::restart, false),
    (World::restore, false),
    (World::update, false),
    (World::stop, true),
    (World::remove, true),
];

impl World {
    /// Does something to a tenant's machine that runs, or brings one back that is down; the device may refuse, or lose
    /// its power.
    pub(super) fn lay_hands_on(&mut self, node: &mut Node<Partition>) {
        let index = self.random.between(0..=TENANTS.len() as u64 - 1) as usize;
        if std::mem::take(&mut self.is_down[index]) {
            self.bring_back(index, node);
        } else {
            let (act, is_down) = *self.random.pick(&ACTS);
            self.act(act, index, node);
            self.is_down[index] = is_down;
        }
        let again = self.random.millis(300..=3_000).as_micros() as u64;
        self.hands_us = self.now_us + again;
    }

    fn bring_back(&mut self, index: usize, node: &mut Node<Partition>) {
        self.act(Self::take_back, index, node);
        self.act(Self::start, index, node);
    }

    fn act(
        &mut self,
        act: fn(&mut Self, usize, &mut Node<Partition>) -> Answer<()>,
        index: usize,
        node: &mut Node<Partition>,
    ) {
        let done = act(self, index, node).is_ok();
        self.books.acted(index, done);
    }

    /// Leaves the machines as they must be in the end: the first one runs. The second one's tenant is revoked in some
    /// worlds, which ends its machine for good, and its receipts are fetched all the same.
    pub(super) fn take_hands_off(&mut self, node: &mut Node<Partition>) {
        for index in 0..TENANTS.len() {
            self.bring_back(index, node);
        }
        if self.random.chance(400) {
            self.act(Self::revoke, 1, node);
        }
    }

    fn restart(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        node.as_owner(&mut self.moment()).restart(Restart { machine: name(index) })
    }

    fn stop(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        node.as_owner(&mut self.moment()).stop(Stop { machine: name(index) })
    }

    fn start(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        node.as_owner(&mut self.moment()).start(Start { machine: name(index) })
    }

    /// Puts an empty tree in the place of the machine's.
    fn restore(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        let package = self.package(index);
        let digest = Package::parse(&package).expect("a package").digest();
        let (writer, mut bytes) = SnapshotWriter::begin(&name(index), &digest);
        bytes.extend(writer.finish());
        let mut moment = self.moment();
        let mut owner = node.as_owner(&mut moment);
        owner.install_begin(InstallBegin { bytes: bytes.len() as u32 })?;
        for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            let offset = (number * CHUNK_BYTES) as u32;
            owner.install_chunk(InstallChunk { offset, bytes: chunk })?;
        }
        owner.restore(Restore { machine: name(index) })
    }

    /// Installs the machine anew, under its next lease, unless it is in the trash: it would be another machine then.
    fn update(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        if self.in_trash(index, node)?.is_some() {
            return Ok(());
        }
        let bytes = self.package(index);
        let package = Package::parse(&bytes).expect("a package");
        let (number, term): (u64, Term) = (self.books.next_lease(index), self.term());
        let placement = guests::placement(&package, node.device_key(), term, number);
        let placement = placement.sign(&self.keys.owner).expect("well formed");
        self.books.offered(index, number, end_us(&term), self.now_us);
        node.install(&mut self.moment(), &bytes, &placement)?;
        self.books.has_term(index, number, self.now_us);
        Ok(())
    }

    fn remove(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        let remove = Remove { machine: name(index), for_good: false };
        node.as_owner(&mut self.moment()).remove(remove)
    }

    /// Fetches the machine back from the trash.
    fn take_back(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        match self.in_trash(index, node)? {
            Some(machine) => {
                node.as_owner(&mut self.moment()).trash_restore(TrashRestore { machine })
            }
            None => Ok(()),
        }
    }

    /// The machine's id, if it is in the trash.
    fn in_trash(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<Option<MachineId>> {
        let trash = node.as_owner(&mut self.moment()).trash(())?;
        let found = trash.machines.iter().find(|machine| machine.name == name(index));
        Ok(found.map(|machine| machine.id))
    }

    fn revoke(&mut self, index: usize, node: &mut Node<Partition>) -> Answer<()> {
        let tenants = vec![self.tenants[index].verifying_key()];
        let list = Revocations { number: 1, tenants, ..Revocations::default() };
        let list = list.sign(&self.keys.owner).expect("well formed");
        node.as_owner(&mut self.moment()).revoke(&list)
    }

    pub(super) fn package(&self, index: usize) -> Vec<u8> {
        let role = Role::Reader { secret: SECRET.to_string(), pause_ms: PAUSE_MS };
        guests::package(TENANTS[index].1, &role, &self.tenants[index])
    }
}

fn name(index: usize) -> Name {
    TENANTS[index].1.parse().expect("a name")
}
