//! The owner's directory as a service: on the wire just another machine.
//!
//! Invariants:
//! - Sans-IO, as a node is: a board hands in time, randomness and datagrams, sends what
//!   [`Hub::transmit`] returns, and calls [`Hub::poll`] when [`Hub::poll_at`] says.
//! - A reply to a call that stored something is sent after [`Storage::commit`], so that a restart
//!   doesn't forget whose a name is or how far its numbers have come.
//! - It answers anybody and trusts nobody: a record proves itself or is refused.
//! - Where it lists anybody's devices, no owner and no address takes more than its quota, and what
//!   expired long ago makes room.
//! - Whoever has a device that is listed comes before strangers: none of these ends its session.
//! - What comes in a session comes before handshakes, which wait at the door.
//! - Where hubs share a storage, what stands there decides over a record, and not what this one remembers of it: that may only
//!   be what it is compared with.
//! - It relays between two of one owner alone, and to where both have shown that they receive.
//! - No device makes it write more than [`Config::records_per_minute`] records, nor all together more
//!   than [`Config::records_per_second_max`].
//! - A touch makes it verify, write and ask its storage nothing; what it is late with is told to devices.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admission;
mod config;
mod door;
mod elsewhere;
mod error;
mod flash_storage;
mod listed;
mod lives;
mod looks;
mod ranks;
mod reaching;
mod relay;
mod renewing;
mod storage;
mod touching;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Seed, machine_id, sha256};
use tenure_directory::Entry;
use tenure_hal::{Entropy, Instant, UnixTime};
use tenure_rpc::{Endpoint, Event, HandshakeRequest, IncomingCallHandle};
use tenure_wire::NoResult;
use tenure_wire::carried::is_carried;
use tenure_wire::datagram::Relayed;
use tenure_wire::directory::{
    DeviceRecord, ListFrom, Listing, Query, Reach, Refusal, Registered, Seen, SignedRecord,
    function,
};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Address, MachineId, Name, PublicKey, VerifyingKey};

pub use crate::config::Config;
pub use crate::error::OpenError;
pub use crate::flash_storage::FlashStorage;
pub use crate::listed::Renewals;
pub use crate::relay::RelayCounts;
pub use crate::storage::{
    Accepted, Answered, Changes, Failure, Heard, Kept, Left, Reachable, Renewal, ServiceCall,
    Storage, StorageError, Stored,
};
pub use crate::touching::Counts;
pub use tenure_rpc::Fullness;

use crate::admission::{Bucket, Pace};
use crate::door::{Door, Turn};
use crate::elsewhere::LOOKS_PER_SECOND;
use crate::listed::{Former, Listed};
use crate::looks::{Looks, Verdict};
use crate::reaching::ASKERS_PER_SECOND;
use crate::relay::Relay;
use crate::renewing::Renewing;
use crate::storage::LATER;
use crate::touching::{Statement, ends_of};

/// The most bytes that one machine takes in a listing.
const LISTED_BYTES: usize = 2 * (1 + tenure_wire::limits::NAME_BYTES_MAX) + 32;
/// The most notices that wait to be taken; older ones make room.
const NOTICES_MAX: usize = 256;
/// How often it looks for what is to be forgotten, in seconds.
const SWEEP_EVERY_S: u64 = 60 * 60;
/// How often it looks while there is no room for another device, in seconds.
const SWEEP_FULL_EVERY_S: u64 = 10;
/// How often the storage does what is due by the clock.
const TICK_EVERY: Duration = Duration::from_secs(2);
/// How often it looks for answers to calls that were handed over.
const ANSWERS_EVERY: Duration = Duration::from_millis(5);
/// How often a batch is tried whose commits other hubs are in the way of, before its callers are told to come again.
const COMMITS_MAX: usize = 4;
/// How often it says at most that a table was full.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(60);
/// A network of IPv6, which a customer has (/48), may list as many devices as so many hosts (/64).
const HOSTS_OF_NETWORK: usize = 4;
/// The tables that it may say that of: its sessions', the door and the directory.
const TABLES: usize = 6;
/// The table of devices, as [`Fullness`] names it.
pub const TABLE_OF_DEVICES: &str = "devices";

/// The circumstances of a call to a hub.
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
        /// Of a record that isn't good by the hub's clock: in how many seconds it ends, by that clock.
        ends_in_s: Option<i64>,
    },
    /// Nobody but the hub gets through to a device, by way of its router or firewall.
    Shut {
        /// The device.
        device: Name,
        /// Where it is.
        address: Address,
        /// Whether the hub relays to it.
        is_relayed: bool,
    },
    /// A table was full, so that somebody lost a place or got none. It is said once a minute at most.
    Full(Fullness),
    /// The storage failed; callers that wrote something were refused.
    NotStored {
        /// Why, in words.
        reason: String,
    },
}

/// A directory of devices.
pub struct Hub<S> {
    endpoint: Endpoint<Address>,
    door: Door,
    machine: MachineId,
    key: PublicKey,
    config: Config,
    listed: Listed,
    pace: Pace,
    relay: Relay,
    looks: Looks,
    /// Whose the sessions of people are, by the keys of these sessions.
    askers: BTreeMap<PublicKey, VerifyingKey>,
    askers_pace: Bucket,
    /// Until when devices are in force that others hear, as the storage said.
    elsewhere: BTreeMap<Name, u64>,
    elsewhere_pace: Bucket,
    /// When it last looked for what is to be forgotten, in seconds since 1970 UTC.
    swept_unix_s: u64,
    storage: S,
    /// Replies that wait for the commit of what their calls wrote.
    held: Vec<Held>,
    /// Calls that are answered beside the hub, by their numbers, and the next number.
    handed_over: BTreeMap<u64, IncomingCallHandle>,
    next_number: u64,
    /// When [`Self::poll`] was called last.
    polled_at: Instant,
    /// Renewals that wait for the end of the turn.
    renewing: Vec<Renewing>,
    /// Whether what is registered now can't be one of them.
    is_careful: bool,
    /// The table's entries before that, to be put back if the commit fails.
    undo: Vec<(Name, Option<Former>)>,
    /// The devices of the records that were counted since the last commit.
    counted: Vec<Name>,
    /// Whether something was written since the last commit.
    is_dirty: bool,
    notices: VecDeque<Notice>,
    /// When the storage last did what is due by the clock.
    ticked_at: Option<Instant>,
    /// How often the directory had no room.
    devices_full: u64,
    /// What devices said so far.
    counts: Counts,
    /// How long the board's last turn took.
    turn: Duration,
    /// How often each table had been full when that was last looked at, and when.
    full_told: ([u64; TABLES], Option<Instant>),
}

/// A call whose reply is sent after the commit.
struct Held {
    handle: IncomingCallHandle,
    call: Call,
    reply: Reply,
}

/// A call to the hub's machine.
struct Call {
    peer: PublicKey,
    from: Address,
    function: String,
    parameter: Vec<u8>,
}

/// A reply that depends on the commit.
struct Reply {
    result: Result<Option<Vec<u8>>, NoResult>,
    /// The reply if the storage refuses.
    otherwise: Result<Option<Vec<u8>>, NoResult>,
    notice: Option<Notice>,
}

/// How a call is answered.
enum Answer {
    /// At once.
    Now(Result<Option<Vec<u8>>, NoResult>),
    /// After the commit.
    Held(Reply),
    /// Once the storage has it.
    Later(u64),
    /// With the other renewals of the turn, of which this is a good one.
    Renewed(Box<Good>),
}

/// A record that was checked.
struct Good {
    signed: SignedRecord,
    record: DeviceRecord,
    /// How long its device may be silent, if it touches from now on.
    life_s: Option<u32>,
}

/// A good record.
enum Taken {
    /// It is listed; and what there is to say of it.
    Listed(Option<Notice>),
    /// It is a renewal, which is stored with others.
    Renewed(Box<Good>),
}

/// Why a record isn't listed.
enum Unlisted {
    /// It is refused.
    Refused(Refusal),
    /// It would be one too many.
    NoPlace,
    /// The storage is away: its device tries again.
    Later,
}

impl From<Refusal> for Unlisted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<S: Storage> Hub<S> {
    /// Takes up the hub in `storage`, or makes a new one there if it is blank.
    ///
    /// # Errors
    /// As [`OpenError`] says; nothing was overwritten.
    pub fn open(
        mut config: Config,
        mut storage: S,
        moment: &mut Moment<'_>,
    ) -> Result<Self, OpenError> {
        let seed = take_up_seed(&mut storage, moment.entropy)?;
        let secret = sha256(&[b"ranks of a hub", seed.as_bytes()]).0;
        let mut listed = Listed::new(config.owners.clone(), config.devices_max, secret);
        for kept in storage.records()? {
            let _ = listed.restore(kept.record, kept.seen_at);
        }
        for left in storage.left()? {
            listed.take_up(&left, moment.unix_time.seconds);
        }
        config.carry(listed.table().count());
        let entries = listed.table().entries();
        config.rpc.favoured = entries.map(|entry| entry.record.device_machine).collect();
        let mut endpoint = Endpoint::new(config.rpc.clone(), moment.now, moment.entropy)
            .map_err(OpenError::Endpoint)?;
        let secret = seed.device_secret();
        let key = secret.public_key();
        let machine = endpoint.add_machine(secret).unwrap_or_else(|_| machine_id(&key));
        endpoint.identify_as(&machine);
        let pace = Pace::new(moment.now, config.records_per_minute, config.records_per_second_max);
        let door = Door::new(moment.now, config.rpc.handshakes_per_second_max);
        let relay = Relay::new(moment.now, config.relay_bytes_per_second);
        let looks = Looks::new(config.looks_from_elsewhere);
        Ok(Self {
            endpoint,
            door,
            machine,
            key,
            config,
            listed,
            pace,
            relay,
            looks,
            askers: BTreeMap::new(),
            askers_pace: Bucket::full(moment.now, ASKERS_PER_SECOND),
            elsewhere: BTreeMap::new(),
            elsewhere_pace: Bucket::full(moment.now, LOOKS_PER_SECOND),
            swept_unix_s: 0,
            storage,
            held: Vec::new(),
            handed_over: BTreeMap::new(),
            next_number: 0,
            polled_at: moment.now,
            renewing: Vec::new(),
            is_careful: false,
            undo: Vec::new(),
            counted: Vec::new(),
            is_dirty: false,
            notices: VecDeque::new(),
            ticked_at: None,
            devices_full: 0,
            counts: Counts::default(),
            turn: Duration::ZERO,
            full_told: ([0; TABLES], None),
        })
    }

    /// The hub's public key.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// Where records are kept.
    pub fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Takes a datagram that came from `from`. Replies to calls that wrote something wait for
    /// [`Self::poll`], so that many share one commit; so does who asks for a session.
    pub fn receive(&mut self, moment: &mut Moment<'_>, from: Address, datagram: &[u8]) {
        if let Some(relayed) = Relayed::parse(datagram) {
            let Self { endpoint, relay, machine, .. } = self;
            let route_of = |end: &PublicKey, incarnation: Option<u64>| {
                endpoint.shown_route(moment.now, machine, end, incarnation)
            };
            return relay.take(moment.now, &from, &relayed, route_of);
        }
        let request = self.endpoint.handshake_request(moment.now, &from, datagram);
        if let Some(HandshakeRequest { is_shown }) = request {
            let is_known = self.listed.count_of_host(&from) > 0;
            let turn = self.door.take((is_known, is_shown), moment.now, &from, datagram);
            return match turn {
                Turn::Waits => {}
                Turn::Shows => self.endpoint.challenge_request(moment.now, from, datagram),
                Turn::In(again_in) => self.endpoint.defer_request(from, datagram, again_in),
            };
        }
        self.endpoint.receive(moment.now, moment.entropy, from, datagram);
        self.attend_to_sessions(moment);
    }

    /// Takes a datagram that came to the board's other port, if it has one ([`Config::looks_from_elsewhere`]).
    pub fn receive_elsewhere(&mut self, moment: &Moment<'_>, from: &Address, datagram: &[u8]) {
        if let Some(judged) = self.looks.answer(moment.now, from, datagram) {
            self.judge(&judged);
        }
    }

    /// The next datagram to send from the board's other port, and where to.
    pub fn question(&mut self) -> Option<(Address, Vec<u8>)> {
        self.looks.question()
    }

    /// What was relayed since it started.
    pub fn relay_counts(&self) -> RelayCounts {
        self.relay.counts()
    }

    /// Does what is due, and makes safe what was written.
    pub fn poll(&mut self, moment: &mut Moment<'_>) {
        self.endpoint.poll(moment.now, moment.entropy);
        for (from, datagram) in self.door.let_in(moment.now) {
            self.endpoint.receive(moment.now, moment.entropy, from, &datagram);
        }
        self.attend_to_sessions(moment);
        self.relay.fill(moment.now);
        for judged in self.looks.poll(moment.now) {
            self.judge(&judged);
        }
        // Whoever was heard in this turn isn't silent by the clock, which has a batch of its own: another hub that does the
        // same may be in the way of it, and of nothing else then.
        self.commit(moment);
        self.renew(moment);
        self.tick(moment);
        self.commit(moment);
        self.reply_late(moment);
        self.polled_at = moment.now;
        tell_full(self, moment.now);
    }

    /// When to call [`Self::poll`] next, if nothing else happens.
    pub fn poll_at(&self) -> Option<Instant> {
        let waits = !self.held.is_empty() || !self.renewing.is_empty() || self.is_dirty;
        if waits {
            return Some(Instant::BOOT);
        }
        let answers = (!self.handed_over.is_empty()).then_some(self.polled_at + ANSWERS_EVERY);
        let own = [self.door.opens_at(), self.endpoint.poll_at(), answers];
        own.into_iter().chain([self.relay.poll_at(), self.looks.poll_at()]).flatten().min()
    }

    /// Sends the replies to calls that were answered beside the hub.
    fn reply_late(&mut self, moment: &Moment<'_>) {
        if self.handed_over.is_empty() {
            return;
        }
        for (number, answer) in self.storage.answers() {
            if let Some(handle) = self.handed_over.remove(&number) {
                self.endpoint.reply(moment.now, handle, answer);
            }
        }
    }

    /// The next datagram to send, and where to: one of its own before one that it relays.
    pub fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.endpoint.transmit().or_else(|| self.relay.transmit())
    }

    /// The next thing to show, if anybody watches.
    pub fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Has the storage do what is due by the clock, once in a while.
    fn tick(&mut self, moment: &mut Moment<'_>) {
        if self.ticked_at.is_some_and(|at| moment.now.since(at) < TICK_EVERY) {
            return;
        }
        self.ticked_at = Some(moment.now);
        let unix_s = moment.unix_time.seconds;
        self.store_heard(unix_s);
        let ticked = self.follow(unix_s).and_then(|()| self.storage.tick(unix_s));
        match ticked.and_then(|wrote| Ok((wrote, self.storage.forgotten()?))) {
            Ok((wrote, gone)) => {
                self.is_dirty |= wrote || !gone.is_empty();
                for device in gone {
                    self.favour(&device, false);
                    self.listed.forget(&device);
                }
            }
            Err(error) => {
                self.is_dirty = true;
                self.notify(Notice::NotStored { reason: error.reason });
            }
        }
    }

    /// Takes over what other hubs on the same storage changed.
    fn follow(&mut self, unix_s: u64) -> Result<(), StorageError> {
        let Changes { are_all, devices } = self.storage.changes()?;
        if are_all {
            let known: BTreeSet<&Name> = devices.iter().map(|(name, _)| name).collect();
            let entries = self.listed.table().entries();
            let names = entries.map(|entry| &entry.record.enrolment.device);
            let gone: Vec<Name> = names.filter(|name| !known.contains(name)).cloned().collect();
            for name in gone {
                self.take_over(&name, None);
            }
        }
        for (name, kept) in devices {
            // Of all that there are nobody knows when they were heard.
            let is_heard = self.take_over(&name, kept) && !are_all;
            if is_heard {
                self.listed.hear(&name, unix_s);
            }
        }
        carry(self);
        Ok(())
    }

    /// Has a device in the table as it stands in the storage: as others left it there. Returns whether that is news.
    fn take_over(&mut self, device: &Name, kept: Option<Kept>) -> bool {
        let known = self.listed.device(device);
        let is_same = match (known, &kept) {
            (Some(entry), Some(kept)) => {
                entry.signed == kept.record && entry.seen_at == kept.seen_at
            }
            (known, kept) => known.is_none() && kept.is_none(),
        };
        if is_same {
            return false;
        }
        self.favour(device, false);
        let restored = kept.map(|kept| self.listed.restore(kept.record, kept.seen_at));
        // A record that can't be read any more is one of a device that will register again.
        if !matches!(restored, Some(Ok(()))) {
            self.listed.forget(device);
        }
        self.favour(device, true);
        true
    }

    /// Looks up a device in a storage that others write to as well.
    fn refresh(&mut self, device: &Name) -> Result<(), Unlisted> {
        let stored = self.storage.stored(device);
        self.is_dirty |= !matches!(stored, Ok(Stored::AsPut));
        if let Stored::Now(kept) = stored.map_err(|error| self.not_stored(error))? {
            self.take_over(device, kept);
        }
        Ok(())
    }

    /// How many devices were heard in time, at that moment in seconds since 1970 UTC. Each is looked at.
    pub fn renewals(&self, unix_s: u64) -> Renewals {
        self.listed.renewals(unix_s)
    }

    /// Whether it lists a device that was last heard from the host of this address.
    pub fn knows_host(&self, address: &Address) -> bool {
        self.listed.count_of_host(address) > 0
    }

    /// How full the tables are that devices and others fill.
    pub fn fullness(&self) -> [Fullness; TABLES] {
        let [sessions, callers, initiations, datagrams] = self.endpoint.fullness();
        let devices = Fullness {
            table: TABLE_OF_DEVICES,
            used: self.listed.table().count(),
            most: self.config.devices_max,
            times_full: self.devices_full,
        };
        [sessions, callers, initiations, datagrams, self.door.fullness(), devices]
    }

    fn attend_to_sessions(&mut self, moment: &mut Moment<'_>) {
        while let Some(event) = self.endpoint.event() {
            if let Event::PeerSeen { machine, peer, .. } = &event {
                // What is relayed goes to where a peer has shown that it receives.
                self.endpoint.ask_where(moment.now, machine, peer);
            }
            let Event::IncomingCall { handle, to, peer, function, parameter, from, .. } = event
            else {
                continue;
            };
            if to == self.machine {
                let parameter = parameter.unwrap_or_default();
                self.take_call(moment, handle, Call { peer, from, function, parameter });
            } else {
                self.endpoint.reply(moment.now, handle, Err(NoResult::NoSuchMachine));
            }
        }
    }

    fn take_call(&mut self, moment: &mut Moment<'_>, handle: IncomingCallHandle, call: Call) {
        let unix_s = moment.unix_time.seconds;
        if call.function != function::TOUCH {
            self.spoke(&call.peer, unix_s);
        }
        let answer = match self.put_off(&call, unix_s) {
            Some(again_in) => Answer::Now(Err(NoResult::Deferred { again_in })),
            None => self.serve(moment, handle, &call),
        };
        match answer {
            Answer::Now(result) => self.endpoint.reply(moment.now, handle, result),
            Answer::Held(reply) => self.held.push(Held { handle, call, reply }),
            Answer::Later(number) => _ = self.handed_over.insert(number, handle),
            Answer::Renewed(renewed) => {
                let Good { signed, record, life_s } = *renewed;
                self.renewing.push(Renewing { handle, call, signed, record, life_s });
            }
        }
    }

    /// Makes safe what was written, and sends the replies that wait for it. If that fails, the table is as it was before,
    /// and the callers are told; where another hub was in the way, all of it is tried again first.
    fn commit(&mut self, moment: &mut Moment<'_>) {
        for tried in 1..=COMMITS_MAX {
            if self.held.is_empty() && !self.is_dirty {
                return;
            }
            self.is_dirty = false;
            let failed = self.storage.commit().err();
            let undo = core::mem::take(&mut self.undo);
            let counted = core::mem::take(&mut self.counted);
            let Some(error) = failed else { return self.settle(moment.now, None) };
            self.take_back(undo);
            if error.failure != Failure::Conflict || tried == COMMITS_MAX {
                self.notify(Notice::NotStored { reason: error.reason });
                return self.settle(moment.now, Some(error.failure));
            }
            // A record that is tried again counts once.
            counted.iter().for_each(|device| self.pace.give_back(device));
            for Held { handle, call, .. } in core::mem::take(&mut self.held) {
                self.take_call(moment, handle, call);
            }
        }
    }

    /// Has the devices in the table as they were before a commit that failed.
    fn take_back(&mut self, undo: Vec<(Name, Option<Former>)>) {
        for (device, before) in undo.into_iter().rev() {
            self.favour(&device, false);
            match before {
                Some(former) => self.listed.put_back(former),
                None => self.listed.forget(&device),
            }
            self.favour(&device, true);
        }
    }

    /// Sends the replies that waited for a commit, which may have failed.
    fn settle(&mut self, now: Instant, failed: Option<Failure>) {
        for Held { handle, call, reply } in core::mem::take(&mut self.held) {
            // A record that was kept all the same does no harm.
            let is_registration = matches!(&*call.function, function::REGISTER | function::STAY);
            let result = match failed {
                None => {
                    self.counts.records += u64::from(is_registration && reply.result.is_ok());
                    reply.notice.into_iter().for_each(|notice| self.notify(notice));
                    reply.result
                }
                Some(Failure::Refused) => reply.otherwise,
                Some(_) if is_registration => Err(LATER),
                Some(Failure::Unsure) => Err(NoResult::OutcomeUnknown),
                Some(Failure::Away | Failure::Conflict) => self.storage.unkept(),
            };
            self.endpoint.reply(now, handle, result);
        }
    }

    fn serve(
        &mut self,
        moment: &mut Moment<'_>,
        handle: IncomingCallHandle,
        call: &Call,
    ) -> Answer {
        let unix_s = moment.unix_time.seconds;
        let Call { peer, from, function, parameter } = call;
        match function.as_str() {
            function::REGISTER => self.serve_registration(moment, call),
            function::STAY if self.config.takes_touches => self.serve_registration(moment, call),
            function::TOUCH if self.config.takes_touches => Answer::Now(self.touch(moment, call)),
            function::RESOLVE => Answer::Now(decode(parameter).map(|query: Query| {
                let entry = self.find(moment, peer, &query)?;
                let mut found = entry.found();
                let verdict = self.looks.verdict(&entry.record.device_machine, &entry.seen_at);
                // Who comes by a connection has no other way out than this hub.
                if (verdict == Verdict::Shut || is_carried(from))
                    && let Ok(way) = self.relay_to(moment, (*peer, None), None, &entry)
                {
                    found.seen_at = Address::Relayed(way);
                }
                Some(encode(&found))
            })),
            function::REACH => Answer::Now(decode(parameter).map(|reach: Reach| {
                let caller = (*peer, self.endpoint.incarnation_of(handle));
                Some(encode(&self.reach(moment, caller, &reach)))
            })),
            function::SEEN => Answer::Now(Ok(Some(encode(&Seen { from: from.clone(), unix_s })))),
            function::LIST => Answer::Now(decode(parameter).map(|ListFrom { skip }| {
                let count = PARAMETER_BYTES_MAX / LISTED_BYTES - 1;
                let (machines, total) = self.listed.machines(skip as usize, count, unix_s);
                Some(encode(&Listing { machines, total: total as u32 }))
            })),
            function => {
                let hub = &self.key;
                let call = ServiceCall { peer, hub, function, parameter, unix_s };
                if self.storage.hand_over(self.next_number, &call) {
                    self.next_number += 1;
                    return Answer::Later(self.next_number - 1);
                }
                let otherwise = Err(NoResult::Execution);
                self.is_dirty = true;
                match self.storage.call(&call) {
                    Err(declined) => Answer::Now(Err(declined)),
                    result => Answer::Held(Reply { result, otherwise, notice: None }),
                }
            }
        }
    }

    fn serve_registration(&mut self, moment: &mut Moment<'_>, call: &Call) -> Answer {
        let unix_s = moment.unix_time.seconds;
        let Call { peer, from, parameter, .. } = call;
        let takes_touches = self.config.takes_touches;
        let reply = |refusal, devices_max| {
            Ok(Some(encode(&Registered { refusal, unix_s, devices_max, takes_touches })))
        };
        match self.register(moment, call) {
            Ok(Taken::Renewed(renewed)) => Answer::Renewed(renewed),
            Ok(Taken::Listed(notice)) => {
                let otherwise = reply(Some(Refusal::Full), None);
                Answer::Held(Reply { result: reply(None, None), otherwise, notice })
            }
            Err(Unlisted::Refused(refusal)) => {
                let is_by_clock = refusal == Refusal::Expired;
                let ends_in_s = is_by_clock.then(|| ends_in_s(parameter, unix_s)).flatten();
                if is_by_clock {
                    self.hear_in_vain(peer, parameter, unix_s);
                }
                self.notify(Notice::Refused { refusal, address: from.clone(), ends_in_s });
                Answer::Now(reply(Some(refusal), None))
            }
            Err(Unlisted::NoPlace) => {
                self.devices_full += 1;
                let refusal = Refusal::Full;
                self.notify(Notice::Refused { refusal, address: from.clone(), ends_in_s: None });
                Answer::Now(reply(Some(refusal), u32::try_from(self.config.devices_max).ok()))
            }
            // The commit fails as well, and shows whether it may be tried again at once.
            Err(Unlisted::Later) => {
                Answer::Held(Reply { result: Err(LATER), otherwise: Err(LATER), notice: None })
            }
        }
    }

    /// Takes note of a listed device whose record isn't good by the hub's clock.
    fn hear_in_vain(&mut self, peer: &PublicKey, parameter: &[u8], unix_s: u64) {
        let record = postcard::from_bytes::<SignedRecord>(parameter).ok();
        let record = record.and_then(|signed| tenure_directory::open_whenever(&signed).ok());
        let Some(DeviceRecord { enrolment, .. }) = record else { return };
        let known = self.listed.device(&enrolment.device);
        if known.is_some_and(|entry| entry.record.device_machine == *peer) {
            self.listed.hear_in_vain(&enrolment.device, unix_s);
        }
    }

    /// Checks, stores and lists a record, or keeps it for the end of the turn.
    fn register(&mut self, moment: &mut Moment<'_>, call: &Call) -> Result<Taken, Unlisted> {
        let unix_s = moment.unix_time.seconds;
        let Statement { signed, life_s } = Statement::read(call)?;
        let record = tenure_directory::open(&signed, unix_s)?;
        if record.device_machine != call.peer {
            return Err(Refusal::Sender.into());
        }
        let device = record.enrolment.device.clone();
        let is_in_turn = self.storage.renews() && !self.is_careful && !self.is_renewing(&record);
        if is_in_turn && self.may_renew(&record) {
            self.sweep(unix_s)?;
            if !self.pace.admit(moment.now, &device) {
                return Err(Refusal::TooOften.into());
            }
            return Ok(Taken::Renewed(Box::new(Good { signed, record, life_s })));
        }
        self.refresh(&device)?;
        if self.storage.is_revoked(&record).map_err(|error| self.not_stored(error))? {
            return Err(Refusal::Revoked.into());
        }
        self.sweep(unix_s)?;
        let is_new = self.listed.table().assess(&record).map_err(|refusal| match refusal {
            Refusal::Full => Unlisted::NoPlace,
            refusal => refusal.into(),
        })?;
        let before = self.listed.former(&device);
        let kept = Kept { record: signed, seen_at: call.from.clone() };
        if is_new {
            self.check_quota(&record, &kept.seen_at)?;
            if !self.pace.admit(moment.now, &device) {
                return Err(Refusal::TooOften.into());
            }
            self.counted.push(device.clone());
            let ends_unix_s = ends_of(&record, life_s, unix_s);
            let accepted = Accepted { kept: &kept, record: &record, unix_s, ends_unix_s };
            self.is_dirty = true;
            self.storage.put(&accepted).map_err(|error| self.not_stored(error))?;
        }
        let notice = self.announcement(unix_s, &record, &kept.seen_at);
        let key_before = before.as_ref().map(|former| former.entry.record.device_machine);
        if key_before != Some(record.device_machine) {
            self.favour(&device, false);
            self.endpoint.favour(&record.device_machine, true);
        }
        let (machine, address) = (record.device_machine, kept.seen_at.clone());
        self.listed.put(record, kept.record, kept.seen_at);
        if is_new {
            self.listed.live(&device, life_s, unix_s);
        }
        self.listed.hear(&device, unix_s);
        self.undo.push((device, before));
        self.looks.note(moment.now, moment.entropy, machine, &address);
        Ok(Taken::Listed(notice))
    }

    /// Prefers the device of that name to strangers, or no longer.
    fn favour(&mut self, device: &Name, is_favoured: bool) {
        if let Some(entry) = self.listed.device(device) {
            self.endpoint.favour(&entry.record.device_machine, is_favoured);
        }
    }

    /// Forgets what expired long ago, once in a while, and sooner while there is no room.
    fn sweep(&mut self, unix_s: u64) -> Result<(), Unlisted> {
        let is_full = self.listed.table().count() >= self.config.devices_max;
        let due_unix_s = match is_full {
            true => self.swept_unix_s.saturating_add(SWEEP_FULL_EVERY_S),
            false => self.swept_unix_s.saturating_add(SWEEP_EVERY_S),
        };
        if (self.swept_unix_s..due_unix_s).contains(&unix_s) {
            return Ok(());
        }
        self.swept_unix_s = unix_s;
        let forget_after_s = self.config.forget_after_s;
        let over_before_unix_s = unix_s.saturating_sub(forget_after_s);
        let forgettable = self.storage.forgettable(over_before_unix_s, forget_after_s);
        let forgettable = forgettable.map_err(|error| self.not_stored(error))?;
        let is_by_storage = forgettable.is_some();
        let name_of = |entry: Entry| entry.record.enrolment.device;
        let ended =
            || self.listed.ended_before(over_before_unix_s).into_iter().map(name_of).collect();
        let names: Vec<Name> = forgettable.unwrap_or_else(ended);
        for name in names {
            self.refresh(&name)?;
            let Some(former) = self.listed.former(&name) else { continue };
            let expires_unix_s = former.entry.record.expires_unix_s;
            if !is_by_storage && expires_unix_s >= over_before_unix_s {
                // Another hub heard of it since.
                continue;
            }
            self.is_dirty = true;
            self.storage.delete(&name).map_err(|error| self.not_stored(error))?;
            self.favour(&name, false);
            self.listed.forget(&name);
            self.undo.push((name, Some(former)));
        }
        let listed = &self.listed;
        let most = self.config.devices_max.max(listed.table().count());
        if self.pace.len() > most {
            self.pace.retain(|name| listed.device(name).is_some());
        }
        if self.looks.len() > most {
            self.looks.retain(|device| listed.of_device_machine(device).is_some());
        }
        Ok(())
    }

    /// Whether a device that isn't listed yet may be: only an open hub has strangers to divide its
    /// room among.
    fn check_quota(&self, record: &DeviceRecord, from: &Address) -> Result<(), Refusal> {
        let known = self.listed.device(&record.enrolment.device);
        if !self.config.owners.is_empty() || known.is_some() {
            return Ok(());
        }
        let is_within = self.listed.count_of_owner(&record.owner)
            < self.config.devices_per_owner_max
            && self.listed.count_of_host(from) < self.config.devices_per_host_max
            && self.listed.count_of_network(from)
                < self.config.devices_per_host_max.saturating_mul(HOSTS_OF_NETWORK);
        if is_within { Ok(()) } else { Err(Refusal::Quota) }
    }

    /// A notice if a device is listed anew, or lists other machines than before.
    fn announcement(&self, unix_s: u64, record: &DeviceRecord, from: &Address) -> Option<Notice> {
        let device = record.enrolment.device.clone();
        let known = self.listed.device(&device);
        let known = known.filter(|entry| self.listed.is_in_force(entry, unix_s));
        let is_news = known.is_none_or(|entry| entry.record.machines != record.machines);
        let machines = record.machines.len();
        is_news.then(|| Notice::Listed { device, address: from.clone(), machines })
    }

    /// Says that the storage failed; the device is told that the hub is full, or to try again.
    fn not_stored(&mut self, error: StorageError) -> Unlisted {
        match error.failure {
            Failure::Conflict => Unlisted::Later,
            Failure::Away | Failure::Unsure => {
                self.notify(Notice::NotStored { reason: error.reason });
                Unlisted::Later
            }
            Failure::Refused => {
                self.notify(Notice::NotStored { reason: error.reason });
                Refusal::Full.into()
            }
        }
    }

    fn notify(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }
}

/// Says which tables were full since it was last said, if that is long enough ago.
fn tell_full<S: Storage>(hub: &mut Hub<S>, now: Instant) {
    let (_, told_at) = hub.full_told;
    if told_at.is_some_and(|at| now.since(at) < FULL_TOLD_EVERY) {
        return;
    }
    let tables = hub.fullness();
    for (table, before) in tables.iter().zip(hub.full_told.0) {
        if table.times_full > before {
            hub.notify(Notice::Full(*table));
            hub.full_told.1 = Some(now);
        }
    }
    hub.full_told.0 = tables.map(|table| table.times_full);
}

/// Gives all that are listed their room: others on the same storage may list more than this hub was told to.
fn carry<S: Storage>(hub: &mut Hub<S>) {
    if hub.config.carry(hub.listed.table().count()) {
        hub.endpoint.widen(&hub.config.rpc);
        hub.pace.widen(hub.config.records_per_second_max);
    }
}

/// In how many seconds a record ends; `None` if it is none.
fn ends_in_s(parameter: &[u8], unix_s: u64) -> Option<i64> {
    let signed: SignedRecord = postcard::from_bytes(parameter).ok()?;
    let record = tenure_directory::open_whenever(&signed).ok()?;
    i64::try_from(record.expires_unix_s).ok()?.checked_sub(i64::try_from(unix_s).ok()?)
}

fn take_up_seed(storage: &mut impl Storage, entropy: &mut dyn Entropy) -> Result<Seed, OpenError> {
    if let Some(bytes) = storage.seed()? {
        return Ok(Seed::from_bytes(&bytes));
    }
    let seed = Seed::generate(entropy).map_err(|_| OpenError::Entropy)?;
    let stored = storage.set_seed(seed.as_bytes());
    // After a write that failed it fails, too, and has the storage begin anew.
    let committed = storage.commit();
    match stored.and(committed) {
        Ok(()) => Ok(seed),
        // Another hub on the same storage may have been faster: its keys are the fleet's.
        Err(error) => storage.seed()?.map(|bytes| Seed::from_bytes(&bytes)).ok_or(error.into()),
    }
}

fn decode<'a, T: Deserialize<'a>>(parameter: &'a [u8]) -> Result<T, NoResult> {
    postcard::from_bytes(parameter).map_err(|_| NoResult::Execution)
}

/// Encodes a value that was built of valid parts, which can't fail but for want of memory.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}
