//! The owner's second terminal: whatever empties and fills a machine is done to the tenants' machines in between, and
//! costs no bill a read.
//!
//! The owner's first one goes on renewing, closing periods and fetching receipts meanwhile, over the network.

use tenure_hal::simulated::Random;
use tenure_node::{Door, Node};
use tenure_package::{Package, Revocations, SnapshotWriter};
use tenure_wire::control::{
    Answer, Client as _, InstallBegin, InstallChunk, Remove, Restart, Restore, Start, Stop,
    TrashRestore,
};
use tenure_wire::{MachineId, Name, Term};

use super::TENANTS;
use super::scene::{Scene, end_us};
use super::site::Site;
use crate::flash::Partition;
use crate::guests;

/// How long a chunk of a snapshot is.
const CHUNK_BYTES: usize = 4096;

/// Something that is done to a machine.
type Act = fn(&mut Terminal<'_>, usize) -> Answer<()>;
/// The actions on a machine that runs, and whether it is down after that, until somebody brings it back.
const ACTS: [(Act, bool); 5] =
    [(restart, false), (restore, false), (update, false), (stop, true), (remove, true)];

/// The owner's plan at the second terminal, and its part that is done.
pub(super) struct Hands {
    /// When something is done to a machine next.
    due_us: u64,
    /// Whether each machine was stopped or removed.
    is_down: [bool; TENANTS.len()],
    /// Whether the machines were left as they must be in the end.
    are_off: bool,
}

impl Hands {
    /// Chance says whether the owner has a second terminal.
    pub(super) fn draw(random: &mut Random) -> Self {
        let due_us = if random.chance(600) { 2_000_000 } else { u64::MAX };
        Self { due_us, is_down: [false; TENANTS.len()], are_off: false }
    }

    /// Does what is due to the machines of `node`, which stands at `site`.
    pub(super) fn attend(&mut self, scene: &mut Scene, site: &Site, node: &mut Node<Partition>) {
        let is_due = !scene.is_quiet && scene.now_us >= self.due_us;
        let is_over = scene.is_quiet && !std::mem::replace(&mut self.are_off, true);
        let mut terminal = Terminal { scene, site, node };
        if is_due {
            self.lay_on(&mut terminal);
        } else if is_over {
            terminal.leave();
        }
    }

    /// Does something to a tenant's machine that runs, or brings one back that is down; the device may refuse, or lose
    /// its power.
    fn lay_on(&mut self, terminal: &mut Terminal<'_>) {
        let index = terminal.scene.random.between(0..=TENANTS.len() as u64 - 1) as usize;
        if std::mem::take(&mut self.is_down[index]) {
            terminal.bring_back(index);
        } else {
            let (act, is_down) = *terminal.scene.random.pick(&ACTS);
            terminal.act(act, index);
            self.is_down[index] = is_down;
        }
        self.due_us = terminal.scene.now_us + terminal.scene.span_us(300..=3_000);
    }
}

/// The terminal, at a device that is on.
struct Terminal<'a> {
    scene: &'a mut Scene,
    site: &'a Site,
    node: &'a mut Node<Partition>,
}

impl Terminal<'_> {
    /// Leaves the machines as they must be in the end: the first one runs. The second one's tenant is revoked in some
    /// worlds, which ends its machine for good, and its receipts are fetched all the same.
    fn leave(&mut self) {
        for index in 0..TENANTS.len() {
            self.bring_back(index);
        }
        if self.scene.random.chance(400) {
            self.act(revoke, 1);
        }
    }

    fn bring_back(&mut self, index: usize) {
        self.act(take_back, index);
        self.act(start, index);
    }

    fn act(&mut self, act: Act, index: usize) {
        let done = act(self, index).is_ok();
        self.scene.books.acted(index, done);
    }

    /// The id of a machine, if it is in the trash.
    fn in_trash(&mut self, index: usize) -> Answer<Option<MachineId>> {
        let trash = self.node.as_owner(&mut self.site.moment(self.scene)).trash(())?;
        let found = trash.machines.iter().find(|machine| machine.name == name(index));
        Ok(found.map(|machine| machine.id))
    }
}

fn restart(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    at.node.as_owner(&mut at.site.moment(at.scene)).restart(Restart { machine: name(index) })
}

fn stop(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    at.node.as_owner(&mut at.site.moment(at.scene)).stop(Stop { machine: name(index) })
}

fn start(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    at.node.as_owner(&mut at.site.moment(at.scene)).start(Start { machine: name(index) })
}

/// Puts an empty tree in the place of the machine's.
fn restore(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    let package = at.scene.package(index);
    let digest = Package::parse(&package).expect("a package").digest();
    let (writer, mut bytes) = SnapshotWriter::begin(&name(index), &digest);
    bytes.extend(writer.finish());
    let mut moment = at.site.moment(at.scene);
    let mut owner = at.node.as_owner(&mut moment);
    owner.install_begin(InstallBegin { bytes: bytes.len() as u32 })?;
    for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        let offset = (number * CHUNK_BYTES) as u32;
        owner.install_chunk(InstallChunk { offset, bytes: chunk })?;
    }
    owner.restore(Restore { machine: name(index) })
}

/// Installs the machine anew, under its next lease, unless it is in the trash: it would be another machine then.
fn update(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    if at.in_trash(index)?.is_some() {
        return Ok(());
    }
    let bytes = at.scene.package(index);
    let package = Package::parse(&bytes).expect("a package");
    let (number, term): (u64, Term) = (at.scene.books.next_lease(index), at.scene.term());
    let placement = guests::placement(&package, at.node.device_key(), term, number);
    let placement = placement.sign(&at.scene.keys.owner).expect("well formed");
    at.scene.books.offered(index, number, end_us(&term), at.scene.now_us);
    at.node.install(&mut at.site.moment(at.scene), &bytes, &placement)?;
    at.scene.books.has_term(index, number, at.scene.now_us);
    Ok(())
}

fn remove(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    let remove = Remove { machine: name(index), for_good: false };
    at.node.as_owner(&mut at.site.moment(at.scene)).remove(remove)
}

/// Fetches the machine back from the trash.
fn take_back(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    match at.in_trash(index)? {
        Some(machine) => {
            at.node.as_owner(&mut at.site.moment(at.scene)).trash_restore(TrashRestore { machine })
        }
        None => Ok(()),
    }
}

fn revoke(at: &mut Terminal<'_>, index: usize) -> Answer<()> {
    let tenants = vec![at.scene.tenants[index].verifying_key()];
    let list = Revocations { number: 1, tenants, ..Revocations::default() };
    let list = list.sign(&at.scene.keys.owner).expect("well formed");
    at.node.as_owner(&mut at.site.moment(at.scene)).revoke(&list)
}

fn name(index: usize) -> Name {
    TENANTS[index].1.parse().expect("a name")
}
