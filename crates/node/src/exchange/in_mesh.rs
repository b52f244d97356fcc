//! Records that come over the mesh, and look-ups that wait for one.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_mesh::NodeId;
use tenure_protocols::interface::{Port, RecordKey, SendDatagram};
use tenure_wire::directory::{Found, Query};
use tenure_wire::{Address, Name, PublicKey, Target};

use super::Exchange;
use crate::lookup::{Mark, nodes_of};
use crate::membership::{Replica, answers, node_of, version_of};
use crate::moment::Moment;
use crate::outbound::Waiter;

/// How long a call waits for the record of a device that isn't known yet.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);

impl<F: Flash> Exchange<'_, F> {
    /// Waits until a record tells what `query` asks for, for a while, and asks for the record of the
    /// device at `at`, if the mesh leads there, or for that of the device with a name; `false` if the device is in no
    /// mesh.
    pub(super) fn await_in_mesh(
        &mut self,
        now: Instant,
        query: &Query,
        at: Option<&Address>,
    ) -> bool {
        let Some(mesh) = &mut self.mesh else { return false };
        mesh.wanted.push((query.clone(), now + RECORD_PATIENCE));
        if let Query::Device(name) = query {
            let mark = Mark::of(name);
            let replica = mesh.stack.protocol::<Replica>();
            let held = replica.and_then(|replica| replica.records().record_of(mark));
            let known = self.directory.last_record(query).map(|entry| version_of(&entry.record));
            mesh.lookup.seek(now, mark, known.max(held.map(|(_, version)| version)));
        }
        if let Some(Address::Mesh(node)) = at {
            let request = SendDatagram { to: NodeId::from_bytes(*node), port: Port::RECORD_WANTED };
            mesh.stack.request(&request, &[]);
        }
        true
    }

    /// Takes up a record that is held in the mesh and tells what `waiter` needs, which is what `query` asks for.
    pub(super) fn find_in_mesh(
        &mut self,
        moment: &Moment<'_>,
        query: &Query,
        waiter: &Waiter,
    ) -> bool {
        let replica = self.mesh.as_ref().and_then(|mesh| mesh.stack.protocol::<Replica>());
        let held = replica.iter().flat_map(|replica| &replica.records().held);
        let answering = held.filter(|(_, held)| answers(&held.record, query));
        let newest = answering.max_by_key(|(_, held)| version_of(&held.record));
        let found = newest.map(|(key, _)| *key);
        found.is_some_and(|key| {
            self.take_up(moment, key);
            if let Some(mesh) = &mut self.mesh {
                let now = moment.now;
                mesh.stack.act::<Replica, _>(now, |replica, _| replica.records_mut().touch(key));
            }
            self.directory.record(self.clock, moment, query).is_some()
                && !self.may_be_outdated(moment, query, waiter)
        })
    }

    /// Whether the record here lacks the machine that is called, and its device may have published a newer one.
    fn may_be_outdated(&self, moment: &Moment<'_>, query: &Query, waiter: &Waiter) -> bool {
        let (Waiter::Call(tenure_kernel::OutgoingCall { target, .. }) | Waiter::Resolve(_, target)) =
            waiter
        else {
            return false;
        };
        match (target, query) {
            (Target::Remote { .. }, Query::Device(name)) => {
                self.can_ask_for(moment.now, name) && self.locate(moment, target, false).is_none()
            }
            _ => false,
        }
    }

    /// Whether the record of the device with that name has to be looked up, and wasn't in vain a moment ago.
    fn can_ask_for(&self, now: Instant, name: &Name) -> bool {
        self.mesh.as_ref().is_some_and(|mesh| {
            let has_room = nodes_of(&mesh.stack) <= self.services.config.records_max;
            !has_room && !mesh.lookup.was_absent(now, Mark::of(name))
        })
    }

    /// Whether the record of the device that `query` asks for was found wrong, and a newer one may be had.
    pub(super) fn is_looked_up_anew(&self, now: Instant, query: &Query) -> bool {
        let Query::Device(name) = query else { return false };
        self.directory.is_doubted(query) && self.can_ask_for(now, name)
    }

    /// The keys of all machines that are known of in the mesh.
    pub(super) fn mesh_machines(&self) -> Vec<PublicKey> {
        let replica = self.mesh.as_ref().and_then(|mesh| mesh.stack.protocol::<Replica>());
        let held = replica.iter().flat_map(|replica| replica.records().held.values());
        let revoked = &self.services.ownership.revoked;
        let held = held.filter(|held| !revoked.has_device(&held.record.enrolment.device_key));
        held.flat_map(|held| held.record.machines.iter().map(|(_, key)| *key)).collect()
    }

    /// Takes into the directory what a device in the mesh says of itself, and lets those go on who
    /// waited for it.
    pub(crate) fn learn_from_mesh(&mut self, moment: &mut Moment<'_>, key: RecordKey) {
        self.take_up(moment, key);
        let Some(mesh) = &mut self.mesh else {
            debug_assert!(false, "a record came from a mesh that the device is not in");
            return;
        };
        let replica = mesh.stack.protocol::<Replica>();
        if let Some(held) = replica.and_then(|replica| replica.records().held.get(&key)) {
            mesh.lookup.found(held.mark);
        }
        let mesh = &*mesh;
        let known = |query: &&Query| self.directory.record(self.clock, moment, query).is_some();
        let told: Vec<Query> =
            mesh.wanted.iter().map(|(query, _)| query).filter(known).cloned().collect();
        for query in told {
            self.stop_waiting(moment, &query, true);
        }
    }

    fn take_up(&mut self, moment: &Moment<'_>, key: RecordKey) {
        let Some(mesh) = &mut self.mesh else {
            debug_assert!(false, "a record is taken up from a mesh that the device is not in");
            return;
        };
        let replica = mesh.stack.protocol::<Replica>();
        let Some(held) = replica.and_then(|replica| replica.records().held.get(&key)) else {
            // Another record took its place since it arrived, or time went by.
            return;
        };
        let seen_at = Address::Mesh(node_of(&held.record).to_bytes());
        let found = Found { record: held.signed.clone(), seen_at };
        let by_records = self.clock.by_records.as_mut();
        let is_behind = by_records.is_some_and(|time| time.learn(moment.now, &held.record));
        if is_behind && self.clock.unix_time(moment).is_none() {
            // By the time that others have, its own record is over, or nearly.
            self.hub.announce_at = moment.now;
        }
        if let Some(time) = self.clock.records_time(moment) {
            let in_use = self.outbound.called();
            self.directory.learn_beside(&self.services.ownership.revoked, found, time, &in_use);
        }
    }

    pub(crate) fn give_up_waiting(&mut self, moment: &mut Moment<'_>) {
        while let Some(mark) = self.mesh.as_mut().and_then(|it| it.lookup.concluded(moment.now)) {
            let wanted = self.mesh.iter().flat_map(|mesh| &mesh.wanted).map(|(query, _)| query);
            let is_it = |query: &&Query| matches!(query, Query::Device(it) if Mark::of(it) == mark);
            let Some(query) = wanted.into_iter().find(is_it).cloned() else { continue };
            self.stop_waiting(moment, &query, true);
        }
        let wanted = self.mesh.iter().flat_map(|mesh| &mesh.wanted);
        let over = wanted.filter(|(_, until)| *until <= moment.now);
        let over: Vec<Query> = over.map(|(query, _)| query.clone()).collect();
        for query in over {
            self.stop_waiting(moment, &query, false);
        }
    }

    fn stop_waiting(&mut self, moment: &mut Moment<'_>, query: &Query, answered: bool) {
        if let Some(mesh) = &mut self.mesh {
            mesh.wanted.retain(|(wanted, _)| wanted != query);
        }
        // A doubted record is used where no newer one can be had.
        self.directory.trust_again(query);
        for waiter in self.outbound.take_waiters(query) {
            // A caller that hasn't told its name in all that time is a stranger.
            let answered = answered || matches!(waiter, Waiter::Caller(..));
            self.record_arrived(moment, waiter, answered);
        }
    }
}
