//! A device's membership in a mesh, whatever else the device is: the invitation that it takes, the
//! protocols that it runs, the records that it holds, and the time that they tell.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use litemap::LiteMap;

use tenure_crypto::{machine_id, sha256};
use tenure_directory::{claims, open, open_whenever};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_mesh::{
    Declared, Dispatcher as _, Framer, FramerConfig, NodeId, Satellite, Stack, StackConfig,
};
use tenure_protocols::babel::{self, Babel};
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::fragmentation::{self, Fragmentation};
use tenure_protocols::interface::{DatagramArrived, Port, RecordArrived, RecordKey, SendLarge};
use tenure_protocols::network_key::{InvitationError, NetworkKey, accept};
use tenure_protocols::replicated_records::{self, Records, ReplicatedRecords};
use tenure_store::Store;
use tenure_wire::control::{Answer, ControlError, MeshStatus, MeshWay};
use tenure_wire::directory::{DeviceRecord, Query, SignedRecord};
use tenure_wire::{Name, VerifyingKey};

use crate::boot_error::BootError;
use crate::identity::Identity;
use crate::lookup::{Mark, Version};

#[cfg(test)]
mod tests;

/// The stack of a device's protocols. A board hands it frames and sends what it gives.
pub type MeshStack = Stack<Framer<NetworkKey>>;

/// The protocol that replicates the records.
pub(crate) type Replica = ReplicatedRecords<MeshRecords>;

/// How long a record in the mesh lasts; it is renewed after a third of it.
pub(crate) const RECORD_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The most ways that an answer tells.
const WAYS_MAX: usize = 64;

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

/// Checks the owner's `invitation` and keeps its key for every boot to come; gives the key, and
/// whether it was known before.
pub(crate) fn accept_invitation<F: Flash>(
    identity: &Identity,
    store: &mut Store<F>,
    owner: &VerifyingKey,
    invitation: &[u8],
) -> Result<(NetworkKey, bool), JoinError> {
    let (key, number) =
        accept(invitation, owner, &identity.device_secret()).map_err(JoinError::Invitation)?;
    let known = identity.network(store).map_err(JoinError::Store)?;
    if known.is_some_and(|(known, _)| known > number) {
        return Err(JoinError::Stale);
    }
    identity.keep_network(store, number, key.as_bytes()).map_err(JoinError::Store)?;
    let was_known = known.is_some_and(|(_, known)| known == *key.as_bytes());
    Ok((key, was_known))
}

/// The sources of datagrams that a device remembers for each record that it has room for, and the numbers of each: with
/// 12 records at most 96 windows of 64 bytes, with 32 at most 256 of 128.
const SOURCES_PER_RECORD: usize = 8;
const NUMBERS_PER_RECORD: u32 = 30;
/// The datagrams that it passed on and remembers for each record: 192 with 12, 512 with 32.
const REPEATS_PER_RECORD: usize = 16;

/// How much a device spends on its mesh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeshLimits {
    /// The most devices whose records are held, and the most bytes that the records take.
    pub(crate) records_max: usize,
    pub(crate) records_bytes_max: usize,
    /// The frames' part: neighbours, and bytes that wait.
    pub(crate) neighbours_max: usize,
    pub(crate) waiting_bytes_max: usize,
    pub(crate) stack: StackConfig,
    pub(crate) router: babel::Config,
    pub(crate) forwarding: forwarding::Config,
    pub(crate) fragmentation: fragmentation::Config,
}

impl MeshLimits {
    /// Those of a device that holds `records_max` records and relays for others.
    pub(crate) fn new(node: NodeId, records_max: usize) -> Self {
        let FramerConfig { neighbours_max, waiting_bytes_max, .. } =
            FramerConfig::new(node, 0, [0; 8]);
        Self {
            records_max,
            records_bytes_max: usize::MAX,
            neighbours_max,
            waiting_bytes_max,
            stack: StackConfig::default(),
            router: babel::Config::default(),
            forwarding: forwarding::Config {
                remembered: REPEATS_PER_RECORD * records_max,
                sources_max: SOURCES_PER_RECORD * records_max,
                numbers_remembered: NUMBERS_PER_RECORD * records_max as u32,
                ..forwarding::Config::default()
            },
            fragmentation: fragmentation::Config::default(),
        }
    }
}

/// Starts the protocols. Frame numbers count from 0 in each start, and the salt that is drawn for it keeps
/// each from occurring twice under one key.
pub(crate) fn start_stack(
    now: Instant,
    identity: &mut Identity,
    owner: VerifyingKey,
    key: NetworkKey,
    limits: MeshLimits,
) -> MeshStack {
    let (node, boots) = (NodeId::from(&identity.machine), identity.boots);
    let MeshLimits { neighbours_max, waiting_bytes_max, .. } = limits;
    let salt = identity.next_mesh_salt();
    let framer =
        FramerConfig { neighbours_max, waiting_bytes_max, ..FramerConfig::new(node, boots, salt) };
    // The seed of chance: for spreading messages in time, not for keys.
    let seed = node.number() ^ u64::from(boots) << 32;
    let mut stack = Stack::new(StackConfig { seed, ..limits.stack }, Framer::new(framer, key));
    let own = key_of(&identity.verifying_key());
    let records = MeshRecords::new((owner, own), limits.records_max, limits.records_bytes_max);
    stack.start(now, Babel::new(node, boots, limits.router));
    stack.start(now, forwarding_of(identity, limits));
    stack.start(now, Fragmentation::new(limits.fragmentation));
    stack.start(now, Replica::new(replicated_records::Config::default(), records));
    stack.subscribe::<DatagramArrived>();
    stack.subscribe::<RecordArrived>();
    stack
}

fn forwarding_of(identity: &Identity, limits: MeshLimits) -> Forwarding {
    Forwarding::new(forwarding::Config { life: identity.boots, ..limits.forwarding })
}

/// Takes the protocols out of the stack that carry datagrams, and gives them an executor of their own.
pub(crate) fn satellite_of(
    now: Instant,
    identity: &Identity,
    stack: &mut MeshStack,
    limits: MeshLimits,
) -> Satellite {
    let seed = stack.node().number() ^ u64::from(identity.boots) << 24;
    let config = StackConfig { seed, ..limits.stack };
    let mut satellite =
        Satellite::new(config, stack.node(), stack.dispatcher().message_bytes_max());
    stack.stop(now, Forwarding::DESCRIPTION.number);
    stack.stop(now, Fragmentation::DESCRIPTION.number);
    satellite.start(now, forwarding_of(identity, limits));
    satellite.start(now, Fragmentation::new(limits.fragmentation));
    satellite
}

/// Tells another device, whatever it missed, who this one, `device`, is.
pub(crate) fn introduce(stack: &mut MeshStack, device: &VerifyingKey, to: NodeId) {
    let key = key_of(device);
    let replica = stack.protocol::<Replica>();
    if let Some(record) = replica.and_then(|replica| replica.records().record(key)) {
        let mut body = key.0.to_vec();
        body.extend_from_slice(&record);
        stack.request(&SendLarge { to, port: Port::RECORDS }, &body);
    }
}

/// A device's knowledge of its mesh, for its owner.
pub(crate) fn status_of(stack: Option<&MeshStack>) -> Answer<MeshStatus> {
    let Some(stack) = stack else {
        return Err(ControlError::Refused("the device is in no mesh".to_string()));
    };
    let Some(router) = stack.protocol::<Babel>() else {
        return Err(ControlError::Device("no router runs".to_string()));
    };
    let way = |to: NodeId| {
        let (next_hop, distance) = router.table().route(to)?;
        Some(MeshWay {
            to: to.to_string(),
            device: name_of(stack, to),
            next_hop: next_hop.to_string(),
            metric: distance.metric,
        })
    };
    let own = stack.node();
    let destinations = router.table().destinations().filter(|to| *to != own);
    Ok(MeshStatus {
        node: own.to_string(),
        neighbours: router.links().count() as u32,
        ways: destinations.filter_map(way).take(WAYS_MAX).collect(),
    })
}

/// How many neighbours the device has, if a router runs.
#[cfg(feature = "reports")]
pub(crate) fn neighbours_of(stack: &MeshStack) -> Option<u32> {
    Some(stack.protocol::<Babel>()?.links().count() as u32)
}

/// The name of the device that is `node` in the mesh, if its record has come.
pub(crate) fn name_of(stack: &MeshStack, node: NodeId) -> Option<Name> {
    let held = &stack.protocol::<Replica>()?.records().held;
    let found = held.values().map(|held| &held.record).find(|record| node_of(record) == node);
    found.map(|record| record.enrolment.device.clone())
}

/// Where in the mesh the device of a record is.
pub(crate) fn node_of(record: &DeviceRecord) -> NodeId {
    NodeId::from(&machine_id(&record.device_machine))
}

/// Whether a record tells what `query` asks for.
pub(crate) fn answers(record: &DeviceRecord, query: &Query) -> bool {
    match query {
        Query::Device(device) => record.enrolment.device == *device,
        Query::Key(key) => record.machines.iter().any(|(_, held)| held == key),
        Query::Id(id) => record.machines.iter().any(|(_, held)| machine_id(held) == *id),
    }
}

/// The mark of a device's record among others': the start of a hash of its key.
pub(crate) fn key_of(device: &VerifyingKey) -> RecordKey {
    let [a, b, c, d, e, f, g, h, ..] = sha256(&[b"tenure mesh record", &device.0]).0;
    RecordKey([a, b, c, d, e, f, g, h])
}

/// The latest time that a record was made at, and when that was learnt: time as records have it on a
/// device that knows no other. Among devices without clocks it counts from the oldest boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordsTime {
    learnt_at: Instant,
    unix_s: u64,
}

impl RecordsTime {
    /// As of a device that has seen no record.
    pub(crate) fn new(now: Instant) -> Self {
        Self { learnt_at: now, unix_s: 0 }
    }

    /// The time.
    pub(crate) fn at(&self, now: Instant) -> UnixTime {
        UnixTime { seconds: self.unix_s.saturating_add(now.since(self.learnt_at).as_secs()) }
    }

    /// Learns that this record was made; whether it was so far ahead that a record which was made by
    /// the time known so far is over, or nearly.
    pub(crate) fn learn(&mut self, now: Instant, record: &DeviceRecord) -> bool {
        self.tell(now, record.expires_unix_s.saturating_sub(RECORD_LIFETIME.as_secs()))
    }

    /// As [`Self::learn`], of a time that somebody told.
    pub(crate) fn tell(&mut self, now: Instant, unix_s: u64) -> bool {
        let ahead_s = unix_s.saturating_sub(self.at(now).seconds);
        if ahead_s > 0 {
            *self = Self { learnt_at: now, unix_s };
        }
        ahead_s > RECORD_LIFETIME.as_secs() / 3
    }
}

/// The records of one owner's devices, each checked when it came.
///
/// In a mesh with more devices than there is room for, records of others make room for each other: one that was
/// looked up for one that was used later, and one that is kept for its keepers' sake for another such. The own record
/// stays.
pub(crate) struct MeshRecords {
    owner: VerifyingKey,
    /// The device's own record.
    own: RecordKey,
    records_max: usize,
    bytes_max: usize,
    /// Whether every node has room for the records of all.
    replicates: bool,
    unix_s: Option<u64>,
    /// Whether a clock told the time, and not others' records, which may be behind.
    is_known: bool,
    /// Counts uses of records.
    uses: u32,
    /// Boxed: the map keeps room for more than there are.
    pub(crate) held: LiteMap<RecordKey, Box<Held>>,
}

/// A record, and the same as it was signed.
pub(crate) struct Held {
    pub(crate) record: DeviceRecord,
    pub(crate) signed: SignedRecord,
    pub(crate) mark: Mark,
    /// How long it was on the wire: it is held twice, as it came and as it reads.
    bytes: usize,
    /// Whether this device is one of its keepers.
    is_kept: bool,
    /// The number of its last use.
    used: u32,
}

impl MeshRecords {
    fn new((owner, own): (VerifyingKey, RecordKey), records_max: usize, bytes_max: usize) -> Self {
        let held = LiteMap::new();
        let (unix_s, is_known) = (None, false);
        Self {
            owner,
            own,
            records_max,
            bytes_max,
            replicates: true,
            unix_s,
            is_known,
            uses: 0,
            held,
        }
    }

    /// Whether there is room for a record of that length, in the place of an older one if there is one.
    fn has_room(&self, key: RecordKey, bytes: usize) -> bool {
        let others = self.held.iter().filter(|(held, _)| **held != key);
        let (count, taken) =
            others.fold((0, 0), |(count, taken), (_, held)| (count + 1, taken + 2 * held.bytes));
        count < self.records_max && taken + 2 * bytes <= self.bytes_max
    }

    /// Makes room for a record of that length, if what may go for it is enough. Kept records leave a quarter of the
    /// places to others, and go for none of these.
    fn make_room(&mut self, key: RecordKey, bytes: usize, is_kept: bool) -> bool {
        while !self.has_room(key, bytes) {
            let kept = self.held.iter().filter(|(held, it)| it.is_kept && **held != key).count();
            let kept_max = self.records_max - self.records_max / 4;
            let takes_kept = kept >= kept_max + usize::from(!is_kept);
            let may_go = self.held.iter().filter(|(held, it)| {
                **held != self.own && **held != key && it.is_kept == takes_kept
            });
            let Some(oldest) = may_go.min_by_key(|(_, it)| it.used).map(|(held, _)| *held) else {
                return false;
            };
            self.held.remove(&oldest);
        }
        true
    }

    /// Tells the time by which records expire.
    pub(crate) fn tell_time(&mut self, unix_s: Option<u64>, is_known: bool) {
        self.is_known = is_known;
        if self.unix_s != unix_s {
            self.unix_s = unix_s;
            let now = unix_s.unwrap_or(0);
            self.held.retain(|_, held| held.record.expires_unix_s >= now);
        }
    }

    /// Tells how many nodes the mesh has, and whether it may be that there is room for the records of all; returns
    /// whether they replicate from now on.
    pub(crate) fn tell_nodes(&mut self, nodes: usize, may_have_room: bool) -> bool {
        let replicates = may_have_room && nodes <= self.records_max;
        let before = core::mem::replace(&mut self.replicates, replicates);
        replicates && !before
    }

    /// The record of the device with the name of that mark, and its version; of several devices the one that was given
    /// the name last.
    pub(crate) fn record_of(&self, mark: Mark) -> Option<(RecordKey, Version)> {
        let of_it = self.held.iter().filter(|(_, held)| held.mark == mark);
        of_it
            .map(|(key, held)| (*key, version_of(&held.record)))
            .max_by_key(|(_, version)| *version)
    }

    /// The device's own record: its key, the mark of its name, and its version.
    pub(crate) fn own_record(&self) -> Option<(RecordKey, Mark, Version)> {
        let held = self.held.get(&self.own)?;
        Some((self.own, held.mark, version_of(&held.record)))
    }

    /// Takes note that a record was used.
    pub(crate) fn touch(&mut self, key: RecordKey) {
        self.uses = self.uses.saturating_add(1);
        if let Some(held) = self.held.get_mut(&key) {
            held.used = self.uses;
        }
    }

    /// Takes a record that this device is a keeper of.
    pub(crate) fn keep(&mut self, key: RecordKey, bytes: &[u8]) {
        self.take(key, bytes, true);
    }

    fn take(&mut self, key: RecordKey, bytes: &[u8], is_kept: bool) -> bool {
        let Ok(signed) = postcard::from_bytes::<SignedRecord>(bytes) else { return false };
        // Two signatures are checked of one that would be taken.
        let is_newer = |record: &DeviceRecord| {
            record.owner == self.owner
                && key == key_of(&record.enrolment.device_key)
                && self.version(key).is_none_or(|version| version < record.sequence)
        };
        if !claims(&signed).is_some_and(|record| is_newer(&record)) {
            return false;
        }
        let opened = match self.unix_s.filter(|_| self.is_known) {
            Some(now) => open(&signed, now),
            None => open_whenever(&signed),
        };
        let Ok(record) = opened else { return false };
        let is_kept = is_kept || self.held.get(&key).is_some_and(|held| held.is_kept);
        if !self.make_room(key, bytes.len(), is_kept) {
            return false;
        }
        let (mark, bytes) = (Mark::of(&record.enrolment.device), bytes.len());
        let held = Held { record, signed, mark, bytes, is_kept, used: 0 };
        self.held.insert(key, Box::new(held));
        self.touch(key);
        true
    }
}

/// The version of a record among those of its name.
pub(crate) fn version_of(record: &DeviceRecord) -> Version {
    (record.enrolment.number, record.sequence)
}

/// A record as it claims to be; nobody has checked it yet.
pub(crate) fn claims_of(bytes: &[u8]) -> Option<DeviceRecord> {
    claims(&postcard::from_bytes(bytes).ok()?)
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

    fn room(&self) -> usize {
        let taken: usize = self.held.values().map(|held| 2 * held.bytes).sum();
        // Where bytes are short, the length of the next record decides.
        let is_short = !self.replicates() || taken >= self.bytes_max;
        if is_short { 0 } else { self.records_max.saturating_sub(self.held.len()) }
    }

    fn replicates(&self) -> bool {
        self.replicates
    }

    fn accept(&mut self, key: RecordKey, bytes: &[u8]) -> bool {
        self.take(key, bytes, false)
    }
}
