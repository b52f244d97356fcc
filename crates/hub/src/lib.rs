//! The owner's directory as a service: on the wire just another machine.
//!
//! Invariants:
//! - Sans-IO, as a node is: a board hands in time, randomness and datagrams, sends what
//!   [`Hub::transmit`] gives, and calls [`Hub::poll`] when [`Hub::poll_at`] says.
//! - What is accepted is stored before it is acknowledged, so that a restart doesn't forget whose a
//!   name is or how far its numbers have come.
//! - It answers anybody and trusts nobody: a record proves itself or is refused.
//! - Where it lists anybody's devices, no owner and no address takes more than its quota, and what
//!   expired long ago makes room.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Seed, machine_id};
use tenure_directory::Table;
use tenure_hal::{Entropy, Flash, Instant, UnixTime};
use tenure_rpc::{Endpoint, EndpointError, Event};
use tenure_store::{MountError, ReadError, SetError, Store, TreeId, ValueKind};
use tenure_wire::directory::{
    DeviceRecord, ListFrom, Listing, Query, Refusal, Registered, SignedRecord, function,
};
use tenure_wire::frame::Declined;
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Address, MachineId, Name, PublicKey, VerifyingKey};

const OWN_TREE: TreeId = TreeId(0);
const DEVICES_TREE: TreeId = TreeId(1);
const SEED_PATH: &str = "seed";
/// What one machine takes in a listing, at most.
const LISTED_BYTES: usize = 2 * (1 + tenure_wire::limits::NAME_BYTES_MAX) + 32;
/// The most notices that wait to be taken; older ones make room.
const NOTICES_MAX: usize = 256;
/// How often it looks for what is to be forgotten, in seconds.
const SWEEP_EVERY_S: u64 = 60 * 60;

/// The configuration of a hub.
#[derive(Clone, Debug)]
pub struct Config {
    /// The only owners whose devices it lists; empty means anybody's.
    pub owners: Vec<VerifyingKey>,
    /// The most devices it lists.
    pub devices_max: usize,
    /// Where it lists anybody's: the most devices of one owner.
    pub devices_per_owner_max: usize,
    /// Where it lists anybody's: the most devices last heard from one host.
    pub devices_per_host_max: usize,
    /// How long after its record expired a device is forgotten, and its name free again, in seconds.
    pub forget_after_s: u64,
    /// The sessions' part.
    pub rpc: tenure_rpc::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            owners: Vec::new(),
            devices_max: 10_000,
            devices_per_owner_max: 256,
            devices_per_host_max: 256,
            forget_after_s: 30 * 24 * 60 * 60,
            rpc: tenure_rpc::Config::large(),
        }
    }
}

/// What a hub is told at each call.
pub struct Moment<'a> {
    /// The time since it started.
    pub now: Instant,
    /// The wall clock, which a hub must have.
    pub unix_time: UnixTime,
    /// Randomness.
    pub entropy: &'a mut dyn Entropy,
}

/// Something that whoever watches the hub may want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A device is listed anew, or lists other machines than before.
    Listed {
        /// The device.
        device: Name,
        /// Where it is.
        address: Address,
        /// How many machines it lists.
        machines: usize,
    },
    /// A record was refused.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Where it came from.
        address: Address,
    },
}

/// A directory of devices.
pub struct Hub<F> {
    endpoint: Endpoint<Address>,
    machine: MachineId,
    key: PublicKey,
    config: Config,
    table: Table,
    /// When to look again for what is to be forgotten, in seconds since 1970 UTC.
    sweep_at_unix_s: u64,
    store: Store<F>,
    notices: VecDeque<Notice>,
}

/// A device as the store keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    record: SignedRecord,
    seen_at: Address,
}

impl<F: Flash> Hub<F> {
    /// Takes up the hub on `flash`, or makes a new one there if it is blank.
    ///
    /// # Errors
    /// As [`OpenError`] says; nothing was overwritten.
    pub fn open(config: Config, flash: F, moment: &mut Moment<'_>) -> Result<Self, OpenError> {
        let mut store = mount_or_format(flash, moment.entropy)?;
        let seed = take_up_seed(&mut store, moment.entropy)?;
        let mut table = Table::new(config.owners.clone(), config.devices_max);
        restore(&mut store, &mut table)?;
        let mut endpoint = Endpoint::new(config.rpc.clone(), moment.now, moment.entropy)
            .map_err(OpenError::Endpoint)?;
        let secret = seed.device_secret();
        let key = secret.public_key();
        let machine = endpoint.add_machine(secret).unwrap_or_else(|_| machine_id(&key));
        endpoint.identify_as(&machine);
        let (sweep_at_unix_s, notices) = (0, VecDeque::new());
        Ok(Self { endpoint, machine, key, config, table, sweep_at_unix_s, store, notices })
    }

    /// The hub's public key.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// Takes a datagram that came from `from`.
    pub fn receive(&mut self, moment: &mut Moment<'_>, from: Address, datagram: &[u8]) {
        self.endpoint.receive(moment.now, moment.entropy, from, datagram);
        self.attend_to_sessions(moment);
    }

    /// Does what is due.
    pub fn poll(&mut self, moment: &mut Moment<'_>) {
        self.endpoint.poll(moment.now, moment.entropy);
        self.attend_to_sessions(moment);
    }

    /// When to call [`Self::poll`] next, if nothing else happens.
    pub fn poll_at(&self) -> Option<Instant> {
        self.endpoint.poll_at()
    }

    /// The next datagram to send, and where to.
    pub fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.endpoint.transmit()
    }

    /// The next thing to show, if anybody watches.
    pub fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn attend_to_sessions(&mut self, moment: &Moment<'_>) {
        while let Some(event) = self.endpoint.event() {
            if let Event::IncomingCall { handle, to, peer, function, parameter, from, .. } = event {
                let parameter = parameter.unwrap_or_default();
                let result = if to == self.machine {
                    self.serve(moment, &peer, from, &function, &parameter)
                } else {
                    Err(Declined::NoSuchMachine)
                };
                self.endpoint.reply(moment.now, handle, result);
            }
        }
    }

    fn serve(
        &mut self,
        moment: &Moment<'_>,
        peer: &PublicKey,
        from: Address,
        name: &str,
        parameter: &[u8],
    ) -> Result<Option<Vec<u8>>, Declined> {
        let unix_s = moment.unix_time.seconds;
        match name {
            function::REGISTER => {
                let refusal = self.register(unix_s, peer, from.clone(), parameter).err();
                if let Some(refusal) = refusal {
                    self.notify(Notice::Refused { refusal, address: from });
                }
                Ok(Some(encode(&Registered { refusal, unix_s })))
            }
            function::RESOLVE => {
                let query: Query = decode(parameter)?;
                Ok(self
                    .table
                    .find_for(Some(peer), &query, unix_s)
                    .map(|entry| encode(&entry.found())))
            }
            function::LIST => {
                let ListFrom { skip } = decode(parameter)?;
                let count = PARAMETER_BYTES_MAX / LISTED_BYTES - 1;
                let page = self.table.machines(unix_s).skip(skip as usize).take(count);
                let total = self.table.machines(unix_s).count() as u32;
                Ok(Some(encode(&Listing { machines: page.collect(), total })))
            }
            _ => Err(Declined::NoSuchFunction),
        }
    }

    fn register(
        &mut self,
        unix_s: u64,
        peer: &PublicKey,
        from: Address,
        parameter: &[u8],
    ) -> Result<(), Refusal> {
        let signed: SignedRecord =
            postcard::from_bytes(parameter).map_err(|_| Refusal::Malformed)?;
        let record = tenure_directory::open(&signed, unix_s)?;
        if record.device_machine != *peer {
            return Err(Refusal::Sender);
        }
        self.sweep(unix_s)?;
        if self.table.assess(&record)? {
            self.check_quota(&record, &from)?;
            let device = record.enrolment.device.as_str();
            let kept = encode(&Kept { record: signed.clone(), seen_at: from.clone() });
            let stored = self.store.set(DEVICES_TREE, device, ValueKind::Bytes, &kept);
            stored.map_err(|_| Refusal::Full)?;
        }
        self.announce(unix_s, &record, &from);
        self.table.put(record, signed, from);
        Ok(())
    }

    /// Forgets what expired long ago, once in a while and whenever there is no room.
    fn sweep(&mut self, unix_s: u64) -> Result<(), Refusal> {
        let is_full = self.table.entries().count() >= self.config.devices_max;
        if unix_s < self.sweep_at_unix_s && !is_full {
            return Ok(());
        }
        self.sweep_at_unix_s = unix_s.saturating_add(SWEEP_EVERY_S);
        let forget_after_s = self.config.forget_after_s;
        let is_over =
            |record: &DeviceRecord| record.expires_unix_s.saturating_add(forget_after_s) < unix_s;
        let entries = self.table.entries().filter(|entry| is_over(&entry.record));
        let names: Vec<Name> = entries.map(|entry| entry.record.enrolment.device.clone()).collect();
        for name in names {
            let deleted = self.store.delete(DEVICES_TREE, name.as_str());
            deleted.map_err(|_| Refusal::Full)?;
            self.table.forget(&name);
        }
        Ok(())
    }

    /// Whether a device that isn't listed yet may be: only an open hub has strangers to divide its
    /// room among.
    fn check_quota(&self, record: &DeviceRecord, from: &Address) -> Result<(), Refusal> {
        let is_known = self
            .table
            .entries()
            .any(|entry| entry.record.enrolment.device == record.enrolment.device);
        if !self.config.owners.is_empty() || is_known {
            return Ok(());
        }
        let entries = || self.table.entries();
        let of_owner = entries().filter(|entry| entry.record.owner == record.owner).count();
        let of_host = entries().filter(|entry| is_same_host(&entry.seen_at, from)).count();
        let is_within = of_owner < self.config.devices_per_owner_max
            && of_host < self.config.devices_per_host_max;
        if is_within { Ok(()) } else { Err(Refusal::Quota) }
    }

    /// Says so if a device is listed anew, or lists other machines than before.
    fn announce(&mut self, unix_s: u64, record: &DeviceRecord, from: &Address) {
        let device = record.enrolment.device.clone();
        let known = self.table.find(&Query::Device(device.clone()), unix_s);
        if known.is_none_or(|entry| entry.record.machines != record.machines) {
            let machines = record.machines.len();
            self.notify(Notice::Listed { device, address: from.clone(), machines });
        }
    }

    fn notify(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }
}

/// Whether two addresses are of one host, whatever the port. Of IPv6 one network (/64) counts as one
/// host, which has as many addresses as it likes.
fn is_same_host(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Udp(SocketAddr::V6(one)), Address::Udp(SocketAddr::V6(other))) => {
            one.ip().octets()[..8] == other.ip().octets()[..8]
        }
        (Address::Udp(one), Address::Udp(other)) => one.ip() == other.ip(),
        _ => one == other,
    }
}

/// Takes up the store on `flash`, or makes a blank flash one, with a salt that no device can know.
fn mount_or_format<F: Flash>(flash: F, entropy: &mut dyn Entropy) -> Result<Store<F>, OpenError> {
    let mut salt = [0; 4];
    entropy.fill(&mut salt).map_err(|_| OpenError::Entropy)?;
    let mounted = Store::mount_or_format(flash, u32::from_le_bytes(salt));
    mounted.map(|(store, _)| store).map_err(OpenError::Mount)
}

fn take_up_seed<F: Flash>(
    store: &mut Store<F>,
    entropy: &mut dyn Entropy,
) -> Result<Seed, OpenError> {
    let kept = store.get(OWN_TREE, SEED_PATH).map_err(OpenError::Read)?;
    if let Some(value) = kept {
        let bytes: [u8; 32] = value.bytes.try_into().map_err(|_| OpenError::Identity)?;
        return Ok(Seed::from_bytes(&bytes));
    }
    let seed = Seed::generate(entropy).map_err(|_| OpenError::Entropy)?;
    let stored = store.set(OWN_TREE, SEED_PATH, ValueKind::Bytes, seed.as_bytes());
    stored.map_err(OpenError::Write)?;
    Ok(seed)
}

/// Takes up what was accepted before. A record that can't be read any more is left out: its device
/// will register again.
fn restore<F: Flash>(store: &mut Store<F>, table: &mut Table) -> Result<(), OpenError> {
    for device in store.children(DEVICES_TREE, "").map_err(OpenError::Read)? {
        let Ok(Some(value)) = store.get(DEVICES_TREE, &device) else { continue };
        let Ok(kept) = postcard::from_bytes::<Kept>(&value.bytes) else { continue };
        let _ = table.restore(kept.record, kept.seen_at);
    }
    Ok(())
}

fn decode<'a, T: Deserialize<'a>>(parameter: &'a [u8]) -> Result<T, Declined> {
    postcard::from_bytes(parameter).map_err(|_| Declined::Execution)
}

/// Encodes what has been built of valid parts, which can't fail but for want of memory.
fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Why a hub doesn't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The flash holds no store that can be taken up.
    Mount(MountError),
    /// The hub's own values can't be read.
    Read(ReadError),
    /// The hub's own values can't be written.
    Write(SetError),
    /// What the store holds as the hub's identity is none.
    Identity,
    /// No randomness for an identity or a store.
    Entropy,
    /// The session limits don't fit one another, or there is no randomness for them.
    Endpoint(EndpointError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(error) => write!(f, "the store can't be taken up: {error}"),
            Self::Read(error) => write!(f, "the hub's own values can't be read: {error}"),
            Self::Write(error) => write!(f, "the hub's own values can't be written: {error}"),
            Self::Identity => f.write_str("the stored identity is damaged"),
            Self::Entropy => f.write_str("there is no randomness for an identity or a store"),
            Self::Endpoint(error) => write!(f, "sessions: {error}"),
        }
    }
}

impl core::error::Error for OpenError {}
