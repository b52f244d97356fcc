//! The mesh under a node: sessions and directory records without infrastructure.
//!
//! A device joins by its owner's invitation, which brings the network's key. From then on it
//! announces its record in the mesh, learns those of others, and calls machines on them by name:
//! the sessions' datagrams are the mesh's payload, so that who relays them sees ciphertext.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tenure_crypto::{machine_id, sha256};
use tenure_directory::{open, open_whenever};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_mesh::{Framer, FramerConfig, NodeId, Stack, StackConfig};
use tenure_protocols::babel::{self, Babel};
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::fragmentation::{self, Fragmentation};
use tenure_protocols::interface::{
    DatagramArrived, Port, RecordArrived, RecordKey, SendDatagram, SendLarge,
};
use tenure_protocols::network_key::{InvitationError, NetworkKey, accept};
use tenure_protocols::replicated_records::{self, Records, ReplicatedRecords};
use tenure_wire::control::{Answer, ControlError, Join, MeshStatus, MeshWay};
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{DeviceRecord, Found, Query, SignedRecord};
use tenure_wire::{Address, PublicKey, VerifyingKey};

use crate::node::{BootError, Moment, Node};
use crate::outbound::Waiter;

/// The stack of a node's protocols. A board hands it frames and sends what it gives.
pub type MeshStack = Stack<Framer<NetworkKey>>;

/// How long a record in the mesh lasts; it is renewed after a third of it.
const RECORD_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How long a call waits for the record of a device that isn't known yet.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);
/// The most ways that an answer tells.
const WAYS_MAX: usize = 64;
/// How many events of the mesh one poll of the node takes.
const EVENTS_PER_POLL: usize = 64;

/// The mesh of a device that has joined one.
pub(crate) struct Mesh {
    stack: MeshStack,
    publish_at: Instant,
    /// The sessions' epoch in the record that was published last.
    published: Option<Epoch>,
    /// What is waited for that some device's record tells, and until when.
    wanted: Vec<(Query, Instant)>,
    /// The latest time that a record was made at, and when that was learnt: time as records have it
    /// on a device that knows no other. Among devices without clocks it counts from the oldest boot.
    records_time: (Instant, u64),
}

/// Why a device doesn't join a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The invitation doesn't count.
    Invitation(InvitationError),
    /// A later invitation was taken before.
    Stale,
    /// The network's key can't be kept.
    Store(BootError),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invitation(error) => error.fmt(f),
            Self::Stale => f.write_str("a later invitation was taken before"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for JoinError {}

impl<F: Flash> Node<F> {
    /// Joins the mesh that the owner's `invitation` is for, now and after every boot to come.
    ///
    /// # Errors
    /// [`JoinError`]; then the device is where it was before.
    pub fn join_mesh(&mut self, now: Instant, invitation: &[u8]) -> Result<(), JoinError> {
        let owner = self.config.owner.verifying_key;
        let (key, number) = accept(invitation, &owner, &self.identity.device_secret())
            .map_err(JoinError::Invitation)?;
        let known = self.identity.network(self.kernel.store()).map_err(JoinError::Store)?;
        if known.is_some_and(|(known, _)| known > number) {
            return Err(JoinError::Stale);
        }
        self.identity
            .keep_network(self.kernel.store(), number, key.as_bytes())
            .map_err(JoinError::Store)?;
        let is_there = known.is_some_and(|(_, known)| known == *key.as_bytes());
        if !(is_there && self.mesh.is_some()) {
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
        let Some(mesh) = &self.mesh else {
            return Err(ControlError::Refused("the device is in no mesh".to_string()));
        };
        let Some(router) = mesh.stack.protocol::<Babel>() else {
            return Err(ControlError::Device("no router runs".to_string()));
        };
        let replica = mesh.stack.protocol::<Replica>();
        let held = || replica.iter().flat_map(|replica| replica.records().held.values());
        let name = |node: NodeId| {
            let mut records = held().map(|held| &held.record);
            let found =
                records.find(|record| NodeId::from(&machine_id(&record.device_machine)) == node);
            found.map(|record| record.enrolment.device.clone())
        };
        let way = |to: NodeId| {
            let (next_hop, distance) = router.table().route(to)?;
            Some(MeshWay {
                to: to.to_string(),
                device: name(to),
                next_hop: next_hop.to_string(),
                metric: distance.metric,
            })
        };
        let own = mesh.stack.node();
        let destinations = router.table().destinations().filter(|to| *to != own);
        Ok(MeshStatus {
            node: own.to_string(),
            neighbours: router.neighbours().count() as u32,
            ways: destinations.filter_map(way).take(WAYS_MAX).collect(),
        })
    }

    /// The mesh's stack, if the device has joined one.
    pub fn mesh(&mut self) -> Option<&mut MeshStack> {
        self.mesh.as_mut().map(|mesh| &mut mesh.stack)
    }

    /// The same, to look at.
    pub fn mesh_stack(&self) -> Option<&MeshStack> {
        self.mesh.as_ref().map(|mesh| &mesh.stack)
    }

    /// Joins again the mesh that was joined before.
    pub(crate) fn resume_mesh(&mut self, now: Instant) -> Result<(), BootError> {
        if let Some((_, key)) = self.identity.network(self.kernel.store())? {
            self.start_mesh(now, NetworkKey::from_bytes(&key));
        }
        Ok(())
    }

    /// Starts the protocols. A life of the node has one key at most, and one start under it: frame
    /// numbers count from 0, and none may occur twice under one key.
    fn start_mesh(&mut self, now: Instant, key: NetworkKey) {
        let node = NodeId::from(&self.identity.machine);
        let boots = self.identity.boots;
        let framer = Framer::new(FramerConfig::new(node, boots), key);
        let config = StackConfig { seed: framer_seed(node, boots), ..StackConfig::default() };
        let mut stack = Stack::new(config, framer);
        let records = MeshRecords::new(self.config.owner.verifying_key, self.config.records_max);
        stack.start(now, Babel::new(node, boots, babel::Config::default()));
        stack.start(now, Forwarding::new(forwarding::Config::default()));
        stack.start(now, Fragmentation::new(fragmentation::Config::default()));
        stack.start(now, Replica::new(replicated_records::Config::default(), records));
        stack.subscribe::<DatagramArrived>();
        stack.subscribe::<RecordArrived>();
        let (wanted, records_time) = (Vec::new(), (now, 0));
        self.mesh =
            Some(Mesh { stack, publish_at: now, published: None, wanted, records_time }.into());
    }

    /// Lets protocols run, takes what came for this device, and announces it when that is due.
    pub(crate) fn attend_to_mesh(&mut self, moment: &mut Moment<'_>) {
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
                    Port::RECORD_WANTED => self.send_record_to(arrived.from),
                    _ => {}
                }
            } else if let Some((arrived, _)) = event.notification::<RecordArrived>() {
                self.learn_from_mesh(moment, arrived.key);
            }
        }
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
        self.unix_time(moment).or_else(|| {
            let (at, seconds) = self.mesh.as_ref()?.records_time;
            Some(UnixTime { seconds: seconds.saturating_add(moment.now.since(at).as_secs()) })
        })
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
        held.flat_map(|held| held.record.machines.iter().map(|(_, key)| *key)).collect()
    }

    /// When the mesh wants to run again.
    pub(crate) fn mesh_wakes_at(&self, now: Instant) -> Option<Instant> {
        let mesh = self.mesh.as_ref()?;
        let wanted = mesh.wanted.iter().map(|(_, until)| *until);
        mesh.stack.poll_at(now).into_iter().chain([mesh.publish_at]).chain(wanted).min()
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
        if mesh.publish_at > moment.now && mesh.published == Some(epoch) {
            return;
        }
        mesh.publish_at = moment.now + RECORD_LIFETIME / 3;
        mesh.published = Some(epoch);
        let Some(signed) = self.signed_record_for(moment, RECORD_LIFETIME) else { return };
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
        let made_s = held.record.expires_unix_s.saturating_sub(RECORD_LIFETIME.as_secs());
        let node = NodeId::from(&machine_id(&held.record.device_machine));
        let found = Found { record: held.signed.clone(), seen_at: Address::Mesh(node.to_bytes()) };
        let (at, seconds) = mesh.records_time;
        let ahead_s = made_s.saturating_sub(seconds.saturating_add(moment.now.since(at).as_secs()));
        if ahead_s > 0 {
            mesh.records_time = (moment.now, made_s);
        }
        if ahead_s > RECORD_LIFETIME.as_secs() / 3 && self.unix_time(moment).is_none() {
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

    /// Tells another device, whatever it missed, who this one is.
    fn send_record_to(&mut self, to: NodeId) {
        let key = key_of(&self.identity.verifying_key());
        let Some(mesh) = &mut self.mesh else { return };
        let replica = mesh.stack.protocol::<Replica>();
        if let Some(record) = replica.and_then(|replica| replica.records().record(key)) {
            let mut body = key.0.to_vec();
            body.extend_from_slice(&record);
            mesh.stack.request(&SendLarge { to, port: Port::RECORDS }, &body);
        }
    }
}

/// Whether a record tells what `query` asks for.
fn answers(record: &DeviceRecord, query: &Query) -> bool {
    match query {
        Query::Device(device) => record.enrolment.device == *device,
        Query::Key(key) => record.machines.iter().any(|(_, held)| held == key),
        Query::Id(id) => record.machines.iter().any(|(_, held)| machine_id(held) == *id),
    }
}

type Replica = ReplicatedRecords<MeshRecords>;

/// What chance in the mesh begins with: for spreading messages in time, not for keys.
fn framer_seed(node: NodeId, boots: u32) -> u64 {
    node.number() ^ u64::from(boots) << 32
}

/// What tells a device's record from others': the start of a hash of its key.
fn key_of(device: &VerifyingKey) -> RecordKey {
    let [a, b, c, d, e, f, g, h, ..] = sha256(&[b"tenure mesh record", &device.0]).0;
    RecordKey([a, b, c, d, e, f, g, h])
}

/// The records of one owner's devices, each checked when it came.
pub(crate) struct MeshRecords {
    owner: VerifyingKey,
    records_max: usize,
    unix_s: Option<u64>,
    /// Whether a clock told the time, and not others' records, which may be behind.
    is_known: bool,
    held: BTreeMap<RecordKey, Held>,
}

struct Held {
    record: DeviceRecord,
    signed: SignedRecord,
}

impl MeshRecords {
    fn new(owner: VerifyingKey, records_max: usize) -> Self {
        Self { owner, records_max, unix_s: None, is_known: false, held: BTreeMap::new() }
    }

    /// Tells the time by which records expire.
    fn tell_time(&mut self, unix_s: Option<u64>, is_known: bool) {
        self.is_known = is_known;
        if self.unix_s != unix_s {
            self.unix_s = unix_s;
            let now = unix_s.unwrap_or(0);
            self.held.retain(|_, held| held.record.expires_unix_s >= now);
        }
    }
}

impl Records for MeshRecords {
    fn each(&self, act: &mut dyn FnMut(RecordKey, u64)) {
        self.held.iter().for_each(|(key, held)| act(*key, held.record.sequence));
    }

    fn record(&self, key: RecordKey) -> Option<Vec<u8>> {
        postcard::to_allocvec(&self.held.get(&key)?.signed).ok()
    }

    fn version(&self, key: RecordKey) -> Option<u64> {
        Some(self.held.get(&key)?.record.sequence)
    }

    fn accept(&mut self, key: RecordKey, bytes: &[u8]) -> bool {
        let Ok(signed) = postcard::from_bytes::<SignedRecord>(bytes) else { return false };
        let opened = match self.unix_s.filter(|_| self.is_known) {
            Some(now) => open(&signed, now),
            None => open_whenever(&signed),
        };
        let Ok(record) = opened else { return false };
        let newer = self.version(key).is_none_or(|version| version < record.sequence);
        let room = self.held.len() < self.records_max || self.held.contains_key(&key);
        let genuine = record.owner == self.owner && key == key_of(&record.enrolment.device_key);
        if !(genuine && newer && room) {
            return false;
        }
        self.held.insert(key, Held { record, signed });
        true
    }
}
