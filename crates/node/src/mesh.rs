//! The mesh under a node: sessions and directory records without infrastructure.
//!
//! A device joins by its owner's invitation, which brings the network's key. From then on it
//! announces its record in the mesh, learns those of others, and calls machines on them by name:
//! the sessions' datagrams are the mesh's payload, so that who relays them sees ciphertext.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant, UnixTime};
use tenure_mesh::{NodeId, Satellite};
use tenure_protocols::interface::{
    DatagramArrived, Port, RecordArrived, RecordKey, SendDatagram, SendLarge,
};
use tenure_protocols::network_key::NetworkKey;
use tenure_wire::control::{Answer, ControlError, Join, MeshStatus};
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{Found, Query};
use tenure_wire::{Address, PublicKey};

use crate::boot_error::BootError;
use crate::directory::EPOCH_PERIOD;
use crate::doorstep::Doorstep;
#[cfg(feature = "experiments")]
use crate::experiment::Experimenting;
use crate::membership::{
    JoinError, MeshLimits, MeshStack, RECORD_LIFETIME, RecordsTime, Replica, accept_invitation,
    answers, introduce, key_of, node_of, satellite_of, start_stack, status_of,
};
use crate::node::{Moment, Node};
use crate::outbound::Waiter;

/// How long a call waits for the record of a device that isn't known yet.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);
/// How many events of the mesh one poll of the node takes.
const EVENTS_PER_POLL: usize = 64;

/// The mesh of a device that has joined one.
pub(crate) struct Mesh {
    pub(crate) stack: MeshStack,
    publish_at: Instant,
    /// The sessions' epoch in the record that was published last, and when that was.
    published: Option<(Epoch, Instant)>,
    /// What is waited for that some device's record tells, and until when.
    wanted: Vec<(Query, Instant)>,
    records_time: RecordsTime,
    pub(crate) doorstep: Doorstep,
    /// What the device does for experiments, if it takes part.
    #[cfg(feature = "experiments")]
    pub(crate) experimenting: Option<Experimenting>,
}

impl<F: Flash> Node<F> {
    /// Joins the mesh that the owner's `invitation` is for, now and after every boot to come.
    ///
    /// # Errors
    /// [`JoinError`]; then the device is where it was before.
    pub fn join_mesh(&mut self, now: Instant, invitation: &[u8]) -> Result<(), JoinError> {
        let owner = self.config.owner.verifying_key;
        let (key, was_known) =
            accept_invitation(&self.identity, self.kernel.store(), &owner, invitation)?;
        if !(was_known && self.mesh.is_some()) {
            self.start_mesh(now, key);
        }
        Ok(())
    }

    /// Joins as the owner asks from afar.
    pub(crate) fn take_invitation(&mut self, moment: &Moment<'_>, join: &Join) -> Answer<()> {
        self.join_mesh(moment.now, &join.invitation)
            .map_err(|error| ControlError::Refused(error.to_string()))
    }

    /// What is known of the mesh.
    pub(crate) fn mesh_status(&self) -> Answer<MeshStatus> {
        status_of(self.mesh_stack())
    }

    /// The stack that the board's link carries frames for: that of the mesh, if the device has joined one,
    /// or the one by which it [knocks](Self::knock).
    pub fn mesh(&mut self) -> Option<&mut MeshStack> {
        match (&mut self.mesh, &mut self.outside) {
            (Some(mesh), _) => Some(&mut mesh.stack),
            (None, outside) => outside.as_mut().map(|outside| outside.stack()),
        }
    }

    /// The mesh's stack, to look at, if the device has joined one.
    pub fn mesh_stack(&self) -> Option<&MeshStack> {
        self.mesh.as_ref().map(|mesh| &mesh.stack)
    }

    /// Takes the protocols that carry datagrams out of the mesh's stack, for a board that runs them on an
    /// executor of their own from now on, and attaches them to the stack again; `None` if the device is in no
    /// mesh. A mesh that is joined anew has them in its stack again.
    pub fn mesh_satellite(&mut self, now: Instant) -> Option<Satellite> {
        let mesh = self.mesh.as_mut()?;
        let limits = MeshLimits::new(mesh.stack.node(), self.config.records_max);
        Some(satellite_of(now, &self.identity, &mut mesh.stack, limits))
    }

    /// Joins again the mesh that was joined before.
    pub(crate) fn resume_mesh(&mut self, now: Instant) -> Result<(), BootError> {
        if let Some((_, key)) = self.identity.network(self.kernel.store())? {
            self.start_mesh(now, NetworkKey::from_bytes(&key));
        }
        Ok(())
    }

    /// Takes another owner's word, and records of that owner's devices alone; who hands a device over takes
    /// it out of the mesh.
    pub(crate) fn change_mesh_owner(&mut self, now: Instant) {
        (self.mesh, self.outside) = (None, None);
        // A network key that can't be read now is read at the next boot.
        let _ = self.resume_mesh(now);
    }

    /// Starts the protocols, once for each owner in a life of the node.
    fn start_mesh(&mut self, now: Instant, key: NetworkKey) {
        let node = NodeId::from(&self.identity.machine);
        let limits = MeshLimits::new(node, self.config.records_max);
        let owner = self.config.owner.verifying_key;
        let mut stack = start_stack(now, &mut self.identity, owner, key, limits);
        stack.hear_plain_frames();
        #[cfg(feature = "experiments")]
        let experimenting = self.config.experiments.then(|| {
            // Where the numbers can't be read, no order counts.
            let floor = self.identity.orders(self.kernel.store()).unwrap_or(u64::MAX);
            Experimenting::start(now, owner, floor, &mut stack)
        });
        let mesh = Mesh {
            stack,
            #[cfg(feature = "experiments")]
            experimenting,
            publish_at: now,
            published: None,
            wanted: Vec::new(),
            records_time: RecordsTime::new(now),
            doorstep: Doorstep::default(),
        };
        self.mesh = Some(mesh.into());
        self.outside = None;
    }

    /// Lets protocols run, takes what came for this device, and announces it when that is due.
    pub(crate) fn attend_to_mesh(&mut self, moment: &mut Moment<'_>) {
        self.attend_to_doorstep(moment);
        self.publish_in_mesh(moment);
        let (unix_s, is_known) = self.time_for_records(moment);
        let Some(mesh) = &mut self.mesh else { return };
        mesh.stack.act::<Replica, _>(moment.now, |replica, _| {
            replica.records_mut().tell_time(unix_s, is_known);
        });
        mesh.stack.poll(moment.now);
        for _ in 0..EVENTS_PER_POLL {
            let Some(event) = self.mesh.as_mut().and_then(|mesh| mesh.stack.host_event()) else {
                break;
            };
            if let Some((arrived, datagram)) = event.notification::<DatagramArrived>() {
                match arrived.port {
                    Port::RPC => {
                        let from = Address::Mesh(arrived.from.to_bytes());
                        self.endpoint.receive(moment.now, moment.entropy, from, datagram);
                    }
                    Port::RECORD_WANTED => {
                        let device = self.identity.verifying_key();
                        if let Some(mesh) = &mut self.mesh {
                            introduce(&mut mesh.stack, &device, arrived.from);
                        }
                    }
                    Port::JOINING => self.take_note(moment.now, arrived.from, datagram),
                    _ => {}
                }
            } else if let Some((arrived, _)) = event.notification::<RecordArrived>() {
                self.learn_from_mesh(moment, arrived.key);
            } else {
                #[cfg(feature = "experiments")]
                self.take_part(moment.now, &event);
            }
        }
        #[cfg(feature = "experiments")]
        self.note_progress(moment.now);
        self.give_up_waiting(moment);
    }

    /// Waits until a record tells what `query` asks for, for a while, and asks for the record of the
    /// device at `at`, if the mesh leads there; `false` if the device is in no mesh.
    pub(crate) fn await_in_mesh(
        &mut self,
        now: Instant,
        query: &Query,
        at: Option<&Address>,
    ) -> bool {
        let Some(mesh) = &mut self.mesh else { return false };
        mesh.wanted.push((query.clone(), now + RECORD_PATIENCE));
        if let Some(Address::Mesh(node)) = at {
            let request = SendDatagram { to: NodeId::from_bytes(*node), port: Port::RECORD_WANTED };
            mesh.stack.request(&request, &[]);
        }
        true
    }

    /// Takes up a record that is held in the mesh and tells what `query` asks for.
    pub(crate) fn find_in_mesh(&mut self, moment: &Moment<'_>, query: &Query) -> bool {
        let replica = self.mesh.as_ref().and_then(|mesh| mesh.stack.protocol::<Replica>());
        let mut held = replica.iter().flat_map(|replica| &replica.records().held);
        let found = held.find(|(_, held)| answers(&held.record, query)).map(|(key, _)| *key);
        found.is_some_and(|key| {
            self.take_up(moment, key);
            self.record(moment, query).is_some()
        })
    }

    /// The time by which records are judged: the wall clock, or what other devices' records told.
    pub(crate) fn records_time(&self, moment: &Moment<'_>) -> Option<UnixTime> {
        let by_records = || Some(self.mesh.as_ref()?.records_time.at(moment.now));
        self.unix_time(moment).or_else(by_records)
    }

    /// Gives the sessions' datagrams to the mesh that are for it, and keeps the others for the
    /// board.
    pub(crate) fn send_by_mesh(&mut self, now: Instant) {
        let Some(mesh) = &mut self.mesh else { return };
        while let Some((to, datagram)) = self.endpoint.transmit() {
            match to {
                Address::Mesh(to) => {
                    let request = SendLarge { to: NodeId::from_bytes(to), port: Port::RPC };
                    mesh.stack.request(&request, &datagram);
                }
                to => self.outbox.push_back((to, datagram)),
            }
        }
        mesh.stack.poll(now);
    }

    /// The keys of all machines that are known of in the mesh.
    pub(crate) fn mesh_machines(&self) -> Vec<PublicKey> {
        let replica = self.mesh.as_ref().and_then(|mesh| mesh.stack.protocol::<Replica>());
        let held = replica.iter().flat_map(|replica| replica.records().held.values());
        let revoked = &self.ownership.revoked;
        let held = held.filter(|held| !revoked.has_device(&held.record.enrolment.device_key));
        held.flat_map(|held| held.record.machines.iter().map(|(_, key)| *key)).collect()
    }

    /// When the mesh wants to run again.
    pub(crate) fn mesh_wakes_at(&self, now: Instant) -> Option<Instant> {
        let mesh = self.mesh.as_ref()?;
        let wanted = mesh.wanted.iter().map(|(_, until)| *until);
        let own = mesh.stack.poll_at(now).into_iter().chain([mesh.publish_at]);
        #[cfg(feature = "experiments")]
        let notes = mesh.experimenting.as_ref().and_then(Experimenting::wakes_at);
        #[cfg(feature = "experiments")]
        let own = own.chain(notes);
        own.chain(wanted).min()
    }

    /// Announces the device in the mesh soon, because something changed.
    pub(crate) fn announce_soon(&mut self, now: Instant) {
        if let Some(mesh) = &mut self.mesh {
            mesh.publish_at = now;
        }
    }

    /// The time in seconds by which records are judged, and whether a clock told it.
    fn time_for_records(&self, moment: &Moment<'_>) -> (Option<u64>, bool) {
        let time = self.records_time(moment).map(|time| time.seconds);
        (time, self.unix_time(moment).is_some())
    }

    fn publish_in_mesh(&mut self, moment: &Moment<'_>) {
        let epoch = self.endpoint.epoch();
        let Some(mesh) = &mut self.mesh else { return };
        let epoch_is_due = |(published, at): (Epoch, Instant)| {
            published != epoch && moment.now >= at + EPOCH_PERIOD
        };
        if mesh.publish_at > moment.now && !mesh.published.is_none_or(epoch_is_due) {
            return;
        }
        mesh.publish_at = moment.now + RECORD_LIFETIME / 3;
        let epoch = self.endpoint.epoch_to_publish(moment.now);
        mesh.published = Some((epoch, moment.now));
        let Some(signed) = self.sign_record_for(moment, RECORD_LIFETIME) else { return };
        let record = postcard::to_allocvec(&signed).unwrap_or_default();
        let key = key_of(&self.identity.verifying_key());
        let (unix_s, is_known) = self.time_for_records(moment);
        if let Some(mesh) = &mut self.mesh {
            mesh.stack.act::<Replica, _>(moment.now, |replica, context| {
                replica.records_mut().tell_time(unix_s, is_known);
                replica.publish(key, &record, context);
            });
        }
    }

    /// Takes into the directory what a device in the mesh says of itself, and lets those go on who
    /// waited for it.
    fn learn_from_mesh(&mut self, moment: &mut Moment<'_>, key: RecordKey) {
        self.take_up(moment, key);
        let Some(mesh) = &self.mesh else { return };
        let known = |query: &&Query| self.record(moment, query).is_some();
        let told: Vec<Query> =
            mesh.wanted.iter().map(|(query, _)| query).filter(known).cloned().collect();
        for query in told {
            self.stop_waiting(moment, &query, true);
        }
    }

    fn take_up(&mut self, moment: &Moment<'_>, key: RecordKey) {
        let Some(mesh) = &mut self.mesh else { return };
        let replica = mesh.stack.protocol::<Replica>();
        let Some(held) = replica.and_then(|replica| replica.records().held.get(&key)) else {
            return;
        };
        let seen_at = Address::Mesh(node_of(&held.record).to_bytes());
        let found = Found { record: held.signed.clone(), seen_at };
        let is_behind = mesh.records_time.learn(moment.now, &held.record);
        if is_behind && self.unix_time(moment).is_none() {
            // By the time that others have, its own record is over, or nearly.
            self.announce_soon(moment.now);
        }
        if let Some(time) = self.records_time(moment) {
            self.learn(found, time);
        }
    }

    fn give_up_waiting(&mut self, moment: &mut Moment<'_>) {
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
        for waiter in self.directory.take_waiters(query) {
            // Whoever calls and hasn't told its name in all that time is a stranger.
            let answered = answered || matches!(waiter, Waiter::Caller(..));
            self.record_arrived(moment, waiter, answered);
        }
    }
}
